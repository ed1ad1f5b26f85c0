package config

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/platform/http/identity"
)

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
func (p *Publisher) Routes(r chi.Router, a httpapi.Adapter) {
	h := handlers{p}
	r.Get("/config", httpapi.Handle(a, http.StatusOK, h.get))
	r.Put("/config", a.Handle(h.put))
	r.Get("/config/schema", a.Handle(showSchema))
	r.Get("/config/versions", httpapi.Handle(a, http.StatusOK, h.history))
	r.Get("/config/versions/{version}", httpapi.Handle(a, http.StatusOK, h.version))
	r.Post("/config/versions/{version}/rollback", httpapi.Handle(a, http.StatusOK, h.rollback))
	for _, name := range Kinds {
		o := objects{h, name, kinds[name]}
		if name != "plans" { // the list of plans has who may take them, which is not of the document
			r.Get("/"+name, httpapi.Handle(a, http.StatusOK, o.list))
		}
		r.Get("/"+name+"/{name}", a.Handle(o.get))
		r.Put("/"+name+"/{name}", a.Handle(o.put))
		r.Delete("/"+name+"/{name}", a.Handle(o.delete))
	}
}

// handlers serve the configuration to those who run the platform.
type handlers struct{ *Publisher }

// newest is the answer of GET config.
type newest struct {
	Version
	Warnings []decision.Detail `json:"warnings,omitempty"`
}

// SetHeaders says the number of the version.
func (n newest) SetHeaders(h http.Header) { h.Set("ETag", etag(n.Number)) }

func (h handlers) get(r *http.Request, _ httpapi.None) (newest, error) {
	v, err := h.Store.Latest(r.Context())
	if err != nil {
		return newest{}, err
	}
	more, _ := h.compileFaults(v.Document) // it is shown, whatever is the matter with it
	return newest{v, decision.Bounded(append(v.Document.Faults(), more...))}, nil
}

// SetHeaders says the number of the version that is now the newest.
func (p PutResult) SetHeaders(h http.Header) { h.Set("ETag", etag(p.Version)) }

func (h handlers) put(w http.ResponseWriter, r *http.Request) error {
	ifMatch, err := parseIfMatch(r.Header.Get("If-Match"))
	if err != nil {
		return err
	}
	raw, err := httpapi.ReadJSON(w, r, MaxBytes)
	if err != nil {
		return err
	}
	d, err := h.whole(raw)
	if err != nil {
		return err
	}
	res, err := h.change(r, "", replaceBy(d, ifMatch))
	if err != nil {
		return err
	}
	res.SetHeaders(w.Header())
	httpapi.JSON(w, http.StatusOK, res)
	return nil
}

// whole reads a document and expands it. It fails with every fault of the text, of
// what it includes and, when there is one of those, of what is left.
func (h handlers) whole(raw []byte) (Document, error) {
	d, err := ParseJSON(raw)
	if err != nil && len(faults(err)) == 0 {
		return d, err
	}
	d, more := d.Expand(h.Profile)
	return d, AllFaults(faults(err), more, d)
}

// maxNote bounds the note of a version, in bytes.
const maxNote = 500

// change publishes what e makes of the newest version; with ?dry_run=true it only
// answers what that would do. note stands for a note that the caller did not give.
func (h handlers) change(r *http.Request, note string, e edit) (PutResult, error) {
	q := r.URL.Query()
	if q.Has("note") {
		note = q.Get("note")
	}
	if len(note) > maxNote {
		return PutResult{}, apierror.Invalid([]decision.Detail{{Field: "note", Issue: "is too long", Expected: "at most 500 bytes"}})
	}
	if q.Get("dry_run") == "true" {
		return h.dryRun(r.Context(), e)
	}
	return h.publish(r.Context(), author(r), note, e)
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
