package landing

import (
	"crypto/sha256"
	"encoding/base64"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestPage(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		config     Config
		host, want string
	}{
		"configured address": {Config{PublicURL: "https://chat.example", Model: "m-1", Docs: "https://docs.example/"}, "x", "curl -N https://chat.example/v1/chat/completions"},
		"the request's":      {Config{Model: "m-1"}, "127.0.0.1:8090", "curl -N http://127.0.0.1:8090/v1/chat/completions"},
		"a hostile host":     {Config{Model: "m-1"}, `x"><script>`, "curl -N http://xscript/v1/chat/completions"},
	} {
		rec, req := httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil)
		req.Host = c.host
		Handler(c.config).ServeHTTP(rec, req)
		body := rec.Body.String()
		if rec.Code != 200 || !strings.HasPrefix(rec.Header().Get("Content-Type"), "text/html") || !strings.Contains(body, c.want) {
			t.Errorf("%s: %d\n%s", name, rec.Code, body)
		}
		if got := strings.Contains(body, "https://docs.example/"); got != (c.config.Docs != "") {
			t.Errorf("%s: link to the documentation: %v", name, got)
		}
	}
}

// What the browser hashes is what stands between the tags: a template that
// changed a byte of it would switch the page off.
func TestPolicyFitsThePage(t *testing.T) {
	t.Parallel()
	rec := httptest.NewRecorder()
	Handler(Config{Model: "m"}).ServeHTTP(rec, httptest.NewRequest("GET", "/", nil))
	csp := rec.Header().Get("Content-Security-Policy")
	for _, tag := range []string{"script", "style"} {
		_, rest, _ := strings.Cut(rec.Body.String(), "<"+tag+">")
		inside, _, ok := strings.Cut(rest, "</"+tag+">")
		sum := sha256.Sum256([]byte(inside))
		if !ok || !strings.Contains(csp, tag+"-src 'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'") {
			t.Errorf("the policy does not allow the page's %s", tag)
		}
	}
}
