package webpage

import (
	"net/http/httptest"
	"strings"
	"testing"
)

// A page may run the script and the style that stand in it, and nothing else.
func TestAPageOfOneFile(t *testing.T) {
	t.Parallel()
	const script, style = "if (1 < 2 && '\u00e9') go()", "p > a { color: red; }"
	w := httptest.NewRecorder()
	page := NewInline("<p>{{.Text}}</p>", script, style, Allow{Media: "'self'", Framed: true})
	if err := page.Write(w, "<T>", map[string]string{"Text": "a & b"}); err != nil {
		t.Fatal(err)
	}
	body := w.Body.String()
	for _, want := range []string{"<title>&lt;T&gt;</title>", "<p>a &amp; b</p>", "<script>" + script + "</script>", "<style>" + style + "</style>"} {
		if !strings.Contains(body, want) {
			t.Errorf("no %s in %s", want, body)
		}
	}
	want := Allow{Scripts: []string{script}, Styles: []string{style}, Media: "'self'", Framed: true}.Policy()
	if got := w.Header().Get("Content-Security-Policy"); got != want || strings.Contains(got, "unsafe") {
		t.Errorf("%s, want %s", got, want)
	}
}
