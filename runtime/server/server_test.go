package server

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/runtime/chat"
	"sluice.dev/sluice/runtime/chat/upstream"
)

func start(t *testing.T, c Config) *httptest.Server {
	t.Helper()
	if c.Gateway == "" {
		c.Gateway = "http://127.0.0.1:1"
	}
	c.Log, c.Standalone = slog.New(slog.DiscardHandler), true
	h, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

func do(t *testing.T, method, url, body string, header ...string) (int, http.Header, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, string(b)
}

const bearer = "Bearer theirs"

// A page of another name for this machine is turned away, unless it is ours.
func TestOtherNamesOfTheServer(t *testing.T) {
	t.Parallel()
	s := start(t, Config{Hosts: []string{"alias.example"}})
	for host, want := range map[string]int{"alias.example": 200, "other.example": 403} {
		req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+"/mcp", nil)
		req.RequestURI, req.Host = "", host
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%s: %d, want %d", host, resp.StatusCode, want)
		}
	}
}

func TestRoutes(t *testing.T) {
	t.Parallel()
	s := start(t, Config{})
	ask := `{"model":"echo-1","messages":[{"role":"user","content":"hello there"}]}`
	for _, c := range []struct {
		method, path, body, authorization string
		status                            int
		want                              string
	}{
		{"POST", "/v1/chat/completions", ask, bearer, 200, `"content":" there"`},
		{"POST", "/v1/chat/completions", ask, "", 401, "authentication_required"},
		{"POST", "/v1/chat/completions", "{}", bearer, 400, `"field":"model"`},
		{"GET", "/v1/chat/completions", "", bearer, 405, "method_not_allowed"},
		{"GET", "/v1/models", "", bearer, 200, `{"id":"echo-1","object":"model","owned_by":"sluice"}`},
		{"GET", "/v1/models", "", "", 401, "authentication_required"},
		{"GET", "/", "", "", 200, "<!doctype html>"},
		{"HEAD", "/", "", "", 200, ""},
		{"HEAD", "/v1/mux", "", bearer, 405, ""},
		{"GET", "/v1/%6dodels", "", bearer, 200, `"id":"echo-1"`},
		{"GET", "/openapi.json", "", "", 200, `"openapi": "3.1.0"`},
		{"GET", "/mcp", "", "", 200, `"serverInfo"`},
		{"DELETE", "/mcp", "", "", 405, "method_not_allowed"},
		{"POST", "/v1/mux", "x", bearer, 502, "bad_gateway"},
		{"POST", "/v1/mux", "x", "", 401, "authentication_required"},
		{"GET", "/nothing", "", bearer, 404, "not_found"},
		{"GET", "/v1/models/", "", bearer, 404, "not_found"},
	} {
		status, header, body := do(t, c.method, s.URL+c.path, c.body, "Authorization", c.authorization)
		if status != c.status || !strings.Contains(body, c.want) {
			t.Errorf("%s %s: %d %s", c.method, c.path, status, body)
		}
		if header.Get("X-Request-ID") == "" || status == 405 && header.Get("Allow") == "" || status == 401 && header.Get("WWW-Authenticate") == "" {
			t.Errorf("%s %s: headers %v", c.method, c.path, header)
		}
	}
}

// A method that is refused is told which ones are not.
func TestAllowNamesTheMethods(t *testing.T) {
	t.Parallel()
	s := start(t, Config{})
	for request, want := range map[string]string{"DELETE /mcp": "GET, HEAD, POST", "PUT /v1/m%75x": "POST", "HEAD /v1/mux": "POST", "FOO /": "GET, HEAD"} {
		method, path, _ := strings.Cut(request, " ")
		if _, header, _ := do(t, method, s.URL+path, ""); strings.Join(header.Values("Allow"), ", ") != want {
			t.Errorf("%s: %v", request, header.Values("Allow"))
		}
	}
}

func TestRequestIDs(t *testing.T) {
	t.Parallel()
	s := start(t, Config{})
	for in, kept := range map[string]bool{"abc-1": true, "": false, "a b": false} {
		_, header, body := do(t, "GET", s.URL+"/nothing", "", "X-Request-ID", in)
		id := header.Get("X-Request-ID")
		if (id == in) != kept || id == "" || !strings.Contains(body, `"request_id":"`+id+`"`) {
			t.Errorf("%q becomes %q: %s", in, id, body)
		}
	}
}

func TestConfiguredProviderTakesItsModels(t *testing.T) {
	t.Parallel()
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/models" {
			_, _ = io.WriteString(w, `{"data":[{"id":"big"}]}`)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, `data: {"choices":[{"index":0,"delta":{"content":"from `+r.Header.Get("Authorization")+`"},"finish_reason":"stop"}]}`+"\n\n")
	}))
	defer provider.Close()
	p, err := upstream.New(upstream.Config{BaseURL: provider.URL})
	if err != nil {
		t.Fatal(err)
	}
	s := start(t, Config{Targets: []chat.Target{{Name: "acme", Provider: p}}})
	ask := func(model string) string {
		_, _, body := do(t, "POST", s.URL+"/v1/chat/completions", `{"model":"`+model+`","messages":[{"role":"user","content":"hi"}]}`, "Authorization", bearer)
		return body
	}
	if got := ask("big"); !strings.Contains(got, "from Bearer theirs") {
		t.Errorf("the provider's model: %s", got)
	}
	bare := start(t, Config{Targets: []chat.Target{{Name: "acme", Provider: p}}, NoEcho: true})
	if _, _, list := do(t, "GET", bare.URL+"/v1/models", "", "Authorization", bearer); strings.Contains(list, "echo") {
		t.Errorf("models without the built-in ones: %s", list)
	}
	if _, _, page := do(t, "GET", bare.URL+"/", ""); strings.Contains(page, "echo-1") {
		t.Error("the page names a model that is not there")
	}
	if got := ask("echo-1"); !strings.Contains(got, `"content":"hi"`) {
		t.Errorf("the built-in model: %s", got)
	}
	if _, _, list := do(t, "GET", s.URL+"/v1/models", "", "Authorization", bearer); !strings.Contains(list, `{"id":"big","object":"model","owned_by":"acme"},{"id":"echo-1"`) {
		t.Errorf("models: %s", list)
	}
}

