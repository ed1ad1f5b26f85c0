package docsite

import (
	"bytes"
	"context"
	"html/template"
	"net/http"
	"regexp"
	"strings"
	"sync"

	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/platform/http/webpage"
	"sluice.dev/sluice/web/docsite/search"
)

// mostMatches is how many a search shows.
const mostMatches = 20

// finder is what search looks in.
type finder struct {
	more  []search.Entry
	asked []func(context.Context) (*search.Index, error)
	once  sync.Once
	fixed *search.Index // made by the first search
}

// Include has search find entries beside those of the pages. It is called before the first
// page is served.
func (s *Site) Include(entries ...search.Entry) { s.finder.more = append(s.finder.more, entries...) }

// IncludeIndex has search look in an index that may be another one each time. It is called before
// the first page is served.
func (s *Site) IncludeIndex(index func(context.Context) (*search.Index, error)) {
	s.finder.asked = append(s.finder.asked, index)
}

// index is the index of what does not change.
func (s *Site) index() *search.Index {
	s.finder.once.Do(func() { s.finder.fixed = search.New(append(s.entries(), s.finder.more...)) })
	return s.finder.fixed
}

// setting is a row of the table of settings, which has an anchor of its own.
var setting = regexp.MustCompile(`<tr>\s*<td><code>(SLUICE_[A-Z0-9_]+)</code></td>`)

// arguments are what stands behind the words of a command.
var arguments = regexp.MustCompile(` (\[|[A-Z]|<).*`)

// entries are the sections of all pages, the rows of settings, and the usage of commands.
func (s *Site) entries() (list []search.Entry) {
	for _, name := range s.order {
		p := s.pages[name]
		kind := "Guide"
		switch name {
		case "cli":
			kind = "Command"
		case "settings":
			kind = "Setting"
		}
		for _, part := range p.sections {
			if name == "cli" && strings.HasPrefix(part.ID, "sluice-") {
				continue // each of its commands is found by itself
			}
			e := search.Entry{Title: part.Title, Page: p.Title, Kind: kind, Link: p.Link() + "#" + part.ID, Text: part.text.String()}
			if part.ID == "" {
				e.Title, e.Page, e.Link = p.Title, "", p.Link()
			}
			list = append(list, e)
		}
		section := ""
		for line := range strings.Lines(string(p.markdown)) {
			if at, ok := strings.CutPrefix(line, "### "); ok {
				section = strings.ReplaceAll(strings.TrimSpace(at), " ", "-")
			}
			if usage, about, _ := strings.Cut(line, "`: "); name == "cli" && strings.HasPrefix(line, "`sluice ") && section != "" {
				usage = strings.Trim(usage, "`\n")
				list = append(list, search.Entry{Title: strings.TrimSpace(arguments.ReplaceAllString(usage, "")), Page: p.Title, Kind: kind, Link: p.Link() + "#" + section,
					Text: usage + ": " + strings.TrimSpace(about)})
			}
			if name != "settings" {
				continue
			}
			if cells := strings.Split(line, "|"); len(cells) > 4 && strings.HasPrefix(cells[1], " `SLUICE_") {
				id := strings.Trim(cells[1], " `")
				list = append(list, search.Entry{Title: id, Page: p.Title, Kind: kind, Link: p.Link() + "#" + id, Text: strings.TrimSpace(strings.Join(cells[4:], "|"))})
			}
		}
	}
	return list
}

// Find returns what is found for a query, best first; see search.Index.Find for its cost.
func (s *Site) Find(ctx context.Context, query string) ([]search.Match, error) {
	found := [][]search.Match{s.index().Find(query, mostMatches)}
	for _, index := range s.finder.asked {
		x, err := index(ctx)
		if err != nil {
			return nil, err
		}
		found = append(found, x.Find(query, mostMatches))
	}
	return search.Best(mostMatches, found...), nil
}

// result is a match as programs get it.
type result struct {
	Title   string         `json:"title"`
	Page    string         `json:"page"`
	Kind    string         `json:"kind"`
	URL     string         `json:"url"`
	Snippet []search.Piece `json:"snippet"`
}

var results = template.Must(template.New("results").Parse(`<h1>Search</h1>
{{if not .Query}}<p>Type a word, an error code, a setting, a path or what you see.</p>
{{else if not .Found}}<p>Nothing has “{{.Query}}” in it. The <a href="` + Root + `">pages</a> are in the menu; <a href="` + Root + `/troubleshooting">troubleshooting</a> is by what is seen.</p>
{{else}}<p>For “{{.Query}}”:</p>
<ol class="found">{{range .Found}}
<li><a href="{{.Link}}">{{.Title}}</a> <span class="chip">{{.Kind}}</span>{{if .Page}} <span class="dim small">{{.Page}}</span>{{end}}
<p>{{range .Snippet}}{{if .Marked}}<mark>{{.Text}}</mark>{{else}}{{.Text}}{{end}}{{end}}</p></li>{{end}}
</ol>
{{end}}`))

// search answers with what is found for ?q=: a page for browsers, JSON for everybody else,
// see webpage.Wanted.
func (s *Site) search(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query().Get("q")
	if len(query) > search.MaxQuery {
		query = strings.ToValidUTF8(query[:search.MaxQuery], "")
	}
	found, err := s.Find(r.Context(), query)
	if err != nil {
		return err
	}
	w.Header().Set("Vary", "Accept")
	if !webpage.Wanted(r) {
		list := make([]result, len(found))
		for i, m := range found {
			list[i] = result{m.Title, m.Page, m.Kind, m.Link, m.Snippet}
		}
		w.Header().Set("Cache-Control", kept)
		httpapi.JSON(w, http.StatusOK, struct {
			Data []result `json:"data"`
		}{list})
		return nil
	}
	var b bytes.Buffer
	if err := results.Execute(&b, map[string]any{"Query": query, "Found": found}); err != nil {
		return err
	}
	p := Page{Name: "search", Title: "Search", Body: template.HTML(b.String())} //nolint:gosec // the template escapes
	return webpage.Write(w, s.layout, "page", view{Page: p, Menu: s.menu, Query: query}, webpage.Answer{Policy: policy, Cache: kept})
}
