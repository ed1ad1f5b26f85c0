package identity

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"sluice.dev/sluice/controlplane/respond"
	edge "sluice.dev/sluice/filters/identity"
)

func TestOnlySignedIdentityReachesTheHandler(t *testing.T) {
	t.Parallel()
	secret := []byte("0123456789abcdef")
	at := time.Unix(1000, 0)
	v := Verifier{Secrets: func() [][]byte { return [][]byte{secret} }, Now: func() time.Time { return at }}
	good := edge.Sign(secret, Caller{Account: "acct_1", Key: "key_1"}, 1000)
	cases := map[string]struct {
		headers []string
		want    int
	}{
		"signed":    {[]string{good}, 200},
		"none":      {nil, 401},
		"two":       {[]string{good, good}, 401},
		"forged":    {[]string{edge.Sign([]byte("other"), Caller{Account: "acct_1"}, 1000)}, 401},
		"stale":     {[]string{edge.Sign(secret, Caller{Account: "acct_1"}, 1000-edge.Lifetime-edge.Leeway)}, 503},
		"plain one": {[]string{"acct_1"}, 401},
	}
	h := v.Require(respond.Adapter{})(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if Account(r.Context()) != "acct_1" {
			t.Errorf("account %q", Account(r.Context()))
		}
	}))
	for name, c := range cases {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header[http.CanonicalHeaderKey(edge.Header)] = c.headers
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != c.want {
			t.Errorf("%s: %d, want %d", name, w.Code, c.want)
		}
	}
}

func TestNoCallerMeansNoAccount(t *testing.T) {
	t.Parallel()
	if _, ok := From(t.Context()); ok || Account(t.Context()) != "" {
		t.Fatal("a context without a caller has one")
	}
}
