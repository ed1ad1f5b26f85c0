package eventdocs

import (
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/web/docsite"
	"sluice.dev/sluice/workers/webhooks/catalogue"
)

func get(path string) *httptest.ResponseRecorder {
	r := chi.NewRouter()
	site, err := docsite.New(fstest.MapFS{"quickstart.md": {Data: []byte("# Start")}}, true)
	if err != nil {
		panic(err)
	}
	Pages{Types: catalogue.All(), Site: site}.Routes(r, httpapi.Adapter{})
	w := httptest.NewRecorder()
	r.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
	return w
}

func TestEveryEventHasItsPage(t *testing.T) {
	t.Parallel()
	all := get("/docs/events").Body.String()
	for _, e := range catalogue.All() {
		w := get("/docs/events/" + e.Name)
		if w.Code != 200 || !strings.Contains(w.Body.String(), "&#34;event&#34;: &#34;"+e.Name) {
			t.Errorf("%s: %d %s", e.Name, w.Code, w.Body)
		}
		if !strings.Contains(all, `id="`+e.Name+`"`) {
			t.Errorf("%s is not on the page of all", e.Name)
		}
	}
}

func TestUnknownEvent(t *testing.T) {
	t.Parallel()
	if w := get("/docs/events/no.such"); w.Code != 404 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}
