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

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/controlplane"
	"sluice.dev/sluice/controlplane/respond"
	"sluice.dev/sluice/controlplane/webhooks/catalogue"
	"sluice.dev/sluice/filters/decision"
)

//go:embed page.html.tmpl
var source string

var page = template.Must(template.New("page").Funcs(template.FuncMap{"indent": indent}).Parse(source))

// Routes mounts /docs/events and /docs/events/{name}. They are open to everyone.
func Routes(a respond.Adapter) func(chi.Router) {
	return func(r chi.Router) {
		r.Get("/docs/events", a.Handle(func(w http.ResponseWriter, _ *http.Request) error {
			return show(w, catalogue.All()...)
		}))
		r.Get("/docs/events/{name}", a.Handle(func(w http.ResponseWriter, r *http.Request) error {
			t, ok := catalogue.Lookup(chi.URLParam(r, "name"))
			if !ok {
				return controlplane.Errorf(decision.NotFound, "There is no such event.")
			}
			return show(w, t)
		}))
	}
}

// show writes the page of some events. It is made whole before the first byte is
// sent, so that a failure is still an error page.
func show(w http.ResponseWriter, types ...catalogue.Type) error {
	var b bytes.Buffer
	if err := page.Execute(&b, types); err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "public, max-age=3600")
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
	_, err := b.WriteTo(w)
	return err
}

// indent lays JSON out for reading.
func indent(raw json.RawMessage) (string, error) {
	var b bytes.Buffer
	err := json.Indent(&b, raw, "", "  ")
	return b.String(), err
}
