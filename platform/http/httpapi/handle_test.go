package httpapi_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/httpapi"
)

type named struct {
	Name string `json:"name"`
}

func (named) BodyLimit() int64 { return 40 }

type answered struct {
	Name string `json:"name"`
}

func (a answered) SetHeaders(h http.Header) { h.Set("Location", "/"+a.Name) }

func TestHandle(t *testing.T) {
	t.Parallel()
	a := httpapi.Adapter{}
	create := httpapi.Handle(a, http.StatusCreated, func(r *http.Request, in named) (answered, error) {
		if in.Name == "taken" {
			return answered{}, &apierror.Error{Code: decision.Conflict}
		}
		return answered{in.Name + r.URL.Query().Get("q")}, nil
	})
	remove := httpapi.Handle(a, http.StatusOK, func(*http.Request, httpapi.None) (httpapi.None, error) { return httpapi.None{}, nil })
	for name, c := range map[string]struct {
		h              http.HandlerFunc
		body           string
		status         int
		location, text string
	}{
		"a body and an answer": {create, `{"name":"a"}`, 201, "/ab", `{"name":"ab"}`},
		"an error":             {create, `{"name":"taken"}`, 409, "", "conflict"},
		"a field too many":     {create, `{"nam":"a"}`, 400, "", `"field":"nam"`},
		"more than the limit":  {create, `{"name":"` + strings.Repeat("a", 40) + `"}`, 413, "", "request_too_large"},
		"no body, no answer":   {remove, `not JSON`, 204, "", ""},
	} {
		w := httptest.NewRecorder()
		c.h(w, httptest.NewRequest(http.MethodPost, "/?q=b", strings.NewReader(c.body)))
		if w.Code != c.status || w.Header().Get("Location") != c.location || !strings.Contains(w.Body.String(), c.text) || c.text == "" && w.Body.Len() > 0 {
			t.Errorf("%s: %d %q %s", name, w.Code, w.Header(), w.Body)
		}
	}
}
