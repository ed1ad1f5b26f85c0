package access

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/filters/identityheader"
	"sluice.dev/sluice/platform/http/identity"
)

func TestRequire(t *testing.T) {
	t.Parallel()
	secret, now := []byte("secret"), time.Now().Unix()
	good := identityheader.Sign(secret, identity.Caller{Account: "acct_1", Key: "key_1"}, now)
	v := identity.Verifier{Secrets: func() [][]byte { return [][]byte{secret} }}
	g, strict := Guard{Verifier: v, Standalone: true}, Guard{Verifier: v}
	for name, c := range map[string]struct {
		header http.Header
		status int
		who    string
	}{
		"nothing":                {http.Header{}, 401, ""},
		"a token":                {http.Header{"Authorization": {"Bearer abc"}}, 200, " abc"},
		"scheme in another case": {http.Header{"Authorization": {"bearer  abc "}}, 200, " abc"},
		"another scheme":         {http.Header{"Authorization": {"Basic abc"}}, 401, ""},
		"no token":               {http.Header{"Authorization": {"Bearer "}}, 401, ""},
		"two tokens":             {http.Header{"Authorization": {"Bearer a", "Bearer b"}}, 401, ""},
		"a huge token":           {http.Header{"Authorization": {"Bearer " + strings.Repeat("x", maxToken)}}, 401, ""},
		"an identity":            {http.Header{"X-Sluice-Identity": {good}}, 200, "acct_1 "},
		"both":                   {http.Header{"X-Sluice-Identity": {good}, "Authorization": {"Bearer abc"}}, 200, "acct_1 abc"},
		"a forged identity":      {http.Header{"X-Sluice-Identity": {good + "0"}, "Authorization": {"Bearer abc"}}, 401, ""},
		"an empty identity":      {http.Header{"X-Sluice-Identity": {""}, "Authorization": {"Bearer abc"}}, 401, ""},
	} {
		say := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, identity.Account(r.Context())+" "+Bearer(r.Context()))
		})
		h := g.Require(say)
		rec, req := httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil)
		req.Header = c.header
		h.ServeHTTP(rec, req)
		if rec.Code != c.status || c.status == 200 && rec.Body.String() != c.who {
			t.Errorf("%s: %d %q", name, rec.Code, rec.Body)
		}
		if got := rec.Header().Get("WWW-Authenticate") != ""; got != (c.status == 401) {
			t.Errorf("%s: challenge %v", name, got)
		}
		// Behind edges, what no edge has signed is refused.
		if c.header.Get("X-Sluice-Identity") != good {
			c.status = 401
		}
		rec = httptest.NewRecorder()
		if strict.Require(say).ServeHTTP(rec, req); rec.Code != c.status {
			t.Errorf("%s, behind edges: %d", name, rec.Code)
		}
	}
}
