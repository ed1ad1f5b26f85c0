package config

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/platform/http/identity"
)

// Admin serves the configuration to those who run the platform.
type Admin struct {
	Store Store
	// Check finds faults besides those of Faults: those that only show when a
	// document is compiled for edges.
	Check   func(Document) error
	Respond httpapi.Adapter
	// Checker finds the faults of documents; nil: one that remembers nothing. One that
	// Check uses too looks once for both.
	Checker *Checker

	// turn lets one change at a time through: others would wait for the same
	// lock of the database, each with a connection.
	turn chan struct{}
}

// Routes mounts, relative to r, which has let only administrators through:
//
//	GET    config                          the newest version; its number is the ETag
//	PUT    config                          a new document: {version, changes, …}; If-Match, ?dry_run=true, ?note=
//	GET    config/schema                   the JSON Schema of a document
//	GET    config/versions                 the history, newest first
//	GET    config/versions/{version}       one version, with what it changed; ?against= compares with another
//	POST   config/versions/{version}/rollback   its document, as a new version
//	GET    {kind}, {kind}/{name}           objects, for each of Kinds
//	PUT    {kind}/{name}                   one object; If-Match, If-None-Match, ?dry_run=true, ?note=
//	DELETE {kind}/{name}                   the same
func (a Admin) Routes(r chi.Router) {
	a.turn = make(chan struct{}, 1)
	h := a.Respond.Handle
	r.Get("/config", h(a.get))
	r.Put("/config", h(a.put))
	r.Get("/config/schema", h(schema))
	r.Get("/config/versions", h(a.history))
	r.Get("/config/versions/{version}", h(a.version))
	r.Post("/config/versions/{version}/rollback", h(a.rollback))
	for _, name := range Kinds {
		o := objects{a, name, kinds[name]}
		if name != "plans" { // the list of plans has who may take them, which is not of the document
			r.Get("/"+name, h(o.list))
		}
		r.Get("/"+name+"/{name}", h(o.get))
		r.Put("/"+name+"/{name}", h(o.put))
		r.Delete("/"+name+"/{name}", h(o.delete))
	}
}

func (a Admin) get(w http.ResponseWriter, r *http.Request) error {
	v, err := a.Store.Latest(r.Context())
	if err != nil {
		return err
	}
	more, _ := a.compiled(v.Document) // it is shown, whatever is the matter with it
	w.Header().Set("ETag", etag(v.Number))
	httpapi.JSON(w, http.StatusOK, struct {
		Version
		Warnings []decision.Detail `json:"warnings,omitempty"`
	}{v, decision.Bounded(append(v.Document.Faults(), more...))})
	return nil
}

// PutResult answers a change of the configuration.
type PutResult struct {
	Version int64    `json:"version"` // the newest one, after the change
	DryRun  bool     `json:"dry_run"`
	Changes []Change `json:"changes"` // none: the document was in force already
	// Warnings are faults of objects that were there before and were not changed:
	// what became of them is in Document.Usable.
	Warnings []decision.Detail `json:"warnings,omitempty"`
}

func (a Admin) put(w http.ResponseWriter, r *http.Request) error {
	ifMatch, err := parseIfMatch(r.Header.Get("If-Match"))
	if err != nil {
		return err
	}
	raw, err := httpapi.ReadJSON(w, r, MaxBytes)
	if err != nil {
		return err
	}
	d, err := ParseJSON(raw)
	if err != nil {
		return err
	}
	return a.publish(w, r, "", func(now Version) (Document, error) {
		if ifMatch != Any && ifMatch != now.Number {
			return d, stale(now.Number)
		}
		return d, nil
	})
}

// publish answers with what a change has done.
func (a Admin) publish(w http.ResponseWriter, r *http.Request, note string, edit func(Version) (Document, error)) error {
	res, err := a.change(r, note, edit)
	if err != nil {
		return err
	}
	w.Header().Set("ETag", etag(res.Version))
	httpapi.JSON(w, http.StatusOK, res)
	return nil
}

// maxNote bounds the note of a version, in bytes.
const maxNote = 500

