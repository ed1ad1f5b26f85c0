package webpage

import (
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/platform/http/httpapi"
)

// Files are named by their content: kept forever, and never stale.
func TestFiles(t *testing.T) {
	t.Parallel()
	files := func(script string) *Files {
		f, err := NewFiles("/x/", fstest.MapFS{"sub/live.js": {Data: []byte(script)}, "sub/secret.txt": {Data: []byte("s")}}, "sub/*.js")
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	f := files("a")
	r := chi.NewRouter()
	r.Get("/x/{name}", httpapi.Adapter{}.Handle(f.Serve))
	for name, kind := range map[string]string{"live.js": "text/javascript; charset=utf-8", "app.css": "text/css; charset=utf-8", "icon.svg": "image/svg+xml"} {
		w := httptest.NewRecorder()
		r.ServeHTTP(w, httptest.NewRequest("GET", f.Path(name), nil))
		if w.Code != 200 || w.Header().Get("Content-Type") != kind || !strings.Contains(w.Header().Get("Cache-Control"), "immutable") || w.Body.Len() == 0 {
			t.Errorf("%s: %d %v", f.Path(name), w.Code, w.Header())
		}
	}
	if got := f.Path("secret.txt"); got != "/x/" {
		t.Errorf("a file that no pattern matches is served as %s", got)
	}
	for _, path := range []string{"/x/live.js", "/x/app.css", "/x/secret.txt", "/x/..%2fsecret.txt"} {
		w := httptest.NewRecorder()
		if r.ServeHTTP(w, httptest.NewRequest("GET", path, nil)); w.Code != 404 || w.Header().Get("Content-Type") == "text/plain; charset=utf-8" {
			t.Errorf("%s: %d %v", path, w.Code, w.Header())
		}
	}
	if f.Path("live.js") == files("b").Path("live.js") || f.Path("live.js") != files("a").Path("live.js") {
		t.Error("names do not tell contents apart")
	}
}

func TestPatternsAreChecked(t *testing.T) {
	t.Parallel()
	if _, err := NewFiles("/x/", fstest.MapFS{}, "["); err == nil {
		t.Fatal("no error")
	}
}
