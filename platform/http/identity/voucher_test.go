package identity

import (
	"net/http"
	"testing"
	"time"

	"sluice.dev/sluice/filters/identityheader"
)

func TestWhomAServiceVouchesFor(t *testing.T) {
	t.Parallel()
	before, present := []byte("the one before"), []byte("the present one")
	v := Verifier{Secrets: func() [][]byte { return [][]byte{present, before} }, Now: func() time.Time { return time.Unix(1000, 0) }}
	signed := func(secret []byte) []string {
		return []string{identityheader.Sign(secret, Caller{Account: "acct_1", Key: "key_1"}, 1000)}
	}
	for name, c := range map[string]struct {
		identity, address []string
		by                []byte // whose secret the voucher has; nil: there is none
	}{
		"a caller":                      {signed(present), []string{"192.0.2.7"}, present},
		"an edge with the old secret":   {signed(before), []string{"192.0.2.7"}, before},
		"nobody known":                  {nil, []string{"192.0.2.7"}, nil},
		"a forged identity":             {signed([]byte("a guess")), []string{"192.0.2.7"}, nil},
		"two identities":                {append(signed(present), signed(present)...), []string{"192.0.2.7"}, nil},
		"no address":                    {signed(present), nil, nil},
		"two addresses, one of a guess": {signed(present), []string{"192.0.2.7", "6.6.6.6"}, nil},
	} {
		in := http.Header{"X-Sluice-Identity": c.identity, "X-Sluice-Client-Address": c.address}
		out := http.Header{}
		out.Set(identityheader.VoucherHeader, "of the client's own")
		v.Vouch(out, in)
		value := out.Get(identityheader.VoucherHeader)
		if c.by == nil {
			if value != "" {
				t.Errorf("%s: %q", name, value)
			}
			continue
		}
		if addr, ok := identityheader.VerifyVoucher(c.by, value, "key_1", 1000); !ok || addr.String() != "192.0.2.7" {
			t.Errorf("%s: %v %v", name, addr, ok)
		}
	}
	v.Secrets = nil
	v.Vouch(http.Header{}, http.Header{"X-Sluice-Identity": signed(present), "X-Sluice-Client-Address": {"192.0.2.7"}})
}

// A service that holds but its own secret vouches with that; the edge believes it
// of the runtime alone.
func TestVouchingWithoutThePlatformsSecret(t *testing.T) {
	t.Parallel()
	platform, now := []byte("the platform's"), func() time.Time { return time.Unix(1000, 0) }
	for _, c := range []struct {
		product string
		all     bool // it holds the platform's secret
		want    bool
	}{{identityheader.Vouching, false, true}, {"media", false, false}, {"api", true, true}} {
		own := identityheader.ProductSecret(platform, c.product)
		v := Verifier{Own: []Secret{{c.product, own}}, Now: now}
		if c.all {
			v = Verifier{Secrets: func() [][]byte { return [][]byte{[]byte("next"), platform} }, Now: now}
		}
		in := http.Header{"X-Sluice-Identity": {identityheader.SignFor(own, c.product, Caller{Account: "acct_1", Key: "key_1"}, 1000)}, "X-Sluice-Client-Address": {"192.0.2.7"}}
		out := http.Header{}
		v.Vouch(out, in)
		addr, ok := identityheader.VerifyVoucher(platform, out.Get(identityheader.VoucherHeader), "key_1", 1000)
		if ok != c.want || ok && addr.String() != "192.0.2.7" {
			t.Errorf("%s: %v %v, want %v", c.product, addr, ok, c.want)
		}
	}
}
