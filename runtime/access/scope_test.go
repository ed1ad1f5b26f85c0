package access

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"sluice.dev/sluice/filters/identityheader"
	"sluice.dev/sluice/platform/http/identity"
)

func TestRequireScope(t *testing.T) {
	t.Parallel()
	secret := []byte("a secret of 32 bytes or more, yes")
	for name, c := range map[string]struct {
		scopes []string
		asked  bool
		status int
	}{
		"the scope":           {[]string{"chat:write"}, true, 200},
		"its wildcard":        {[]string{"chat:*"}, true, 200},
		"another":             {[]string{"streams:read", "chat:read"}, true, 403},
		"none":                {nil, true, 403},
		"another, before":     {[]string{"streams:read"}, false, 200},
		"who has all of them": {[]string{"*"}, true, 200},
	} {
		g := Guard{Verifier: identity.Verifier{Secrets: func() [][]byte { return [][]byte{secret} }}, Asked: func(context.Context) bool { return c.asked }}
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/chat/completions", nil)
		r.Header.Set(identityheader.Header, identityheader.Sign(secret, identity.Caller{Account: "acct_1", Key: "key_1", Scopes: c.scopes}, time.Now().Unix()))
		w := httptest.NewRecorder()
		g.RequireScope("chat:write", http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})).ServeHTTP(w, r)
		if w.Code != c.status {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
}
