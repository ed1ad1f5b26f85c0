// Package reference serves the reference of the public API at /docs/reference of
// the gateway: a list of its operations by product and tag, and a page of each, made
// from the OpenAPI document in force.
//
// The document has texts of strangers: whatever stands in it is shown escaped, and
// Markdown in it has no HTML. A page has at most listed operations, or maxRows rows
// of tables and maxText bytes of the document's texts.
package reference

import (
	"bytes"
	"context"
	"html/template"
	"net/http"
	"strconv"
	"sync"

	_ "embed"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/web/docsite"
)

// Root is the path of the list; the page of an operation is below it, by operationId.
const Root = docsite.Root + "/reference"

// maxKept is how many bytes of pages are kept for the next reader.
const maxKept = 8 << 20

// maxPage is how many bytes a page has at the most, beside the path and the command of
// its operation.
const maxPage = 1 << 20

//go:embed pages.html
var source string

var layout = template.Must(template.New("pages").Parse(source))

// Pages are the reference.
type Pages struct {
	// Document returns the OpenAPI document in force, in JSON. Pages are made anew when
	// it has changed.
	Document func(context.Context) ([]byte, error)
	Site     *docsite.Site

	mu    sync.Mutex // one page is made at a time
	text  []byte
	index *index
	kept  map[string]docsite.Page
	size  int // of kept, in bytes
}

// Routes mounts the pages. They are open to everyone.
func (p *Pages) Routes(r chi.Router, a httpapi.Adapter) {
	r.Get(Root, a.Handle(func(w http.ResponseWriter, r *http.Request) error {
		n := 1
		if s := r.URL.Query().Get("page"); s != "" {
			var err error
			if n, err = strconv.Atoi(s); err != nil {
				return missing
			}
		}
		return p.show(w, r, "page "+strconv.Itoa(n), func(x *index) (docsite.Page, error) { return x.list(n) })
	}))
	r.Get(Root+"/{operation}", a.Handle(func(w http.ResponseWriter, r *http.Request) error {
		id := chi.URLParam(r, "operation")
		return p.show(w, r, "operation "+id, func(x *index) (docsite.Page, error) { return x.page(id) })
	}))
}

var missing = apierror.Errorf(decision.NotFound, "There is no such page of the reference; "+Root+" lists all operations.")

// show answers with the page of a name, which is made when it is not kept.
func (p *Pages) show(w http.ResponseWriter, r *http.Request, name string, made func(*index) (docsite.Page, error)) error {
	text, err := p.Document(r.Context())
	if err != nil {
		return err
	}
	page, err := p.page(text, name, made)
	if err != nil {
		return err
	}
	return p.Site.Show(w, page, "public, max-age=60")
}

func (p *Pages) page(text []byte, name string, made func(*index) (docsite.Page, error)) (docsite.Page, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.index == nil || !bytes.Equal(p.text, text) { // at once when it is the same slice
		x, err := newIndex(text)
		if err != nil {
			return docsite.Page{}, err
		}
		p.text, p.index, p.kept, p.size = text, x, map[string]docsite.Page{}, 0
	}
	if page, ok := p.kept[name]; ok {
		return page, nil
	}
	page, err := made(p.index)
	if err != nil {
		return page, err
	}
	if p.size += len(page.Body); p.size > maxKept {
		clear(p.kept)
		p.size = len(page.Body)
	}
	p.kept[name] = page
	return page, nil
}

// rendered makes a page of a template.
func rendered(template, title string, data any) (docsite.Page, error) {
	var b bytes.Buffer
	if err := layout.ExecuteTemplate(&b, template, data); err != nil {
		return docsite.Page{}, err
	}
	return docsite.Page{Name: "reference", Title: title, Body: html(b.String())}, nil
}

// html is what templates of this package have escaped already.
func html(s string) template.HTML { return template.HTML(s) } //nolint:gosec // see above
