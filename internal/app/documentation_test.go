package app

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/web/openapi"
	"sluice.dev/sluice/workers/webhooks/catalogue"
)

// theSite is the documentation as one of both kinds of deployments serves it.
func theSite(t *testing.T, all bool) http.Handler {
	t.Helper()
	list := slices.DeleteFunc(slices.Clone(fragments), func(f openapi.Fragment) bool { return !all && !slices.Contains(ownFragments, f.Name) })
	joined, err := openapi.Join(list...)
	if err != nil {
		t.Fatal(err)
	}
	d, err := config.Default()
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(joined.Public(d, openapi.Info{Title: "t", Version: "v", URL: "https://api.example"}))
	if err != nil {
		t.Fatal(err)
	}
	types := catalogue.All()
	if !all {
		types = catalogue.Of(nil)
	}
	routes, err := documentation(all, constant(text), types)
	if err != nil {
		t.Fatal(err)
	}
	r := chi.NewRouter()
	routes(r, httpapi.Adapter{})
	return r
}

// asked is what a browser gets.
func asked(h http.Handler, path string) *httptest.ResponseRecorder {
	w, r := httptest.NewRecorder(), httptest.NewRequest("GET", path, nil)
	r.Header.Set("Accept", "text/html,*/*;q=0.8")
	h.ServeHTTP(w, r)
	return w
}

// No link of any page is dead, in both kinds of deployments: pages, references, codes, events, their headings, and what
// search finds.
func TestNoLinkOfTheDocumentationIsDead(t *testing.T) {
	t.Parallel()
	leads := regexp.MustCompile(`(?:href|src|srcset)="(/[^"#?]*)(\?[^"#]*)?(?:#([^"]*))?"`)
	elsewhere := []string{"/openapi.json"}
	for _, all := range []bool{true, false} {
		site := theSite(t, all)
		bodies, pages := map[string]string{}, 0
		type link struct{ from, to, query, fragment string }
		todo := []link{{"", "/docs", "", ""}}
		for _, q := range []string{"key", "webhook", "SLUICE_TLS_CERT", "401", "list accounts"} {
			todo = append(todo, link{"", "/docs/search", "?q=" + strings.ReplaceAll(q, " ", "+"), ""})
		}
		for len(todo) > 0 {
			l := todo[0]
			todo = todo[1:]
			if slices.Contains(elsewhere, l.to) {
				continue
			}
			body, seen := bodies[l.to+l.query]
			if !seen {
				w := asked(site, l.to+l.query)
				body = w.Body.String()
				if bodies[l.to+l.query] = body; w.Code != 200 {
					t.Errorf("%s leads to %s: %d", l.from, l.to+l.query, w.Code)
				}
				if strings.HasPrefix(w.Header().Get("Content-Type"), "text/html") {
					pages++
					for _, m := range leads.FindAllStringSubmatch(body, -1) {
						todo = append(todo, link{l.to, m[1], strings.ReplaceAll(m[2], "&amp;", "&"), m[3]})
					}
				}
			}
			if l.fragment != "" && !strings.Contains(body, `id="`+l.fragment+`"`) {
				t.Errorf("%s leads to %s#%s, which is not there", l.from, l.to, l.fragment)
			}
		}
		t.Logf("all products %v: %d pages", all, pages)
		if pages < 200 {
			t.Errorf("only %d pages", pages)
		}
	}
}

// The references show every operation of their documents.
func TestReferencesOfAllAPIs(t *testing.T) {
	t.Parallel()
	site := theSite(t, true)
	for path, want := range map[string][]string{
		"/docs/reference":                           {`href="/docs/reference/listWebhooks"`, `href="/docs/reference?page=2"`},
		"/docs/admin-api":                           {`<h1>Admin API reference</h1>`, `href="/docs/admin-api/listAccounts"`, "/admin/v1/openapi.json"},
		"/docs/admin-api/listAccounts":              {`curl &#34;$SLUICE_ADMIN_URL&#34;&#39;/admin/v1/accounts&#39;`, `Bearer $SLUICE_ADMIN_KEY`, `an API key`},
		"/docs/runtime-api/createChatCompletion":    {`&#34;$SLUICE_RUNTIME_URL&#34;&#39;/v1/chat/completions&#39;`, `/docs/errors/AUTH_002`},
		"/docs/reference/createStream":              {`<code>streams:write</code>`, `/docs/errors/STREAM_003`, `id="responses"`, `class="language-json"`},
		"/docs/errors/" + string(decision.TooLarge): {`HTTP/1.1 413 `, `aria-current="page"`},
	} {
		body := asked(site, path).Body.String()
		for _, w := range want {
			if !strings.Contains(body, w) {
				t.Errorf("%s: no %s", path, w)
			}
		}
	}
	if body := asked(theSite(t, false), "/docs").Body.String(); strings.Contains(body, "runtime-api") || asked(theSite(t, false), "/docs/runtime-api").Code != 404 {
		t.Error("a gateway alone shows the runtime")
	}
}
