package httpapi

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"sluice.dev/sluice/platform/limits/growth"
)

func TestAddressesMustBeText(t *testing.T) {
	t.Parallel()
	h := quiet.Text(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
	for target, want := range map[string]string{
		"/v1/x":                     "",
		"/v1/x?title=caf%C3%A9&a=%": "",
		"/v1/%F0%9F%98%80":          "",
		"/v1/%ff":                   "path",
		"/v1/x?title=%ff":           "title",
		"/v1/x?title=a&title=%c3":   "title",
		"/v1/x?%ff=1":               "query",
		"/v1/x?b=%ff&a=%ed%a0%80":   "a,b",
	} {
		u, err := url.Parse(target)
		if err != nil {
			t.Fatal(err)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, &http.Request{Method: "GET", URL: u, Header: http.Header{}})
		var named []string
		for part := range strings.SplitSeq(w.Body.String(), `"field":"`) {
			if name, _, ok := strings.Cut(part, `","issue":"is not text`); ok {
				named = append(named, name)
			}
		}
		if got := strings.Join(named, ","); got != want || (w.Code == http.StatusNoContent) != (want == "") {
			t.Errorf("%s: %d %q, want %q", target, w.Code, got, want)
		}
	}
}

func FuzzText(f *testing.F) {
	f.Add("/a", "b=%ff&c=d")
	f.Fuzz(func(t *testing.T, path, query string) {
		r := &http.Request{Method: "GET", URL: &url.URL{Path: path, RawQuery: query}, Header: http.Header{}}
		growth.Linear(t, len(path)+len(query), 64, 16<<10, func() { notText(r) })
	})
}
