// Package errordocs serves the page that an error's documentation_url names:
// what the code means, its HTTP status, what to do, and how an answer with it looks. The pages come from the
// table that every service answers from, so they cannot tell another story.
package errordocs

import (
	"bytes"
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
	"sluice.dev/sluice/web/docsite"
	"sluice.dev/sluice/web/docsite/search"
)

// Root is the path of the page of all codes; that of one is below it.
const Root = docsite.Root + "/errors"

//go:embed page.html.tmpl
var source string

var layout = template.Must(template.New("page").Parse(source))

// Pages are those of the codes. Unless a deployment has all products, the codes that media and
// payments alone answer are left out.
type Pages struct {
	Site *docsite.Site
	All  bool
}

// Codes are those that have a page.
func (p Pages) Codes() []decision.Info {
	return slices.DeleteFunc(decision.All(), func(i decision.Info) bool { return !p.All && ofProducts(i.Code) })
}

// Chapter is the page of all codes as the menu names it.
func (p Pages) Chapter() docsite.Chapter {
	return docsite.Chapter{Name: "errors", Title: "Error codes", Link: Root}
}

// Entries are the codes as search finds them.
func (p Pages) Entries() (list []search.Entry) {
	for _, i := range p.Codes() {
		list = append(list, search.Entry{Title: string(i.Code), Page: i.Message, Kind: "Error", Link: Root + "/" + string(i.Code),
			Text: entry{Code: i.Code, Status: i.Status}.StatusText() + ". " + i.Message + " " + i.Remedy})
	}
	return list
}

// Routes mounts /docs/errors and /docs/errors/{code} under r: pages for browsers, JSON
// for everybody else, see webpage.Wanted.
func (p Pages) Routes(r chi.Router, a httpapi.Adapter) {
	r.Get(Root, a.Handle(func(w http.ResponseWriter, r *http.Request) error {
		return p.show(w, r, p.Codes()...)
	}))
	r.Get(Root+"/{code}", a.Handle(func(w http.ResponseWriter, r *http.Request) error {
		code := decision.Code(chi.URLParam(r, "code"))
		list := p.Codes()
		i := slices.IndexFunc(list, func(i decision.Info) bool { return i.Code == code })
		if i < 0 {
			return apierror.Errorf(decision.NotFound, "There is no such error code.")
		}
		return p.show(w, r, list[i])
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
func (p Pages) show(w http.ResponseWriter, r *http.Request, list ...decision.Info) error {
	entries := make([]entry, len(list))
	for i, info := range list {
		entries[i] = entry{info.Code, info.Status, info.Message, info.Remedy}
	}
	w.Header().Set("Vary", "Accept")
	if !webpage.Wanted(r) {
		w.Header().Set("Cache-Control", kept)
		httpapi.JSON(w, http.StatusOK, struct {
			Data []entry `json:"data"`
		}{entries})
		return nil
	}
	page := docsite.Page{Name: "errors", Title: "Error codes"}
	data := struct {
		One     bool
		Entries []entry
	}{len(entries) == 1, entries}
	if data.One {
		page.Title = string(entries[0].Code)
	}
	var b bytes.Buffer
	if err := layout.Execute(&b, data); err != nil {
		return err
	}
	page.Body = template.HTML(b.String()) //nolint:gosec // the template escapes
	return p.Site.Show(w, page, kept)
}

// kept says who may keep an answer, and for how long.
const kept = "public, max-age=3600"

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
			list = append(list, part{Text: reference, Link: docsite.Root + "/reference"}, part{Text: after})
		}
	}
	return list
}
