// Package docsite serves the documentation that is built into the binary, at
// /docs of the gateway: Markdown of the folder docs, made into pages that look like
// the dashboard.
package docsite

import (
	"bytes"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"path"
	"regexp"
	"slices"
	"strings"

	_ "embed"

	"github.com/go-chi/chi/v5"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/platform/http/webpage"
)

// Root is the path under which the documentation is served.
const Root = "/docs"

// groups are the parts of the menu, with the names of their pages in order. What
// is in no group stands in the last one.
var groups = []group{
	{Name: "Get started", names: []string{"quickstart", "install", "concepts", "config", "compare"}},
	{Name: "Your API", names: []string{"api", "keys", "import-openapi", "validation", "requests", "usage", "billing", "webhooks", "oauth", "agents", "openapi", "clients"}},
	{Name: "Traffic", names: []string{"websocket", "grpc", "rollouts", "rehearsal", "shadow", "caching", "certificates", "client-certificates"}},
	{Name: "Come from elsewhere", names: []string{"from-kong", "from-unkey", "behind-nginx"}},
	{Name: "Products of the platform", names: []string{"tour", "runtime", "schedules", "media", "captions", "engines", "x402", "phone", "dash", "editor", "broadcast", "voice", "vision", "moq"}},
	{Name: "Operate", names: []string{"operations", "dashboard", "cli", "settings", "profiles", "fleet", "security", "hardening", "docker", "kubernetes"}},
	{Name: "More"},
}

// first is the page that is shown at Root.
const first = "quickstart"

// group is a part of the menu.
type group struct {
	Name  string
	names []string
	Pages []Page
}

// Page is one page, as HTML.
type Page struct {
	Name  string // of its file, without the end
	Title string
	Body  template.HTML // made from Markdown in which HTML does not count, or by a template
}

// Link is where the page is served.
func (p Page) Link() string { return Root + "/" + p.Name }

//go:embed page.html
var source string

// Site is the documentation, made into pages.
type Site struct {
	menu    []group
	pages   map[string]Page
	files   *webpage.Files // style and pictures
	without []string       // pages that are left out
	layout  *template.Template
}

// Routes mounts the pages, and the files that they need.
func (s *Site) Routes(r chi.Router, a httpapi.Adapter) {
	r.Get(Root, a.Handle(s.show))
	r.Get(Root+"/", a.Handle(s.show))
	r.Get(Root+"/{name}", a.Handle(s.show))
	r.Get(Root+"/assets/{name}", a.Handle(s.files.Serve))
}

