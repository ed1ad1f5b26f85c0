package webpage

import (
	"html/template"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestPolicy(t *testing.T) {
	t.Parallel()
	const nothing = "default-src 'none'; base-uri 'none'; img-src data:"
	for name, c := range map[string]struct {
		allow Allow
		want  string
	}{
		"nothing":           {Allow{}, nothing + "; frame-ancestors 'none'; form-action 'none'"},
		"an inline script":  {Allow{Scripts: []string{"alert(1)"}}, nothing + "; script-src 'sha256-bhHHL3z2vDgxUt0W3dWQOrprscmda2Y5pLsLg4GF+pI='; frame-ancestors 'none'; form-action 'none'"},
		"files":             {Allow{Files: true}, nothing + "; script-src 'self'; style-src 'self'; frame-ancestors 'none'; form-action 'none'"},
		"forms and frames":  {Allow{Forms: "'self'", Framed: true}, nothing + "; form-action 'self'"},
		"images and videos": {Allow{Images: "'self'", Media: "blob:", Connect: "'self'"}, nothing + " 'self'; connect-src 'self'; media-src blob:; frame-ancestors 'none'; form-action 'none'"},
	} {
		if got := c.allow.Policy(); got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, c.want)
		}
		if strings.Contains(c.allow.Policy(), "unsafe") {
			t.Errorf("%s: something is unsafe", name)
		}
	}
}

func TestWrite(t *testing.T) {
	t.Parallel()
	page := template.Must(template.New("p").Parse(`<p>{{.Name}}</p>`))
	w := httptest.NewRecorder()
	if err := Write(w, page, "p", struct{ Name string }{"<b>"}, Answer{Status: 404}); err != nil {
		t.Fatal(err)
	}
	if w.Code != 404 || w.Body.String() != "<p>&lt;b&gt;</p>" {
		t.Fatal(w.Code, w.Body)
	}
	for name, want := range map[string]string{"X-Frame-Options": "DENY", "Cache-Control": "no-store", "Referrer-Policy": "no-referrer",
		"X-Content-Type-Options": "nosniff", "Content-Length": "16", "Content-Security-Policy": Allow{}.Policy()} {
		if got := w.Header().Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// A page that cannot be made leaves the answer to its caller.
func TestABrokenPageWritesNothing(t *testing.T) {
	t.Parallel()
	page := template.Must(template.New("p").Parse(`half {{.Name}}`))
	w := httptest.NewRecorder()
	if err := Write(w, page, "p", 7, Answer{}); err == nil || w.Body.Len() != 0 || len(w.Header()) != 0 {
		t.Fatal(err, w.Body, w.Header())
	}
}

func TestFramesAreAskedFor(t *testing.T) {
	t.Parallel()
	w := httptest.NewRecorder()
	err := Write(w, template.Must(template.New("p").Parse("x")), "p", nil, Answer{Policy: Allow{Framed: true}.Policy()})
	if err != nil || w.Header().Get("X-Frame-Options") != "" {
		t.Fatal(err, w.Header())
	}
}
