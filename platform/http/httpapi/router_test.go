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
