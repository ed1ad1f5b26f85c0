package discovery

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/platform/http/mcpserver"
)

// backend answers health checks as told, and counts them.
type backend struct {
	mu     sync.Mutex
	status int
	body   string
	asked  atomic.Int32
}

func (b *backend) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.asked.Add(1)
	b.mu.Lock()
	defer b.mu.Unlock()
	if r.URL.Path != "/health" {
		http.NotFound(w, r)
		return
	}
	w.WriteHeader(b.status)
	_, _ = w.Write([]byte(b.body))
}

func (b *backend) says(status int, body string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.status, b.body = status, body
}

type bed struct {
	handler http.Handler
	media   *backend
	clock   *atomic.Int64 // seconds
	latest  func(config.Version, error)
}

func start(t *testing.T) bed {
	t.Helper()
	media := &backend{status: 200, body: `{"surfaces":{"rtmp":"available","srt":"certainly"}}`}
	server := httptest.NewServer(media)
	t.Cleanup(server.Close)
	var mu sync.Mutex
	v, failure := version(t), error(nil)
	clock := &atomic.Int64{}
	s := &Service{
		Latest: func(context.Context) (config.Version, error) { mu.Lock(); defer mu.Unlock(); return v, failure },
		At:     at, About: mcpserver.About{Title: "T", Version: "1", Instructions: "I"},
		Prober: &Prober{Now: func() time.Time { return time.Unix(clock.Load(), 0) }, Addresses: func(upstream string) []string {
			return map[string][]string{"${media}": {"127.0.0.1:1", strings.TrimPrefix(server.URL, "http://")}, "${api}": {"127.0.0.1:1"}}[upstream]
		}},
	}
	r := chi.NewRouter()
	s.OpenRoutes(r, httpapi.Adapter{})
	s.KeyedRoutes(r, httpapi.Adapter{})
	return bed{r, media, clock, func(n config.Version, err error) { mu.Lock(); defer mu.Unlock(); v, failure = n, err }}
}

func (b bed) do(method, path string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, nil)
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	b.handler.ServeHTTP(w, r)
	return w
}

func (b bed) registry(t *testing.T) map[string]Product {
	t.Helper()
	var r Registry
	if err := json.Unmarshal(b.do("GET", registryPath).Body.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	return byName(r)
}

// Everybody may read and keep the descriptions, from any page.
func TestDescriptionsAreOpenAndCached(t *testing.T) {
	t.Parallel()
	b := start(t)
	for _, path := range []string{registryPath, schemaPath, manifestPath, cardPath} {
		w := b.do("GET", path)
		tag := w.Header().Get("ETag")
		if w.Code != 200 || tag == "" || !strings.Contains(w.Header().Get("Cache-Control"), "max-age") || w.Header().Get("Access-Control-Allow-Origin") != "*" || !json.Valid(w.Body.Bytes()) {
			t.Errorf("%s: %d %v", path, w.Code, w.Header())
		}
		for given, want := range map[string]int{tag: 304, `"x", W/` + tag: 304, "*": 304, `"x"`: 200} {
			if again := b.do("GET", path, "If-None-Match", given); again.Code != want || (want == 304) != (again.Body.Len() == 0) {
				t.Errorf("%s, If-None-Match %s: %d", path, given, again.Code)
			}
		}
		if w := b.do("OPTIONS", path, "Origin", "https://a.example"); w.Code != 204 || w.Header().Get("Access-Control-Allow-Origin") != "*" {
			t.Errorf("OPTIONS %s: %d %v", path, w.Code, w.Header())
		}
	}
}

// Backends are asked how they are, together and not too often.
func TestBackendsAreAsked(t *testing.T) {
	t.Parallel()
	b := start(t)
	by := b.registry(t)
	if by["rtmp"].State != Available || by["srt"].State != NeedsEngine || by["streams"].Health != "ok" || by["webhooks"].Health != "failing" || by["chat"].Health != "unknown" {
		t.Errorf("%+v", by["streams"])
	}
	b.media.says(503, "")
	if by := b.registry(t); by["streams"].Health != "ok" || b.media.asked.Load() != 1 {
		t.Errorf("%s after %d requests", by["streams"].Health, b.media.asked.Load())
	}
	b.clock.Add(10)
	if by := b.registry(t); by["streams"].Health != "failing" || by["rtmp"].State != NeedsEngine {
		t.Errorf("%+v", by["streams"])
	}
	b.clock.Add(10)
	b.media.says(200, "no JSON")
	if by := b.registry(t); by["streams"].Health != "ok" || by["rtmp"].State != NeedsEngine {
		t.Errorf("%+v", by["streams"])
	}
	b.clock.Add(10)
	b.media.says(403, "")
	if by := b.registry(t); by["streams"].Health != "unknown" {
		t.Errorf("%+v", by["streams"])
	}
}

func TestWithoutAConfiguration(t *testing.T) {
	t.Parallel()
	b := start(t)
	b.latest(config.Version{}, &apierror.Error{Code: decision.Unavailable, Cause: errors.New("away")})
	if w := b.do("GET", registryPath); w.Code != 503 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// A surface without an engine says what it needs, whatever is asked of it.
func TestSurfacesWithoutAnEngine(t *testing.T) {
	t.Parallel()
	b := start(t)
	for _, c := range []struct{ method, path, needs string }{
		{"GET", "/v1/editor/x/y", "video editing"}, {"DELETE", "/v1/omt/", "a media engine"},
		{"PUT", "/v1/ndi", "SLUICE_NDI_BRIDGE"}, {"POST", "/v1/voice", "speech synthesis"},
	} {
		w := b.do(c.method, c.path)
		if w.Code != 501 || !strings.Contains(w.Body.String(), `"not_implemented"`) || !strings.Contains(w.Body.String(), c.needs) {
			t.Errorf("%s %s: %d %s", c.method, c.path, w.Code, w.Body)
		}
	}
}

// The manifest says where and how.
func TestManifest(t *testing.T) {
	t.Parallel()
	var m Manifest
	if err := json.Unmarshal(start(t).do("GET", manifestPath).Body.Bytes(), &m); err != nil {
		t.Fatal(err)
	}
	if len(m.Remotes) != 1 || m.Remotes[0] != (Remote{"streamable-http", "https://gw.example/mcp"}) || len(m.Versions) < 5 || len(m.Description) > 100 {
		t.Errorf("%+v", m)
	}
}
