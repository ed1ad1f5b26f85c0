package webpage

import (
	_ "embed"
	"html/template"
	"net/http"
)

//go:embed inline.html
var inline string

// Inline is a page that is one file: its script and its style stand in it.
type Inline struct {
	body          *template.Template
	script, style string
	policy        string
}

// NewInline returns the page with this body, a template, which may do what a says; the
// script and the style are allowed by their digests. It panics if body is no template.
func NewInline(body, script, style string, a Allow) Inline {
	a.Scripts, a.Styles = []string{script}, []string{style}
	page := template.Must(template.Must(template.New("page").Parse(inline)).New("body").Parse(body))
	return Inline{page, script, style, a.Policy()}
}

// Write answers with the page: its title, and what its body shows.
func (p Inline) Write(w http.ResponseWriter, title string, data any) error {
	return Write(w, p.body, "page", map[string]any{"Title": title, "Data": data,
		"Script": template.JS(p.script), "Style": template.CSS(p.style), // ours, from files of the binary
	}, Answer{Policy: p.policy})
}
