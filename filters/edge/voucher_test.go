package main

import (
	"net/netip"
	"testing"

	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/proxytest"
	"sluice.dev/sluice/filters/credentials/allowlist"
	"sluice.dev/sluice/filters/credentials/keytable"
	"sluice.dev/sluice/filters/identityheader"
)

// A request that a service makes in its caller's name is judged by the caller's
// address; nobody else can name one. The client's own is 192.0.2.1.
func TestAddressesThatAreVouchedFor(t *testing.T) {
	both(t, func(t *testing.T, h proxytest.HostEmulator) {
		r := keyRecord()
		r.Plan = 2
		load(r, secretRecord())
		plain := send(t, h, "streams.list", bearer(key))
		if got := plain.request[identityheader.AddressHeader]; plain.status != 0 || got != "" {
			t.Fatalf("%d, the product is told of %q before Envoy tells it", plain.status, got)
		}
		now := signedAt(t, plain.request[identityheader.Header])
		vouch := func(s []byte, address, credential string) [2]string {
			return [2]string{identityheader.VoucherHeader, identityheader.SignVoucher(s, identityheader.Voucher{Address: address, Key: credential}, now)}
		}
		r.Flags = keytable.FlagAllowlist
		load(append(keytable.Split(keytable.TagOfAllowlist(9), allowlist.Encode([]netip.Prefix{netip.MustParsePrefix("198.51.100.0/24")})), r, secretRecord())...)
		own := keytable.FormatID(keytable.KeyPrefix, 7)
		for name, c := range map[string]struct {
			voucher [2]string
			address string // that the product is told of; "": refused
		}{
			"none":                    {[2]string{"x-other", "1"}, ""},
			"for a listed address":    {vouch(secret[:], "198.51.100.7", own), "198.51.100.7"},
			"for another address":     {vouch(secret[:], "203.0.113.7", own), ""},
			"for another credential":  {vouch(secret[:], "198.51.100.7", keytable.FormatID(keytable.KeyPrefix, 8)), ""},
			"signed by somebody else": {vouch([]byte("guess"), "198.51.100.7", own), ""},
			"not signed":              {[2]string{identityheader.VoucherHeader, "198.51.100.7"}, ""},
		} {
			got := send(t, h, "streams.list", bearer(key), c.voucher)
			if passed := got.status == 0; passed != (c.address != "") || passed && got.request[identityheader.AddressHeader] != c.address || !passed && got.status != 403 {
				t.Errorf("%s: %d %s, the product is told of %q", name, got.status, got.body, got.request[identityheader.AddressHeader])
			}
		}
	})
}
