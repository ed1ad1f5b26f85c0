package docsite

import (
	"bytes"
	"html/template"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
	"sluice.dev/sluice/platform/http/webpage"
)

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
	body, err := converted(md, raw)
	if err != nil {
		return p, err
	}
	p.Body = template.HTML(setting.ReplaceAllString(s.both(string(body)), `<tr id="$1"><td><code>$1</code></td>`)) //nolint:gosec // see Page
	p.markdown = s.markdown(raw)
	return p, nil
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
	t.page.sections, t.page.Contents, t.page.About = sections(doc, reader.Source())
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
