package identity

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"sluice.dev/sluice/filters/identityheader"
	"sluice.dev/sluice/platform/http/httpapi"
)

func TestOnlySignedIdentityReachesTheHandler(t *testing.T) {
	t.Parallel()
	secret := []byte("0123456789abcdef")
	at := time.Unix(1000, 0)
	v := Verifier{Secrets: func() [][]byte { return [][]byte{secret} }, Now: func() time.Time { return at }}
	good := identityheader.Sign(secret, Caller{Account: "acct_1", Key: "key_1"}, 1000)
	cases := map[string]struct {
		headers []string
		want    int
	}{
		"signed":    {[]string{good}, 200},
		"none":      {nil, 401},
		"two":       {[]string{good, good}, 401},
		"forged":    {[]string{identityheader.Sign([]byte("other"), Caller{Account: "acct_1"}, 1000)}, 401},
		"stale":     {[]string{identityheader.Sign(secret, Caller{Account: "acct_1"}, 1000-identityheader.Lifetime-identityheader.Leeway)}, 503},
		"plain one": {[]string{"acct_1"}, 401},
	}
	h := v.Require(httpapi.Adapter{})(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if Account(r.Context()) != "acct_1" {
			t.Errorf("account %q", Account(r.Context()))
		}
	}))
	for name, c := range cases {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header[http.CanonicalHeaderKey(identityheader.Header)] = c.headers
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != c.want {
			t.Errorf("%s: %d, want %d", name, w.Code, c.want)
		}
	}
}

// A service takes what is said to the products that lead to it. With the platform's
// secret it takes the first form too, which edges of before sign.
func TestWhatIsSaidToWhom(t *testing.T) {
	t.Parallel()
	platform := []byte("0123456789abcdef")
	media, shop := identityheader.ProductSecret(platform, "media"), identityheader.ProductSecret(platform, "shop")
	old := identityheader.ProductSecret([]byte("of before"), "media")
	by := Caller{Account: "acct_1", Key: "key_1"}
	first, toMedia, toShop := identityheader.Sign(platform, by, 1000), identityheader.SignFor(media, "media", by, 1000), identityheader.SignFor(shop, "shop", by, 1000)
	asked := 0
	holder := Verifier{Secrets: func() [][]byte { return [][]byte{platform} }, Leads: func(_ context.Context, name string) bool { asked++; return name == "media" }}
	product := Verifier{Own: []Secret{{"media", old}, {"media", media}}}
	for name, c := range map[string]struct {
		value           string
		holder, product bool
	}{
		"for it":                       {toMedia, true, true},
		"for another":                  {toShop, false, false},
		"for nobody":                   {first, true, false},
		"for it, by a thief elsewhere": {identityheader.SignFor(shop, "media", by, 1000), false, false},
		"with the secret of before":    {identityheader.SignFor(old, "media", by, 1000), false, true},
		"too late":                     {identityheader.SignFor(media, "media", by, 0), false, false},
	} {
		for _, v := range []struct {
			Verifier
			want bool
		}{{holder, c.holder}, {product, c.product}, {Verifier{}, false}} {
			v.Now = func() time.Time { return time.Unix(1000, 0) }
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			r.Header.Set(identityheader.Header, c.value)
			if got, err := v.Caller(r); (err == nil) != v.want || v.want && got.Account != "acct_1" {
				t.Errorf("%s: %+v %v, want %v", name, got, err, v.want)
			}
		}
	}
	if asked != 2 {
		t.Errorf("the configuration was asked %d times, want for what is signed only", asked)
	}
}

func TestNoCallerMeansNoAccount(t *testing.T) {
	t.Parallel()
	if _, ok := From(t.Context()); ok || Account(t.Context()) != "" {
		t.Fatal("a context without a caller has one")
	}
}
