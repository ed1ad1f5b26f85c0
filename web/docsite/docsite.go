// Package docsite serves the documentation that is built into the binary, at
// /docs of the gateway: Markdown of the folder docs, made into pages that look like
// the dashboard.
package docsite

import (
	"cmp"
	"embed"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"path"
	"slices"
	"strings"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/platform/http/webpage"
)

// Root is the path under which the documentation is served.
const Root = "/docs"

// first is the page that is shown at Root.
const first = "quickstart"

// Page is one page, as HTML.
type Page struct {
	Name     string // of its file, without the end
	Title    string
	Body     template.HTML // made from Markdown in which HTML does not count, or by a template
	Contents []Heading     // of the page
	About    string        // its first sentence

	sections []*section // what search finds of it
	markdown []byte     // nil: it has none
}

// Heading is a heading within a page.
type Heading struct {
	ID, Title string
	Level     int // 2 or 3
}

// Link is where the page is served.
func (p Page) Link() string { return Root + "/" + p.Name }

// Markdown is where its text is served; "": nowhere.
func (p Page) Markdown() string {
	if p.markdown == nil {
		return ""
	}
	return p.Link() + ".md"
}

//go:embed page.html
var source string

//go:embed assets
var assets embed.FS

// Site is the documentation, made into pages.
type Site struct {
	all     bool // it has all products
	menu    []group
	pages   map[string]Page
	order   []string       // of the pages, as the menu has them
	files   *webpage.Files // style, script and pictures
	without []string       // pages that are left out
	layout  *template.Template
	finder  finder
}

// Source is a page that stands in no file of docs.
type Source struct {
	Name     string
	Markdown []byte
}

// Routes mounts the pages, and the files that they need.
func (s *Site) Routes(r chi.Router, a httpapi.Adapter) {
	r.Get(Root, a.Handle(s.show))
	r.Get(Root+"/", a.Handle(s.show))
	r.Get(Root+"/{name}", a.Handle(s.show))
	r.Get(Root+"/search", a.Handle(s.search))
	r.Get(Root+"/assets/{name}", a.Handle(s.files.Serve))
	r.Get("/llms.txt", a.Handle(s.show))
	r.Get("/llms-full.txt", a.Handle(s.show))
}

// New makes the pages from the Markdown and the pictures in docs, and from more: with what is marked
// as being of media, chat, schedules and payments, or without. What leads to a page that
// is left out stays as text.
func New(docs fs.FS, all bool, more ...Source) (*Site, error) {
	files, err := webpage.NewFiles(Root+"/assets/", assets, "assets/*")
	if err != nil {
		return nil, err
	}
	if err := addPictures(files, pictures{docs, all}); err != nil {
		return nil, err
	}
	s := &Site{all: all, pages: map[string]Page{}, files: files}
	s.layout, err = template.New("page").Funcs(template.FuncMap{"asset": files.Path}).Parse(source)
	if err != nil {
		return nil, err
	}
	names, err := fs.Glob(docs, "*.md")
	if err != nil {
		return nil, err
	}
	for _, file := range names {
		raw, err := fs.ReadFile(docs, file)
		if err != nil {
			return nil, err
		}
		more = append(more, Source{strings.TrimSuffix(file, ".md"), raw})
	}
	return s, s.make(more)
}

// make makes the pages of texts, and the menu.
func (s *Site) make(texts []Source) error {
	kept := map[string][]byte{}
	for _, t := range texts {
		raw, err := shown(t.Markdown, s.all)
		switch {
		case err != nil:
			return fmt.Errorf("%s: %w", t.Name, err)
		case raw == nil:
			s.without = append(s.without, t.Name)
		default:
			kept[t.Name] = raw
		}
	}
	for name, raw := range kept {
		p, err := s.render(name, raw)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		s.pages[name] = p
	}
	s.menu = s.grouped()
	for _, g := range s.menu {
		for _, i := range g.Items {
			if _, ok := s.pages[i.Name]; ok {
				s.order = append(s.order, i.Name)
			}
		}
	}
	return nil
}

// show answers with a page, or its Markdown. Pages change with the binary only.
func (s *Site) show(w http.ResponseWriter, r *http.Request) error {
	switch path.Base(r.URL.Path) { // at the root too, where programs look for it
	case "llms.txt":
		w.Header().Set("Cache-Control", kept)
		return write(w, "text/plain; charset=utf-8", s.contents())
	case "llms-full.txt":
		w.Header().Set("Cache-Control", kept)
		return write(w, "text/plain; charset=utf-8", s.whole())
	}
	name := cmp.Or(chi.URLParam(r, "name"), first)
	name, asText := strings.CutSuffix(name, ".md")
	p, ok := s.pages[name]
	if !ok {
		return apierror.Errorf(decision.NotFound, "There is no such page; "+Root+"/search finds what is there.")
	}
	if asText {
		w.Header().Set("Cache-Control", kept)
		return write(w, "text/markdown; charset=utf-8", p.markdown)
	}
	return s.Show(w, p, kept)
}

// kept says who may keep a page, and for how long.
const kept = "public, max-age=300"

// policy lets a page have its files, and look for what is typed.
var policy = webpage.Allow{Files: true, Images: "'self'", Connect: "'self'", Forms: "'self'"}.Policy()

// view is a page, and what stands around it.
type view struct {
	Page
	Menu         []group
	Before, Next *Page
	Moved        []moved
	Query        string // that stands in the field of search
}

// Show answers with a page, which need not be one of docs, beside the menu. cache says
// who may keep it, and for how long.
func (s *Site) Show(w http.ResponseWriter, p Page, cache string) error {
	v := view{Page: p, Menu: s.menu, Moved: s.movedFrom(p.Name)}
	if i := slices.Index(s.order, p.Name); i >= 0 && p.markdown != nil {
		v.Before, v.Next = s.at(i-1), s.at(i+1)
	}
	return webpage.Write(w, s.layout, "page", v, webpage.Answer{Policy: policy, Cache: cache})
}

// at is a page by its place in the menu; nil: there is none.
func (s *Site) at(i int) *Page {
	if i < 0 || i >= len(s.order) {
		return nil
	}
	p := s.pages[s.order[i]]
	return &p
}
