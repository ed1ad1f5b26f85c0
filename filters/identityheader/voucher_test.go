package identityheader

import (
	"strings"
	"testing"
)

const issued = 1_800_000_000

func TestVoucherSpeaksForItsAddress(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]string{"192.0.2.7": "192.0.2.7", "2001:db8::1": "2001:db8::1", "::ffff:192.0.2.7": "192.0.2.7"} {
		v := Voucher{said, "key_1"}
		for _, value := range []string{SignVoucher([]byte("secret"), v, issued), SignOwnVoucher(ProductSecret([]byte("secret"), Vouching), v, issued)} {
			for _, now := range []int64{issued, issued + Lifetime - 1} {
				if got, ok := VerifyVoucher([]byte("secret"), value, "key_1", now); !ok || got.String() != want {
					t.Errorf("%s: %v %v", said, got, ok)
				}
			}
		}
	}
}

func TestVouchersThatAreRefused(t *testing.T) {
	t.Parallel()
	secret := []byte("secret")
	sign := func(address, key string) string { return SignVoucher(secret, Voucher{address, key}, issued) }
	good := sign("192.0.2.7", "key_1")
	for name, c := range map[string]struct {
		value, key string
		now        int64
	}{
		"nothing":                   {"", "key_1", issued},
		"of another credential":     {good, "key_2", issued},
		"of a caller without one":   {sign("192.0.2.7", ""), "", issued},
		"expired":                   {good, "key_1", issued + Lifetime},
		"of another secret":         {SignVoucher([]byte("other"), Voucher{"192.0.2.7", "key_1"}, issued), "key_1", issued},
		"another address":           {strings.Replace(good, "192.0.2.7", "192.0.2.8", 1), "key_1", issued},
		"a later end":               {strings.Replace(good, ";e=1", ";e=2", 1), "key_1", issued},
		"no MAC":                    {good[:strings.Index(good, ";m=")], "key_1", issued},
		"an identity":               {Sign(secret, Caller{Account: "192.0.2.7", Key: "key_1"}, issued), "key_1", issued},
		"no address":                {sign("here", "key_1"), "key_1", issued},
		"a credential in its place": {sign("192.0.2.7;k=key_1;e=9999999999", "key_2"), "key_1", issued},
		"two in a list":             {good + "," + good, "key_1", issued},
		"of another product":        {SignOwnVoucher(ProductSecret(secret, "media"), Voucher{"192.0.2.7", "key_1"}, issued), "key_1", issued},
		"of a product, as ours":     {SignVoucher(ProductSecret(secret, Vouching), Voucher{"192.0.2.7", "key_1"}, issued), "key_1", issued},
		"far too long":              {strings.Repeat("c", 10_000), "key_1", issued},
	} {
		if addr, ok := VerifyVoucher(secret, c.value, c.key, c.now); ok {
			t.Errorf("%s: vouches for %v", name, addr)
		}
	}
	if _, ok := VerifyVoucher(nil, SignVoucher(nil, Voucher{"192.0.2.7", "key_1"}, issued), "key_1", issued); ok {
		t.Error("an edge without a secret believes it")
	}
}

func FuzzVerifyVoucher(f *testing.F) {
	f.Add(SignVoucher([]byte("secret"), Voucher{"192.0.2.7", "key_1"}, issued))
	f.Add("c1;a=192.0.2.7;k=key_1;e=1;m=00")
	f.Add(";m=;;;")
	f.Fuzz(func(t *testing.T, value string) {
		addr, ok := VerifyVoucher([]byte("secret"), value, "key_1", issued)
		v := Voucher{addr.String(), "key_1"}
		if ok && SignVoucher([]byte("secret"), v, issued) != value && SignOwnVoucher(ProductSecret([]byte("secret"), Vouching), v, issued) != value {
			t.Errorf("%q vouches for %v", value, addr)
		}
	})
}
