package docsite

import (
	"bytes"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// linked is a link or a picture of Markdown.
var linked = regexp.MustCompile(`(!?)\[([^\]\n]*)\]\(([^)\s]+)\)`)

// markdown is a page's text as programs get it: links lead to what is served, and those to
// anything else are text.
func (s *Site) markdown(raw []byte) []byte {
	var b bytes.Buffer
	fence := false
	for line := range bytes.Lines(raw) {
		if bytes.HasPrefix(bytes.TrimSpace(line), []byte("```")) {
			fence = !fence
		}
		if fence {
			b.Write(line)
			continue
		}
		b.Write(linked.ReplaceAllFunc(line, func(found []byte) []byte {
			m := linked.FindSubmatch(found)
			to := string(m[3])
			if len(m[1]) > 0 {
				return fmt.Appendf(nil, "![%s](%s)", m[2], s.files.Path(to))
			}
			at, ok := link(to)
			name, fragment, _ := strings.Cut(strings.TrimPrefix(at, Root+"/"), "#")
			switch {
			case !ok || slices.Contains(s.without, name):
				return m[2]
			case at == to: // it led there before
				return found
			case fragment != "":
				fragment = "#" + fragment
			}
			return fmt.Appendf(nil, "[%s](%s/%s.md%s)", m[2], Root, name, fragment)
		}))
	}
	return b.Bytes()
}

// contents is llms.txt: what there is to read, for programs. https://llmstxt.org
func (s *Site) contents() []byte {
	var b bytes.Buffer
	b.WriteString("# Sluice\n\n> An API gateway: it checks keys, scopes and rate limits in front of an API, counts what is used, and tells the API who is calling.\n\n" +
		"Each page below is Markdown; all of them in one text: [llms-full.txt](/llms-full.txt). A search: `GET " + Root + "/search?q=WORDS&format=json`. " +
		"The API of this gateway: [OpenAPI](/openapi.json). Errors: `GET " + Root + "/errors?format=json`.\n")
	for _, g := range s.menu {
		fmt.Fprintf(&b, "\n## %s\n\n", g.Name)
		for _, i := range g.Items {
			p, ok := s.pages[i.Name]
			if !ok {
				fmt.Fprintf(&b, "- [%s](%s)\n", i.Title, i.Link)
				continue
			}
			fmt.Fprintf(&b, "- [%s](%s): %s\n", p.Title, p.Markdown(), p.About)
		}
	}
	return b.Bytes()
}

// whole is llms-full.txt: all pages.
func (s *Site) whole() []byte {
	var b bytes.Buffer
	for i, name := range s.order {
		if i > 0 {
			b.WriteString("\n\n---\n\n")
		}
		fmt.Fprintf(&b, "<!-- %s/%s -->\n\n", Root, name)
		b.Write(bytes.TrimSpace(s.pages[name].markdown))
	}
	b.WriteByte('\n')
	return b.Bytes()
}

// write answers with a text that no browser takes for anything else.
func write(w http.ResponseWriter, kind string, body []byte) error {
	w.Header().Set("Content-Type", kind)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	_, _ = w.Write(body) // the client is gone otherwise
	return nil
}