// New makes the pages from the Markdown and the pictures in docs: with what is marked
// as being of media, chat, schedules and payments, or without. What leads to a page that
// is left out stays as text.
func New(docs fs.FS, all bool) (*Site, error) {
	files, err := webpage.NewFiles(Root+"/assets/", pictures{docs, all}, "*.svg")
	if err != nil {
		return nil, err
	}
	s := &Site{pages: map[string]Page{}, files: files}
	s.layout, err = template.New("page").Funcs(template.FuncMap{"asset": files.Path}).Parse(source)
	if err != nil {
		return nil, err
	}
	names, err := fs.Glob(docs, "*.md")
	if err != nil {
		return nil, err
	}
	texts := map[string][]byte{}
	for _, file := range names {
		raw, err := fs.ReadFile(docs, file)
		if err != nil {
			return nil, err
		}
		name := strings.TrimSuffix(file, ".md")
		if raw, err = shown(raw, all); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		if raw == nil {
			s.without = append(s.without, name)
			continue
		}
		texts[name] = raw
	}
	for name, raw := range texts {
		if s.pages[name], err = s.render(name, raw); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	s.menu = menu(s.pages)
	return s, nil
}

// menu puts pages into their groups.
func menu(pages map[string]Page) (list []group) {
	left := map[string]Page{}
	for name, p := range pages {
		left[name] = p
	}
	for _, g := range groups {
		for _, name := range g.names {
			if p, ok := left[name]; ok {
				g.Pages = append(g.Pages, p)
				delete(left, name)
			}
		}
		if g.names == nil {
			for _, p := range left {
				g.Pages = append(g.Pages, p)
			}
			slices.SortFunc(g.Pages, func(a, b Page) int { return strings.Compare(a.Title, b.Title) })
		}
		if g.Pages != nil {
			list = append(list, g)
		}
	}
	return list
}

// headless is the head of a table whose columns have no names: Markdown has no
// tables without a head.
var headless = regexp.MustCompile(`<thead>\s*<tr>\s*(<th[^>]*></th>\s*)+</tr>\s*</thead>\s*`)

// unnamed is the head of a column without a name, which is no heading to a screen reader.
var unnamed = regexp.MustCompile(`<th([^>]*)></th>`)

// render makes a page from Markdown. Its title is the first heading.
func (s *Site) render(name string, raw []byte) (Page, error) {
	p := Page{Name: name, Title: name}
	md := goldmark.New(goldmark.WithExtensions(extension.GFM),
		goldmark.WithParserOptions(parser.WithAutoHeadingID(), parser.WithASTTransformers(util.Prioritized(served{s.files, &p, s.without}, 100))))
	var err error
	p.Body, err = converted(md, raw)
	return p, err
}

// converted is Markdown as HTML.
func converted(md goldmark.Markdown, raw []byte) (template.HTML, error) {
	var b bytes.Buffer
	if err := md.Convert(raw, &b); err != nil {
		return "", err
	}
	// Tables and code that are too wide scroll in a box of their own, by keyboard too.
	html := strings.NewReplacer("<table>", `<div class="scroll" tabindex="0" role="group" aria-label="Table"><table>`, "</table>", "</table></div>",
		"<pre>", `<pre tabindex="0">`).Replace(b.String())
	return template.HTML(unnamed.ReplaceAllString(headless.ReplaceAllString(html, ""), "<td$1></td>")), nil //nolint:gosec // see Page
}

// strangers reads Markdown that others wrote: HTML in it is text.
var strangers = goldmark.New(goldmark.WithExtensions(extension.GFM), goldmark.WithParser(parser.NewParser(
	parser.WithBlockParsers(but(parser.DefaultBlockParsers(), parser.NewHTMLBlockParser())...),
	parser.WithInlineParsers(but(parser.DefaultInlineParsers(), parser.NewRawHTMLParser())...),
	parser.WithParagraphTransformers(parser.DefaultParagraphTransformers()...),
)))

// but is a list of parsers without one of them.
func but(list []util.PrioritizedValue, one any) []util.PrioritizedValue {
	return slices.DeleteFunc(list, func(v util.PrioritizedValue) bool { return v.Value == one })
}

// Text is Markdown of others, as HTML: HTML in it is shown as it stands there, and no
// link of it does more than lead somewhere. The caller bounds raw.
func Text(raw []byte) template.HTML {
	text, err := converted(strangers, raw)
	if err != nil { // a buffer takes everything
		return template.HTML(template.HTMLEscapeString(string(raw))) //nolint:gosec // escaped
	}
	return text
}

// served changes what a page's text says of files to what is served.
type served struct {
	files   *webpage.Files
	page    *Page
	without []string
}

// Transform implements parser.ASTTransformer.
func (t served) Transform(doc *ast.Document, reader text.Reader, _ parser.Context) {
	var beside []*ast.Link // links to what is not served
	_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Heading:
			if n.Level == 1 && t.page.Title == t.page.Name {
				t.page.Title = string(n.Lines().Value(reader.Source()))
			}
		case *ast.Image:
			n.Destination = []byte(t.files.Path(string(n.Destination)))
		case *ast.Link:
			to, ok := link(string(n.Destination))
			name, _, _ := strings.Cut(strings.TrimPrefix(to, Root+"/"), "#")
			if !ok || slices.Contains(t.without, name) {
				beside = append(beside, n)
			}
			n.Destination = []byte(to)
		}
		return ast.WalkContinue, nil
	})
	for _, n := range beside { // their text stays
		for c := n.FirstChild(); c != nil; c = n.FirstChild() {
			n.Parent().InsertBefore(n.Parent(), n, c)
		}
		n.Parent().RemoveChild(n.Parent(), n)
	}
}

// link is where a link of a page leads when it is served; ok is false when it
// leads to a file of the project that is not.
func link(to string) (served string, ok bool) {
	if strings.HasPrefix(to, "#") || strings.HasPrefix(to, "/") || strings.Contains(to, "://") {
		return to, true
	}
	file, fragment, _ := strings.Cut(to, "#")
	name, ok := strings.CutSuffix(file, ".md")
	if !ok || strings.Contains(name, "/") {
		return to, false
	}
	if fragment != "" {
		fragment = "#" + fragment
	}
	return path.Join(Root, name) + fragment, true
}

// show answers with a page. Pages change with the binary only.
func (s *Site) show(w http.ResponseWriter, r *http.Request) error {
	name := chi.URLParam(r, "name")
	if name == "" {
		name = first
	}
	p, ok := s.pages[name]
	if !ok {
		return apierror.Errorf(decision.NotFound, "There is no such page.")
	}
	return s.Show(w, p, "public, max-age=300")
}

// Show answers with a page, which need not be one of docs, beside the menu. cache says
// who may keep it, and for how long.
func (s *Site) Show(w http.ResponseWriter, p Page, cache string) error {
	return webpage.Write(w, s.layout, "page", struct {
		Page
		Menu []group
	}{p, s.menu}, webpage.Answer{Policy: webpage.Allow{Files: true, Images: "'self'"}.Policy(), Cache: cache})
}
