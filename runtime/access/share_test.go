package access

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/platform/http/identity"
	"sluice.dev/sluice/platform/limits/fairshare"
)

func TestShare(t *testing.T) {
	t.Parallel()
	var inner func()
	h := Share(fairshare.New(fairshare.Config{Places: 4}), httpapi.Adapter{}, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { inner() }))
	ask := func(c *identity.Caller, address string) int {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = address
		if c != nil {
			r = r.WithContext(identity.With(r.Context(), *c))
		}
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, r)
		if (rec.Code == 429) != (rec.Header().Get("Retry-After") != "") {
			t.Errorf("%d with headers %v", rec.Code, rec.Header())
		}
		return rec.Code
	}
	one := &identity.Caller{Account: "acct_1", Key: "key_1"}
	same := &identity.Caller{Account: "acct_1", Key: "key_2"}
	payer, other := &identity.Caller{Key: "pay_1"}, &identity.Caller{Key: "pay_2"}
	for name, c := range map[string]struct {
		during, then  *identity.Caller
		first, second string
		want          int
	}{
		"another key of the account":            {one, same, "192.0.2.1:1", "192.0.2.2:1", 429},
		"a payer":                               {one, payer, "192.0.2.1:1", "192.0.2.1:1", 200},
		"the same payer":                        {payer, payer, "192.0.2.1:1", "192.0.2.2:1", 429},
		"two payers":                            {payer, other, "192.0.2.1:1", "192.0.2.1:1", 200},
		"nobody known, from one address":        {nil, nil, "192.0.2.1:1", "192.0.2.1:2", 429},
		"nobody known, from two":                {nil, nil, "192.0.2.1:1", "192.0.2.2:1", 200},
		"an address that is none, and the same": {nil, nil, "@", "@", 429},
	} {
		got := 0
		inner = func() {
			inner = func() {}
			got = ask(c.then, c.second)
		}
		if ask(c.during, c.first) != 200 || got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
		if inner = func() {}; ask(c.then, c.second) != 200 {
			t.Errorf("%s: the place is not given back", name)
		}
	}
}
