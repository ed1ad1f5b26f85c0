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
	"sluice.dev/sluice/platform/http/webpage"
	"sluice.dev/sluice/workers/webhooks/catalogue"
)

//go:embed page.html.tmpl
var source string

var page = template.Must(template.New("page").Funcs(template.FuncMap{"indent": indent}).Parse(source))

// Pages are of some events: those that happen in a deployment.
type Pages struct{ Types []catalogue.Type }

// Routes mounts /docs/events and /docs/events/{name}. They are open to everyone.
func (p Pages) Routes(r chi.Router, a httpapi.Adapter) {
	r.Get("/docs/events", a.Handle(func(w http.ResponseWriter, _ *http.Request) error {
		return show(w, p.Types...)
	}))
	r.Get("/docs/events/{name}", a.Handle(func(w http.ResponseWriter, r *http.Request) error {
		i := slices.IndexFunc(p.Types, func(t catalogue.Type) bool { return t.Name == chi.URLParam(r, "name") })
		if i < 0 {
			return apierror.Errorf(decision.NotFound, "There is no such event.")
		}
		return show(w, p.Types[i])
	}))
}

// policy lets the page have the shared style and nothing else.
var policy = webpage.Allow{Styles: []string{webpage.Style}}.Policy()

// show writes the page of some events. It may be kept for an hour.
func show(w http.ResponseWriter, types ...catalogue.Type) error {
	return webpage.Write(w, page, "page", struct {
		Style template.CSS
		Types []catalogue.Type
	}{template.CSS(webpage.Style), types}, webpage.Answer{Policy: policy, Cache: "public, max-age=3600"})
}

// indent lays JSON out for reading.
func indent(raw json.RawMessage) (string, error) {
	var b bytes.Buffer
	err := json.Indent(&b, raw, "", "  ")
	return b.String(), err
}
