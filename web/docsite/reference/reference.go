// Package reference serves references of APIs, that of the public one at /docs/reference of
// the gateway: a list of its operations by product and tag, and a page of each, made
// from the OpenAPI document in force.
//
// The document has texts of strangers: whatever stands in it is shown escaped, and
// Markdown in it has no HTML. A page has at most listed operations, or maxRows rows
// of tables and maxText bytes of the document's texts.
package reference

import (
	"bytes"
	"cmp"
	"context"
	"html/template"
	"net/http"
	"strconv"
	"strings"
	"sync"

	_ "embed"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/web/docsite"
	"sluice.dev/sluice/web/docsite/search"
)

// Root is the path of the public API's list; the page of an operation is below it, by operationId.
const Root = docsite.Root + "/reference"

// maxKept is how many bytes of pages are kept for the next reader.
const maxKept = 8 << 20

// maxPage is how many bytes a page has at the most, beside the path and the command of
// its operation.
const maxPage = 1 << 20

//go:embed pages.html
var source string

var layout = template.Must(template.New("pages").Parse(source))

// API is whose reference it is. The zero value is the public API.
type API struct {
	Path    string // of the list; "": Root
	Title   string // "": API reference
	About   string // a sentence on who it is for
	Address string // the variable with its address, where the document has none; "": SLUICE_GATEWAY_URL
	Key     string // the variable with a credential; "": SLUICE_API_KEY
	JSON    string // where the document is served; "": /openapi.json
}

// Pages are the reference.
type Pages struct {
	API
	// Document returns the OpenAPI document in force, in JSON. Pages are made anew when
	// it has changed.
	Document func(context.Context) ([]byte, error)
	Site     *docsite.Site
	// Codes are those that errors may have.
	Codes []decision.Info

	mu    sync.Mutex // one page is made at a time
	text  []byte
	index *index
	kept  map[string]docsite.Page
	size  int // of kept, in bytes
	found *search.Index
}

// about is the API, with what it left out.
func (p *Pages) about() API {
	a := p.API
	a.Path, a.Title, a.JSON = cmp.Or(a.Path, Root), cmp.Or(a.Title, "API reference"), cmp.Or(a.JSON, "/openapi.json")
	a.Address, a.Key = cmp.Or(a.Address, "SLUICE_GATEWAY_URL"), cmp.Or(a.Key, "SLUICE_API_KEY")
	return a
}

// Chapter is the reference as the menu names it.
func (p *Pages) Chapter() docsite.Chapter {
	a := p.about()
	return docsite.Chapter{Name: a.name(), Title: a.Title, Link: a.Path}
}

func (a API) name() string { return strings.TrimPrefix(a.Path, docsite.Root+"/") }

// Routes mounts the pages. They are open to everyone.
func (p *Pages) Routes(r chi.Router, a httpapi.Adapter) {
	root := p.about().Path
	r.Get(root, a.Handle(func(w http.ResponseWriter, r *http.Request) error {
		n := 1
		if s := r.URL.Query().Get("page"); s != "" {
			var err error
			if n, err = strconv.Atoi(s); err != nil {
				return missing
			}
		}
		return p.show(w, r, "page "+strconv.Itoa(n), func(x *index) (docsite.Page, error) { return x.list(n) })
	}))
	r.Get(root+"/{operation}", a.Handle(func(w http.ResponseWriter, r *http.Request) error {
		id := chi.URLParam(r, "operation")
		return p.show(w, r, "operation "+id, func(x *index) (docsite.Page, error) { return x.page(id) })
	}))
}

var missing = apierror.Errorf(decision.NotFound, "There is no such page of the reference; its first page lists all operations.")

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
	if err := p.follow(text); err != nil {
		return docsite.Page{}, err
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

// follow reads the document, if it is another one. The caller holds mu.
func (p *Pages) follow(text []byte) error {
	if p.index != nil && bytes.Equal(p.text, text) { // at once when it is the same slice
		return nil
	}
	x, err := newIndex(text, p.about(), p.Codes)
	if err != nil {
		return err
	}
	p.text, p.index, p.kept, p.size, p.found = text, x, map[string]docsite.Page{}, 0, nil
	return nil
}

// Index is how search finds the operations of the document in force.
func (p *Pages) Index(ctx context.Context) (*search.Index, error) {
	text, err := p.Document(ctx)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.follow(text); err != nil {
		return nil, err
	}
	if p.found == nil {
		p.found = search.New(p.index.entries())
	}
	return p.found, nil
}

// rendered makes a page of a template.
func (x *index) rendered(template, title string, data any) (docsite.Page, error) {
	var b bytes.Buffer
	if err := layout.ExecuteTemplate(&b, template, data); err != nil {
		return docsite.Page{}, err
	}
	return docsite.Page{Name: x.api.name(), Title: title, Body: html(b.String())}, nil
}

// html is what templates of this package have escaped already.
func html(s string) template.HTML { return template.HTML(s) } //nolint:gosec // see above
