// Package eventdocs serves the documentation of the events that webhooks
// deliver: a page of all and one of each, made from the catalogue that
// publishing is checked against.
package eventdocs

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"html/template"
	"net/http"
	"slices"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/web/docsite"
	"sluice.dev/sluice/web/docsite/search"
	"sluice.dev/sluice/workers/webhooks/catalogue"
)

// Root is the path of the page of all events; that of one is below it.
const Root = docsite.Root + "/events"

//go:embed page.html.tmpl
var source string

var layout = template.Must(template.New("page").Funcs(template.FuncMap{"indent": indent}).Parse(source))

// Pages are of some events: those that happen in a deployment.
type Pages struct {
	Types []catalogue.Type
	Site  *docsite.Site
}

// Chapter is the page of all events as the menu names it.
func (p Pages) Chapter() docsite.Chapter {
	return docsite.Chapter{Name: "events", Title: "Webhook events", Link: Root}
}

// Entries are the events as search finds them.
func (p Pages) Entries() (list []search.Entry) {
	for _, t := range p.Types {
		list = append(list, search.Entry{Title: t.Name, Page: "Webhook events", Kind: "Event", Link: Root + "/" + t.Name, Text: t.Description})
	}
	return list
}

// Routes mounts /docs/events and /docs/events/{name}. They are open to everyone.
func (p Pages) Routes(r chi.Router, a httpapi.Adapter) {
	r.Get(Root, a.Handle(func(w http.ResponseWriter, _ *http.Request) error {
		return p.show(w, "Webhook events", p.Types...)
	}))
	r.Get(Root+"/{name}", a.Handle(func(w http.ResponseWriter, r *http.Request) error {
		i := slices.IndexFunc(p.Types, func(t catalogue.Type) bool { return t.Name == chi.URLParam(r, "name") })
		if i < 0 {
			return apierror.Errorf(decision.NotFound, "There is no such event.")
		}
		return p.show(w, p.Types[i].Name, p.Types[i])
	}))
}

// show writes the page of some events. It may be kept for an hour.
func (p Pages) show(w http.ResponseWriter, title string, types ...catalogue.Type) error {
	var b bytes.Buffer
	if err := layout.Execute(&b, types); err != nil {
		return err
	}
	return p.Site.Show(w, docsite.Page{Name: "events", Title: title, Body: template.HTML(b.String())}, "public, max-age=3600") //nolint:gosec // the template escapes
}

// indent lays JSON out for reading.
func indent(raw json.RawMessage) (string, error) {
	var b bytes.Buffer
	err := json.Indent(&b, raw, "", "  ")
	return b.String(), err
}
