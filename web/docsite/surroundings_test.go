package docsite

import (
	"encoding/json"
	"io/fs"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice"
	"sluice.dev/sluice/docs"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/web/docsite/search"
)

func getter(t *testing.T, s *Site) func(path string) *httptest.ResponseRecorder {
	t.Helper()
	r := chi.NewRouter()
	s.Routes(r, httpapi.Adapter{})
	return func(path string) *httptest.ResponseRecorder { return get(r, path) }
}

// What people look for is found first, on the page where it is told.
func TestSearch(t *testing.T) {
	t.Parallel()
	platform, gateway := sites(t)
	for query, want := range map[string]string{
		"401 although the key is right": "/docs/troubleshooting#401-although-the-key-is-right", "port in use": "/docs/troubleshooting#the-port-is-in-use", "SLUICE_MCP_HOSTS": "/docs/settings#SLUICE_MCP_HOSTS",
		"backup": "/docs/backup", "sluice key rotate": "/docs/cli#sluice-key", "systemd": "/docs/systemd",
	} {
		for _, s := range []*Site{platform, gateway} {
			found, err := s.Find(t.Context(), query)
			if err != nil || len(found) == 0 || !strings.HasPrefix(found[0].Link, want) {
				t.Errorf("%q: %v %+v", query, err, found[:min(3, len(found))])
			}
		}
	}
	if found, _ := platform.Find(t.Context(), "captions"); len(found) < 3 {
		t.Error("the platform's pages are not found")
	}
	entries, terms, bytes := platform.index().Size()
	t.Logf("%d pages, %d entries, %d terms, %d bytes", len(platform.pages), entries, terms, bytes)
	if entries < 400 || bytes > 16<<20 {
		t.Error("that is not the documentation")
	}
}

// A search is a page, and JSON for those who ask for it; what was typed is text in both.
func TestThePageOfASearch(t *testing.T) {
	t.Parallel()
	s, err := New(small, true)
	if err != nil {
		t.Fatal(err)
	}
	s.Include(search.Entry{Title: "invalid <b>", Kind: "Error", Link: "/docs/errors/x", Text: "a <script> & feed"})
	get := getter(t, s)
	page := get("/docs/search?q=feed").Body.String()
	for _, want := range []string{`<li><a href="/docs/keys#the-feed">The feed</a> <span class="chip">Guide</span>`, `invalid &lt;b&gt;`, `a &lt;script&gt; &amp; <mark>feed</mark>`, `value="feed"`} {
		if !strings.Contains(page, want) {
			t.Errorf("no %s in %s", want, page)
		}
	}
	if body := get(`/docs/search?q="><script>x`).Body.String(); strings.Contains(body, "<script>") || !strings.Contains(body, `value="&#34;&gt;&lt;script&gt;x"`) {
		t.Error(body)
	}
	w := get("/docs/search?format=json&q=feed")
	var got struct{ Data []result }
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || len(got.Data) != 2 || w.Header().Get("Content-Type") != "application/json" {
		t.Errorf("%v %s", err, w.Body)
	}
	if body := get("/docs/search?format=json&q=" + strings.Repeat("%ff", 5000)).Body.String(); body != "{\"data\":[]}\n" {
		t.Error(body)
	}
}

// Each page says what is on it, leads to those beside it, and can be had as Markdown.
func TestWhatStandsAroundAPage(t *testing.T) {
	t.Parallel()
	files := fstest.MapFS{
		"quickstart.md": {Data: []byte("# Start\n\nOne. Two.\n\n## A `b`\n\n## C\n\n### D <!-- platform -->\n\n```sh\n[x](keys.md)\n```\n\n[keys](keys.md#feed), [why](../W.md), ![map](map.svg)\n")},
		"concepts.md":   {Data: []byte("# Parts\n")}, "keys.md": {Data: []byte("# Keys\n\n## Feed\n")}, "map.svg": small["map.svg"],
	}
	s, err := New(files, true)
	if err != nil {
		t.Fatal(err)
	}
	get := getter(t, s)
	for path, wants := range map[string][]string{
		"/docs/quickstart": {`<a href="#a-b">A b</a>`, `<li class="below"><a href="#d">D</a>`, `rel="next" href="/docs/concepts"`, `<link rel="alternate" type="text/markdown" href="/docs/quickstart.md">`,
			`<picture><source srcset="/docs/assets/map-dark.`},
		"/docs/concepts":      {`rel="prev" href="/docs/quickstart"`, `rel="next" href="/docs/keys"`},
		"/docs/quickstart.md": {"# Start", "### D\n", "[x](keys.md)", "[keys](/docs/keys.md#feed), why, ![map](/docs/assets/map."},
		"/llms.txt":           {"# Sluice\n\n> ", "- [Start](/docs/quickstart.md): One.\n", "- [Keys](/docs/keys.md): "},
		"/llms-full.txt":      {"# Start", "## Feed", "# Parts"},
	} {
		w := get(path)
		for _, want := range wants {
			if !strings.Contains(w.Body.String(), want) {
				t.Errorf("%s: no %s in %s", path, want, w.Body)
			}
		}
		if kind := w.Header().Get("Content-Type"); strings.HasSuffix(path, ".md") != (kind == "text/markdown; charset=utf-8") {
			t.Errorf("%s: %s", path, kind)
		}
	}
	if body := get("/docs/concepts").Body.String(); strings.Contains(body, `class="contents"`) {
		t.Error("a short page has contents")
	}
}

