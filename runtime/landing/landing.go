// Package landing is the page at the runtime's root: what it is, a command that
// works, and a box to try it in.
package landing

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"html/template"
	"net/http"
	"strconv"
	"strings"
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
var policy = "default-src 'none'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; img-src data:" +
	"; script-src 'sha256-" + digest(script) + "'; style-src 'sha256-" + digest(style) + "'"

// digest is a source's hash as the policy writes it.
func digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return base64.StdEncoding.EncodeToString(sum[:])
}

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
		// The page is made whole first: a half page has no error status.
		var b bytes.Buffer
		err := parsed.Execute(&b, map[string]any{
			"Base": base, "Docs": c.Docs, "Model": c.Model,
			"Script": template.JS(script), "Style": template.CSS(style), // ours, from files of the binary
		})
		if err != nil {
			http.Error(w, "the page is broken", http.StatusInternalServerError)
			return
		}
		h := w.Header()
		h.Set("Content-Type", "text/html; charset=utf-8")
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-cache")
		h.Set("Content-Length", strconv.Itoa(b.Len()))
		_, _ = w.Write(b.Bytes()) // the client is gone otherwise
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
