package main

import (
	"testing"

	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/proxytest"
	"sluice.dev/sluice/filters/credentials/keytable"
	"sluice.dev/sluice/filters/identityheader"
)

// What one product is told of a caller is worth nothing at another, and products
// do not push each other's values out.
func TestEachProductIsToldForItself(t *testing.T) {
	both(t, func(t *testing.T, h proxytest.HostEmulator) {
		r := keyRecord()
		r.Plan = 2
		load(r, secretRecord())
		values := map[string]string{}
		for range 2 {
			for product, route := range map[string]string{"media": "streams.list", "other": "streams.get"} {
				value := send(t, h, route, bearer(key)).request[identityheader.Header]
				if before := values[product]; before != "" && before != value {
					t.Errorf("%s was signed anew", product)
				}
				values[product] = value
			}
		}
		for product, value := range values {
			for at := range values {
				_, err := told(at, value, signedAt(t, value))
				if (err == nil) != (product == at) {
					t.Errorf("the value for %s at %s: %v", product, at, err)
				}
			}
			if _, err := identityheader.Verify([][]byte{secret[:]}, value, signedAt(t, value)); err == nil {
				t.Errorf("the value for %s names nobody", product)
			}
		}
	})
}

// Products that are listed are told the first form, from when the edge hears of it.
func TestFormerProducts(t *testing.T) {
	both(t, func(t *testing.T, h proxytest.HostEmulator) {
		r := keyRecord()
		r.Plan = 2
		load(append(keytable.Split(keytable.TagOfSecret(identityheader.Former), []byte("shop,media")), r, secretRecord())...)
		value := send(t, h, "streams.list", bearer(key)).request[identityheader.Header]
		if _, err := identityheader.Verify([][]byte{secret[:]}, value, signedAt(t, value)); err != nil {
			t.Errorf("%s: %v", value, err)
		}
		value = send(t, h, "streams.get", bearer(key)).request[identityheader.Header]
		if _, err := told("other", value, signedAt(t, value)); err != nil {
			t.Errorf("%s: %v", value, err)
		}
	})
}
