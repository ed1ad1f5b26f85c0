package telemetry

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestWhoMayReadMetrics(t *testing.T) {
	t.Parallel()
	tokens := []string{"the-present-one", "the-one-before"}
	for name, c := range map[string]struct {
		tokens         []string
		remote, header string
		value          string
		want           int
	}{
		"this machine":                  {nil, "127.0.0.1:1", "", "", 200},
		"this machine by IPv6":          {nil, "[::1]:1", "", "", 200},
		"another":                       {nil, "192.0.2.9:1", "", "", 401},
		"another by a proxy here":       {nil, "127.0.0.1:1", "X-Forwarded-For", "127.0.0.1", 401},
		"another by a proxy that is so": {nil, "127.0.0.1:1", "Via", "1.1 here", 401},
		"another says that it is here":  {nil, "192.0.2.9:1", "X-Sluice-Client-Address", "127.0.0.1", 401},
		"a token":                       {tokens, "192.0.2.9:1", "Authorization", "Bearer the-present-one", 200},
		"the former":                    {tokens, "192.0.2.9:1", "Authorization", "Bearer the-one-before", 200},
		"a guess":                       {tokens, "192.0.2.9:1", "Authorization", "Bearer the-presents-one", 401},
		"both at once":                  {tokens, "192.0.2.9:1", "Authorization", "Bearer the-present-one,the-one-before", 401},
		"an empty one":                  {tokens, "192.0.2.9:1", "Authorization", "Bearer ", 401},
		"none, and a token is asked":    {tokens, "127.0.0.1:1", "", "", 401},
	} {
		h := Scrapers{Tokens: c.tokens}.Beside(http.NotFoundHandler(), New("test", "v1"))
		r := httptest.NewRequest(http.MethodGet, Path, nil)
		r.RemoteAddr = c.remote
		if c.header != "" {
			r.Header.Set(c.header, c.value)
		}
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, r); w.Code != c.want {
			t.Errorf("%s: %d, want %d", name, w.Code, c.want)
		}
	}
}

func TestWhatIsBesideMetricsIsNotAsked(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	h := Scrapers{}.Beside(http.NotFoundHandler(), New("test", "v1"))
	if h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/health", nil)); w.Code != 404 {
		t.Error(w.Code)
	}
}