// The Markdown of all pages, and the lists of them, lead to what is served.
func TestMarkdownLeadsSomewhere(t *testing.T) {
	t.Parallel()
	platform, gateway := sites(t)
	to := regexp.MustCompile(`\]\((/docs/[^)#\s]+)(?:#[^)]*)?\)`)
	for _, s := range []*Site{platform, gateway} {
		get, seen := getter(t, s), map[string]bool{}
		for _, text := range []string{string(s.whole()), string(s.contents())} {
			for _, m := range to.FindAllStringSubmatch(text, -1) {
				if name := strings.TrimPrefix(m[1], Root+"/"); !seen[name] && !slices.Contains([]string{"errors", "events", "reference"}, name) {
					seen[name] = true
					if w := get(m[1]); w.Code != 200 {
						t.Errorf("%s: %d", m[1], w.Code)
					}
				}
			}
			if strings.Contains(text, "<!-- platform") || strings.Contains(text, "](../") {
				t.Error("marks, or links to files")
			}
		}
		if len(seen) < 20 || strings.Count(string(s.whole()), "\n---\n") < len(s.pages)-1 {
			t.Error(len(seen))
		}
	}
}

// Addresses of before lead to where things are now.
func TestOldAddresses(t *testing.T) {
	t.Parallel()
	platform, gateway := sites(t)
	for _, s := range []*Site{platform, gateway} {
		get := getter(t, s)
		for _, m := range elsewhere {
			page, heading, _ := strings.Cut(m.From, "#")
			to, fragment, _ := strings.Cut(m.To, "#")
			if !strings.Contains(get("/docs/"+page).Body.String(), `<li id="`+heading+`"><a href="/docs/`+m.To+`">`) || fragment != "" && !strings.Contains(get("/docs/"+to).Body.String(), `id="`+fragment+`"`) {
				t.Errorf("%s does not lead to %s", m.From, m.To)
			}
		}
	}
}

// A changelog is a page for each version, and what to do when upgrading is one for all.
func TestChanges(t *testing.T) {
	t.Parallel()
	const text = "# Changelog\n\n## Unreleased\n\n### Upgrading: read\n\n- Do [this](docs/keys.md).\n- Set the runtime.\n\n### Chat and webhooks\n\n- New\n  thing.\n- A chat.\n\n## 1.0.0\n\n### Upgrading\n\n- Do that.\n\n### Fixed\n\n- It.\n"
	for all, want := range map[bool][]Source{
		true: {{"changelog", []byte("# Changelog\n\nWhat users notice of Unreleased. What to do when upgrading: [upgrade notes](upgrade-notes.md).\n\n## Chat and webhooks\n\n- New\n  thing.\n- A chat.\n\n## Earlier versions\n\n- [1.0.0](changelog-1.0.0.md)\n")},
			{"changelog-1.0.0", []byte("# Changelog: 1.0.0\n\nWhat users notice of 1.0.0. What to do when upgrading: [upgrade notes](upgrade-notes.md).\n\n## Fixed\n\n- It.\n")},
			{"upgrade-notes", []byte("## Unreleased\n\n- Do [this](keys.md).\n- Set the runtime.\n\n## 1.0.0\n\n- Do that.\n")}},
		false: {{"changelog", []byte("## Webhooks\n\n- New\n  thing.\n\n## Earlier")}, {"changelog-1.0.0", []byte("- It.\n")}, {"upgrade-notes", []byte("## Unreleased\n\n- Do [this](keys.md).\n\n## 1.0.0")}},
	} {
		got := Changes([]byte(text), all)
		if len(got) != 3 {
			t.Fatalf("%s", got)
		}
		for i := range got {
			if got[i].Name != want[i].Name || !strings.Contains(string(got[i].Markdown), string(want[i].Markdown)) {
				t.Errorf("%v: %s\n%s", all, got[i].Name, got[i].Markdown)
			}
		}
	}
	kept, bullets := 0, regexp.MustCompile(`(?m)^- `)
	for _, s := range Changes(sluice.Changelog, true) {
		kept += len(bullets.FindAll(s.Markdown, -1))
	}
	if there := len(bullets.FindAll(sluice.Changelog, -1)); kept < there {
		t.Errorf("%d of %d changes are shown", kept, there)
	}
}

// Pictures are seen in dark: each of their colours has its other one.
func TestDarkPictures(t *testing.T) {
	t.Parallel()
	names, err := fs.Glob(docs.Files, "*.svg")
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	known := []string{"#0b6b58", "#1c2024", "#565e65", "#c9cec5", "#d7efe7", "#f7f8f5", "#ffffff"}
	for _, name := range names {
		raw, err := fs.ReadFile(docs.Files, name)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range regexp.MustCompile(`#[0-9a-f]{6}`).FindAllString(string(raw), -1) {
			if !slices.Contains(known, c) {
				t.Errorf("%s: %s has no dark colour; see pictures.go", name, c)
			}
		}
		if got := dark(string(raw)); strings.Contains(got, `fill="#f7f8f5"`) || strings.Contains(got, `fill="#1c2024"`) || len(got) != len(raw) {
			t.Error(name)
		}
	}
}

// A query is answered in what a pass over the entries takes.
func BenchmarkSearch(b *testing.B) {
	s, err := New(docs.Files, true, Changes(sluice.Changelog, true)...)
	if err != nil {
		b.Fatal(err)
	}
	s.index()
	for name, query := range map[string]string{"one": "webhook", "three": "rate limit key", "eight": "a b the to and of in is"} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := s.Find(b.Context(), query); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
