package config

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/controlplane"
	"sluice.dev/sluice/controlplane/identity"
	"sluice.dev/sluice/controlplane/respond"
	"sluice.dev/sluice/filters/decision"
)

// Admin serves the configuration to those who run the platform.
type Admin struct {
	Store Store
	// Check finds faults that only show when a document is compiled for edges.
	Check func(Document) error
	// Numbers makes sure, before a document is stored, that its scopes and plans
	// can have numbers; see EnsureNumbers.
	Numbers func(context.Context, Document) (Numbers, error)
	Respond respond.Adapter
}

// Routes mounts, relative to r, which has let only administrators through:
//
//	GET  config         the newest version; its number is the ETag
//	PUT  config         a new document: {version, changes, …}; If-Match, ?dry_run=true, ?note=
//	GET  routes         its routes
//	GET  routes/{name}  one of them
func (a Admin) Routes(r chi.Router) {
	h := a.Respond.Handle
	r.Get("/config", h(a.get))
	r.Put("/config", h(a.put))
	r.Get("/routes", h(a.routes))
	r.Get("/routes/{name}", h(a.route))
}

func (a Admin) get(w http.ResponseWriter, r *http.Request) error {
	v, err := a.Store.Latest(r.Context())
	if err != nil {
		return err
	}
	w.Header().Set("ETag", etag(v.Number))
	respond.JSON(w, http.StatusOK, v)
	return nil
}

// PutResult answers a PUT of a document.
type PutResult struct {
	Version int64    `json:"version"` // the newest one, after the PUT
	DryRun  bool     `json:"dry_run"`
	Changes []Change `json:"changes"` // none: the document was in force already
}

func (a Admin) put(w http.ResponseWriter, r *http.Request) error {
	ifMatch, err := parseIfMatch(r.Header.Get("If-Match"))
	if err != nil {
		return err
	}
	raw, err := respond.ReadJSON(w, r, MaxBytes)
	if err != nil {
		return err
	}
	d, err := a.checked(raw)
	if err != nil {
		return err
	}
	before, err := a.Store.Latest(r.Context())
	if err != nil && controlplane.ErrorCode(err) != decision.NotFound {
		return err
	}
	res := PutResult{Version: before.Number, DryRun: r.URL.Query().Get("dry_run") == "true", Changes: Diff(before.Document, d)}
	if res.Changes == nil {
		res.Changes = []Change{}
	}
	if ifMatch != Any && ifMatch != before.Number {
		return stale(before.Number)
	}
	if !res.DryRun {
		if res.Version, err = a.store(r, d, ifMatch); err != nil {
			return err
		}
	}
	w.Header().Set("ETag", etag(res.Version))
	respond.JSON(w, http.StatusOK, res)
	return nil
}

// checked reads a document and looks for every fault in it.
func (a Admin) checked(raw []byte) (Document, error) {
	d, err := ParseJSON(raw)
	if err != nil {
		return d, err
	}
	if err := d.Validate(); err != nil {
		return d, err
	}
	return d, a.Check(d)
}

// maxNote bounds the note of a version, in bytes.
const maxNote = 500

func (a Admin) store(r *http.Request, d Document, ifMatch int64) (int64, error) {
	note := r.URL.Query().Get("note")
	if len(note) > maxNote {
		return 0, controlplane.Invalid([]decision.Detail{{Field: "note", Issue: "is too long", Expected: "at most 500 bytes"}})
	}
	if _, err := a.Numbers(r.Context(), d); err != nil {
		return 0, err
	}
	author := "admin"
	if c, ok := identity.From(r.Context()); ok && c.Key != "" {
		author = c.Key
	}
	v, err := a.Store.Put(r.Context(), d, author, note, ifMatch)
	return v.Number, err
}

func (a Admin) routes(w http.ResponseWriter, r *http.Request) error {
	v, err := a.Store.Latest(r.Context())
	if err != nil {
		return err
	}
	w.Header().Set("ETag", etag(v.Number))
	respond.JSON(w, http.StatusOK, struct {
		Version int64   `json:"version"`
		Data    []Route `json:"data"`
	}{v.Number, append([]Route{}, v.Document.Routes...)})
	return nil
}

func (a Admin) route(w http.ResponseWriter, r *http.Request) error {
	v, err := a.Store.Latest(r.Context())
	if err != nil {
		return err
	}
	name := chi.URLParam(r, "name")
	i := slices.IndexFunc(v.Document.Routes, func(r Route) bool { return r.Name == name })
	if i < 0 {
		return &controlplane.Error{Code: decision.NotFound}
	}
	w.Header().Set("ETag", etag(v.Number))
	respond.JSON(w, http.StatusOK, v.Document.Routes[i])
	return nil
}

func etag(version int64) string { return strconv.Quote(strconv.FormatInt(version, 10)) }

// parseIfMatch reads an If-Match header: none and * mean any version.
func parseIfMatch(h string) (int64, error) {
	if h == "" || h == "*" {
		return Any, nil
	}
	n, err := strconv.ParseInt(strings.Trim(h, `"`), 10, 64)
	if err != nil || n < 0 {
		return 0, controlplane.Invalid([]decision.Detail{{Field: "If-Match", Issue: "is not a version", Expected: `an ETag such as "7"`}})
	}
	return n, nil
}

// stale says that the document was written against another version.
func stale(now int64) error {
	return controlplane.Errorf(decision.Precondition, "The configuration is at version %d.", now)
}