// change looks for every fault in what edit makes of the newest version and
// stores it as the next one; with ?dry_run=true it only tells the difference.
// note stands for a note that the caller did not give.
func (a Admin) change(r *http.Request, note string, edit func(Version) (Document, error)) (PutResult, error) {
	q := r.URL.Query()
	if q.Has("note") {
		note = q.Get("note")
	}
	if len(note) > maxNote {
		return PutResult{}, apierror.Invalid([]decision.Detail{{Field: "note", Issue: "is too long", Expected: "at most 500 bytes"}})
	}
	if q.Get("dry_run") == "true" {
		return a.tell(r, edit)
	}
	return a.store(r.Context(), author(r), note, edit)
}

// checked is edit, followed by the look for every fault in what it makes; it
// fills in warnings.
func (a Admin) checked(edit func(Version) (Document, error), warnings *[]decision.Detail) func(Version) (Document, error) {
	return func(now Version) (Document, error) {
		d, err := edit(now)
		if err == nil {
			*warnings, err = a.judge(now.Document, d)
		}
		return d, err
	}
}

// store makes what edit makes of the newest version the next one, if that has no
// fault.
func (a Admin) store(ctx context.Context, author, note string, edit func(Version) (Document, error)) (PutResult, error) {
	if a.turn != nil {
		select {
		case a.turn <- struct{}{}:
			defer func() { <-a.turn }()
		case <-ctx.Done():
			return PutResult{}, ctx.Err()
		}
	}
	var warnings []decision.Detail
	v, changes, err := a.Store.Edit(ctx, author, note, a.checked(edit, &warnings))
	if err != nil {
		return PutResult{}, err
	}
	return PutResult{Version: v.Number, Changes: append([]Change{}, changes...), Warnings: decision.Bounded(warnings)}, nil
}

// judge fails with every fault that d brings with it. Faults that before had, in
// objects that d leaves as they are, are warnings: they came with a new release,
// or with other settings of the control plane, and must not hold up all else.
func (a Admin) judge(before, d Document) (warnings []decision.Detail, err error) {
	for _, find := range []func(Document) ([]decision.Detail, error){a.shown, a.compiled} {
		faults, err := find(d)
		if err != nil {
			return nil, err
		}
		if len(faults) == 0 {
			continue
		}
		known, _ := find(before)
		fresh, old := settle(before, d, known, faults)
		if len(fresh) > 0 {
			return nil, apierror.Invalid(fresh)
		}
		warnings = append(warnings, old...)
	}
	return warnings, nil
}

// shown are the faults that d shows by itself.
func (a Admin) shown(d Document) ([]decision.Detail, error) { return a.Checker.Faults(d), nil }

// compiled are those that show when d is compiled. It fails when d does not
// compile for a reason that is in no field.
func (a Admin) compiled(d Document) ([]decision.Detail, error) {
	err := a.Check(d)
	if e, ok := errors.AsType[*apierror.Error](err); ok && len(e.Details) > 0 {
		return e.Details, nil
	}
	return nil, err
}

// tell returns what a change would do.
func (a Admin) tell(r *http.Request, edit func(Version) (Document, error)) (PutResult, error) {
	now, err := a.Store.Latest(r.Context())
	if err != nil && apierror.Code(err) != decision.NotFound {
		return PutResult{}, err
	}
	var warnings []decision.Detail
	d, err := a.checked(edit, &warnings)(now)
	if err != nil {
		return PutResult{}, err
	}
	return PutResult{Version: now.Number, DryRun: true, Changes: differences(now.Document, d), Warnings: warnings}, nil
}

// differences is Diff for JSON: never null.
func differences(a, b Document) []Change {
	return append([]Change{}, Diff(a, b)...)
}

// author is who asks for a change.
func author(r *http.Request) string {
	if c, ok := identity.From(r.Context()); ok && c.Key != "" {
		return c.Key
	}
	return "admin"
}

func etag(version int64) string { return strconv.Quote(strconv.FormatInt(version, 10)) }

// parseIfMatch reads an If-Match header: none and * mean any version.
func parseIfMatch(h string) (int64, error) {
	if h == "" || h == "*" {
		return Any, nil
	}
	n, err := strconv.ParseInt(strings.Trim(h, `"`), 10, 64)
	if err != nil || n < 0 {
		return 0, apierror.Invalid([]decision.Detail{{Field: "If-Match", Issue: "is not a version", Expected: `an ETag such as "7"`}})
	}
	return n, nil
}

// stale says that the document was written against another version.
func stale(now int64) error {
	return apierror.Errorf(decision.Precondition, "The configuration is at version %d.", now)
}
