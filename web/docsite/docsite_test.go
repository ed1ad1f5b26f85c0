package docsite

import (
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/platform/http/httpapi"
)

var small = fstest.MapFS{
	"quickstart.md": {Data: []byte("# Quick *start*\n\n![A map](map.svg)\n\nSee [keys](keys.md#the-feed), [why](../RATIONALE.md), [out](https://example.com) and [above](#top).\n\n<script>alert(1)</script>\n\n| a | b |\n| --- | --- |\n| 1 | [x](javascript:alert(1)) |\n\n| | |\n| --- | --- |\n| c | d |\n\n| | e |\n| --- | --- |\n| f | g |\n\n```sh\ncurl\n```\n")},
	"keys.md":       {Data: []byte("# Keys\n\n## The feed\n")},
	"zebra.md":      {Data: []byte("# A zebra\n")},
	"map.svg":       {Data: []byte("<svg/>")},
}

func router(t *testing.T, files fstest.MapFS) chi.Router {
	t.Helper()
	s, err := New(files, true)
	if err != nil {
		t.Fatal(err)
	}
	r := chi.NewRouter()
	s.Routes(r, httpapi.Adapter{})
	return r
}

// get asks as a browser does.
func get(r chi.Router, path string) *httptest.ResponseRecorder {
	w, req := httptest.NewRecorder(), httptest.NewRequest("GET", path, nil)
	req.Header.Set("Accept", "text/html,*/*;q=0.8")
	r.ServeHTTP(w, req)
	return w
}

func TestAPage(t *testing.T) {
	t.Parallel()
	r := router(t, small)
	w := get(r, "/docs/quickstart")
	body := w.Body.String()
	for _, want := range []string{
		"<title>Quick *start* · Sluice documentation</title>", `<a href="/docs/keys#the-feed">keys</a>`, ", why, ", `<a href="https://example.com">out</a>`,
		`<a href="#top">above</a>`, `tabindex="0" role="group"`, `<pre tabindex="0">`, "<td></td>\n<th>e</th>", `aria-current="page"`, `src="/docs/assets/map.`,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("no %s in %s", want, body)
		}
	}
	for _, never := range []string{"<script>", "alert(1)</script>", "javascript:", "RATIONALE", "<th></th>"} {
		if strings.Contains(body, never) {
			t.Errorf("%s in %s", never, body)
		}
	}
	if got := get(r, "/docs/keys").Body.String(); !strings.Contains(got, `<h2 id="the-feed">`) {
		t.Error(got)
	}
	if p := w.Header().Get("Content-Security-Policy"); strings.Contains(p, "unsafe") || !strings.Contains(p, "default-src 'none'") {
		t.Error(p)
	}
}

func TestWhatIsServed(t *testing.T) {
	t.Parallel()
	r := router(t, small)
	for path, want := range map[string]int{"/docs": 200, "/docs/": 200, "/docs/keys": 200, "/docs/zebra": 200, "/docs/none": 404, "/docs/none.md": 404, "/docs/keys.md": 200, "/docs/..%2fkeys": 404, "/docs/llms.txt": 200, "/llms.txt": 200, "/llms-full.txt": 200, "/docs/search": 200, "/docs/search?q=feed": 200} {
		if w := get(r, path); w.Code != want {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
}

// A page that is in no group is found under the last one.
func TestNoPageIsLost(t *testing.T) {
	t.Parallel()
	_, rest, _ := strings.Cut(get(router(t, small), "/docs").Body.String(), ">More</h2>")
	if rest, _, _ = strings.Cut(rest, "</ul>"); !strings.Contains(rest, ">A zebra</a>") || strings.Contains(rest, "Keys") {
		t.Error(rest)
	}
}

// The pages of the project can all be made, and the menu names none that there is
// not.
func TestTheRealPages(t *testing.T) {
	t.Parallel()
	s, _ := sites(t)
	for _, g := range groups {
		for _, name := range g.names {
			if _, ok := s.pages[name]; !ok {
				t.Errorf("there is no page %s", name)
			}
		}
	}
	for name, p := range s.pages {
		if p.Title == name || !strings.Contains(string(p.Body), "<h1") || strings.Contains(string(p.Body), `href="../`) || strings.Contains(string(p.Body), `src="/docs/assets/"`) {
			t.Errorf("%s: title %q", name, p.Title)
		}
	}
}

func TestWhereLinksLead(t *testing.T) {
	t.Parallel()
	for to, want := range map[string]string{"keys.md": "/docs/keys", "keys.md#a": "/docs/keys#a", "#a": "#a", "/docs/errors": "/docs/errors", "https://x.example/a.md": "https://x.example/a.md"} {
		if got, ok := link(to); got != want || !ok {
			t.Errorf("%s: %s %v", to, got, ok)
		}
	}
	for _, to := range []string{"../README.md", "../deploy/sluice.yaml", "picture.png", "sub/page.md"} {
		if _, ok := link(to); ok {
			t.Errorf("%s is not served", to)
		}
	}
}
