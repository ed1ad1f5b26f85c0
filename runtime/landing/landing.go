// Package landing serves the page at the runtime's root: what it is, a command that
// works, and a box to try it in.
package landing

import (
	_ "embed"
	"html/template"
	"net/http"
	"strings"

	"sluice.dev/sluice/platform/http/webpage"
)

var (
	//go:embed page.html
	page string
	//go:embed try.js
	script string
	//go:embed page.css
	style string

	parsed = template.Must(template.New("page").Parse(page))
)

// policy lets the page run its own script and style, and call its own origin,
// and nothing else.
var policy = webpage.Allow{Scripts: []string{script}, Styles: []string{style}, Connect: "'self'"}.Policy()

// Config says what the page shows.
type Config struct {
	PublicURL string // address of the runtime; empty: that of the request
	Docs      string // address of the documentation; empty: no link
	Model     string // that the examples ask
}

// Handler serves GET /.
func Handler(c Config) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		base := c.PublicURL
		if base == "" {
			base = "http://" + host(r.Host)
		}
		err := webpage.Write(w, parsed, "page", map[string]any{
			"Base": base, "Docs": c.Docs, "Model": c.Model,
			"Script": template.JS(script), "Style": template.CSS(style), // ours, from files of the binary
		}, webpage.Answer{Policy: policy, Cache: "no-cache"})
		if err != nil {
			http.Error(w, "the page is broken", http.StatusInternalServerError)
		}
	})
}

// host drops what cannot be in a host from a Host header.
func host(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '.' || r == '-' || r == ':' || r == '[' || r == ']' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return -1
	}, s)
}