// Whoever reaches the runtime without an edge is nobody: no model answers, and no
// provider of the operator's is asked.
func TestWithoutAnEdgeNobodyIsServed(t *testing.T) {
	t.Parallel()
	asked := make(chan string, 10)
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { asked <- r.Header.Get("Authorization") }))
	defer provider.Close()
	p, err := upstream.New(upstream.Config{BaseURL: provider.URL, Key: "the operator's"})
	if err != nil {
		t.Fatal(err)
	}
	c := Config{Targets: []chat.Target{{Name: "acme", Provider: p}}, Gateway: "http://127.0.0.1:1", Log: slog.New(slog.DiscardHandler)}
	h, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	closed := httptest.NewServer(h)
	defer closed.Close()
	alone := start(t, c)
	chat := `{"model":"big","messages":[{"role":"user","content":"hi"}]}`
	for name, r := range map[string]struct{ url, method, path, body string }{
		"the provider":                       {closed.URL, "POST", "/v1/chat/completions", chat},
		"the provider, of one that is alone": {alone.URL, "POST", "/v1/chat/completions", chat},
		"the built-in model":                 {closed.URL, "POST", "/v1/chat/completions", strings.Replace(chat, "big", "echo-1", 1)},
		"the list":                           {closed.URL, "GET", "/v1/models", ""},
		"a binary body":                      {closed.URL, "POST", "/v1/mux", "x"},
		"a tool":                             {closed.URL, "POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_models"}}`},
	} {
		if status, _, body := do(t, r.method, r.url+r.path, r.body, "Authorization", "Bearer anything"); status != 401 || !strings.Contains(body, "authentication_required") {
			t.Errorf("%s: %d %s", name, status, body)
		}
	}
	if status, _, list := do(t, "GET", alone.URL+"/v1/models", "", "Authorization", bearer); status != 200 || strings.Contains(list, "acme") || len(asked) > 0 {
		t.Errorf("%d %s, the provider was asked %d times", status, list, len(asked))
	}
}

func TestBadGateway(t *testing.T) {
	t.Parallel()
	if _, err := New(Config{}); err == nil {
		t.Error("a runtime without a gateway starts")
	}
}

// The description is checked against the routes, both ways, and
// against what handlers answer.
func TestDescription(t *testing.T) {
	t.Parallel()
	doc, err := openapi3.NewLoader().LoadFromData(description)
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Validate(t.Context(), openapi3.IsOpenAPI31OrLater()); err != nil {
		t.Error(err)
	}
	if doc.Info.Version != Version || doc.OpenAPI != "3.1.0" {
		t.Errorf("version %s of OpenAPI %s", doc.Info.Version, doc.OpenAPI)
	}
	h, err := New(Config{Gateway: "http://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	var have, described []string
	err = chi.Walk(h.(chi.Routes), func(method, path string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
		if path != "/" { // the page for browsers is no operation
			have = append(have, method+" "+path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for path, item := range doc.Paths.Map() {
		for method := range item.Operations() {
			described = append(described, method+" "+path)
		}
	}
	slices.Sort(have)
	slices.Sort(described)
	if !slices.Equal(have, described) {
		t.Errorf("routes    %v\ndescribed %v", have, described)
	}
}

func TestAnswersAreAsDescribed(t *testing.T) {
	t.Parallel()
	doc, err := openapi3.NewLoader().LoadFromData(description)
	if err != nil {
		t.Fatal(err)
	}
	s := start(t, Config{})
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			for _, authorization := range []string{"", bearer} {
				status, header, body := do(t, method, s.URL+path, "{}", "Authorization", authorization)
				resp := op.Responses.Status(status)
				if resp == nil {
					t.Errorf("%s %s answers %d, which is not described", method, path, status)
					continue
				}
				open := op.Security != nil && (len(*op.Security) == 0 || len((*op.Security)[0]) == 0)
				if status == 401 && (open || authorization != "") {
					t.Errorf("%s %s answers 401, and is described as open", method, path)
				}
				checkBody(t, method+" "+path, resp.Value, header, body)
			}
		}
	}
}

func checkBody(t *testing.T, what string, resp *openapi3.Response, header http.Header, body string) {
	t.Helper()
	contentType, _, _ := strings.Cut(header.Get("Content-Type"), ";")
	media := resp.Content.Get(contentType)
	if media == nil {
		t.Errorf("%s: %s is not described", what, contentType)
		return
	}
	if contentType != "application/json" {
		return
	}
	var v any
	if err := json.Unmarshal([]byte(body), &v); err != nil {
		t.Errorf("%s: %v", what, err)
	} else if err := media.Schema.Value.VisitJSON(v, openapi3.EnableJSONSchema2020()); err != nil {
		t.Errorf("%s: %s: %v", what, body, err)
	}
}
