package docsite

import (
	"regexp"
	"strings"

	"github.com/yuin/goldmark/ast"
)

// section is what stands below a heading of a page, up to the next one.
type section struct {
	ID, Title string // "": of the page itself
	text      strings.Builder
}

// sections divides a page at its headings, and lists those of the page in contents.
func sections(doc ast.Node, source []byte) (list []*section, contents []Heading, about string) {
	list = []*section{{}}
	for n := doc.FirstChild(); n != nil; n = n.NextSibling() {
		h, isHeading := n.(*ast.Heading)
		if isHeading && h.Level > 1 && h.Level < 4 {
			id, _ := h.AttributeString("id")
			name, _ := id.([]byte)
			title := plain(h, source)
			list = append(list, &section{ID: string(name), Title: title})
			contents = append(contents, Heading{string(name), title, h.Level})
			continue
		}
		if isHeading && h.Level == 1 {
			continue
		}
		text := plain(n, source)
		if _, isText := n.(*ast.Paragraph); isText && about == "" {
			about = sentence(text)
		}
		into := &list[len(list)-1].text
		into.WriteString(text)
		into.WriteByte(' ')
	}
	return list, contents, about
}

// ends is where a sentence ends.
var ends = regexp.MustCompile(`[.:;] |[.:]$`)

// sentence is the first of a text.
func sentence(text string) string {
	if at := ends.FindStringIndex(text); at != nil {
		return text[:at[0]] + "."
	}
	return text
}

// plain is the text of a node, in one line.
func plain(n ast.Node, source []byte) string {
	var b strings.Builder
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			if n.Type() == ast.TypeBlock {
				b.WriteByte(' ')
			}
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Text:
			b.Write(n.Segment.Value(source))
			if n.SoftLineBreak() || n.HardLineBreak() {
				b.WriteByte(' ')
			}
		case *ast.String:
			b.Write(n.Value)
		case *ast.FencedCodeBlock:
			b.Write(n.Lines().Value(source))
		case *ast.CodeBlock:
			b.Write(n.Lines().Value(source))
		case *ast.HTMLBlock, *ast.RawHTML:
			return ast.WalkSkipChildren, nil
		}
		return ast.WalkContinue, nil
	})
	return strings.Join(strings.Fields(b.String()), " ")
}
