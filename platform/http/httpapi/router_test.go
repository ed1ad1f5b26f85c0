package httpapi_test

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"sluice.dev/sluice/platform/http/httpapi"
)

// A panic is a 500 that tells nothing of it; an answer that has begun is aborted, so
// that no client takes a part for the whole.
func TestRecover(t *testing.T) {
	t.Parallel()
	a := httpapi.Adapter{Log: slog.New(slog.DiscardHandler)}
	r := a.Router(a.Recover)
	r.Get("/before", func(http.ResponseWriter, *http.Request) { panic("secret") })
	r.Get("/after", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "part"); panic("secret") })
	r.Get("/abort", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	for path, aborted := range map[string]bool{"/before": false, "/after": true, "/abort": true} {
		w := httptest.NewRecorder()
		func() {
			defer func() {
				if p := recover(); (p == http.ErrAbortHandler) != aborted || !aborted && p != nil { //nolint:errorlint // net/http compares it by identity
					t.Errorf("%s: panics with %v", path, p)
				}
			}()
			r.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		}()
		if strings.Contains(w.Body.String(), "secret") || !aborted && (w.Code != 500 || !strings.Contains(w.Body.String(), `"internal"`)) {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}

// A GET of ours answers HEAD with the same headers, and a stream ends at once: nobody
// reads it.
func TestHeadIsGetWithoutBody(t *testing.T) {
	t.Parallel()
	a := httpapi.Adapter{Log: slog.New(slog.DiscardHandler)}
	r := a.Router(a.Recover)
	r.Get("/plain", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Note", "noted")
		_, _ = io.WriteString(w, "body")
	})
	r.Get("/stream", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Note", "noted")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	r.Post("/post", func(http.ResponseWriter, *http.Request) {})
	s := httptest.NewServer(r)
	t.Cleanup(s.Close)
	for path, want := range map[string]int{"/plain": 200, "/stream": 200, "/post": 405, "/none": 404} {
		res, err := http.Head(s.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if res.StatusCode != want || (res.Header.Get("X-Note") != "") != (want == 200) || path == "/plain" && res.ContentLength != 4 {
			t.Errorf("%s: %d %v", path, res.StatusCode, res.Header)
		}
	}
	if res, err := http.Post(s.URL+"/plain", "", nil); err != nil || res.StatusCode != 405 || strings.Join(res.Header.Values("Allow"), ",") != "GET,HEAD" {
		t.Errorf("%v, %v", err, res)
	}
}
