// Package errordocs serves the page that an error's documentation_url names:
// what the code means, its HTTP status, and what to do. The pages come from the
// table that every service answers from, so they cannot tell another story.
package errordocs

import (
	_ "embed"
	"html/template"
	"net/http"
	"slices"
	"strings"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/platform/http/webpage"
)

//go:embed page.html.tmpl
var source string

var page = template.Must(template.New("page").Parse(source))

// Routes mounts /docs/errors and /docs/errors/{code} under r: HTML, or JSON for
// a client that asks for it by Accept or by ?format=json. Unless a deployment has all
// products, the codes that media and payments alone answer are left out.
func Routes(r chi.Router, a httpapi.Adapter, all bool) {
	without := func(i decision.Info) bool { return !all && ofProducts(i.Code) }
	r.Get("/docs/errors", a.Handle(func(w http.ResponseWriter, r *http.Request) error {
		return show(w, r, slices.DeleteFunc(slices.Clone(decision.All()), without)...)
	}))
	r.Get("/docs/errors/{code}", a.Handle(func(w http.ResponseWriter, r *http.Request) error {
		code := decision.Code(chi.URLParam(r, "code"))
		info := decision.Lookup(code)
		if info.Code != code || without(info) {
			return apierror.Errorf(decision.NotFound, "There is no such error code.")
		}
		return show(w, r, info)
	}))
}

// ofProducts reports whether only media or payments answer with a code.
func ofProducts(code decision.Code) bool {
	kind, _, _ := strings.Cut(string(code), "_")
	return kind == "STREAM" || kind == "TRANSCODE" || kind == "STORAGE" || code == decision.PaymentRequired
}

// entry is one code as the pages show it.
type entry struct {
	Code    decision.Code `json:"code"`
	Status  int           `json:"http_status"` // 0: no response of its own
	Meaning string        `json:"meaning"`
	Remedy  string        `json:"remedy"`
}

// show writes the entries of list in the form that the client asked for. A page
// may be kept for an hour: codes never change their meaning.
func show(w http.ResponseWriter, r *http.Request, list ...decision.Info) error {
	entries := make([]entry, len(list))
	for i, info := range list {
		entries[i] = entry{info.Code, info.Status, info.Message, info.Remedy}
	}
	w.Header().Set("Vary", "Accept")
	if wantsJSON(r) {
		w.Header().Set("Cache-Control", kept)
		httpapi.JSON(w, http.StatusOK, struct {
			Data []entry `json:"data"`
		}{entries})
		return nil
	}
	return webpage.Write(w, page, "page", struct {
		Style   template.CSS
		Entries []entry
	}{template.CSS(webpage.Style), entries}, webpage.Answer{Policy: policy, Cache: kept})
}

// kept says who may keep an answer, and for how long.
const kept = "public, max-age=3600"

// policy lets the page have the shared style and nothing else.
var policy = webpage.Allow{Styles: []string{webpage.Style}}.Policy()

// wantsJSON tells programs from browsers, which accept HTML first.
func wantsJSON(r *http.Request) bool {
	return r.URL.Query().Get("format") == "json" || strings.HasPrefix(r.Header.Get("Accept"), "application/json")
}

// StatusText names the entry's HTTP status.
func (e entry) StatusText() string { return http.StatusText(e.Status) }

// part is a piece of a remedy.
type part struct {
	Text string
	Code bool
	Link string
}

// reference is what remedies call the page that they lead to.
const reference = "API reference"

// Parts splits the remedy at back quotes, the one mark-up it has, and around the name
// of the reference.
func (e entry) Parts() (list []part) {
	for i, text := range strings.Split(e.Remedy, "`") {
		before, after, found := strings.Cut(text, reference)
		list = append(list, part{Text: before, Code: i%2 == 1})
		if found {
			list = append(list, part{Text: reference, Link: "/docs/reference"}, part{Text: after})
		}
	}
	return list
}
