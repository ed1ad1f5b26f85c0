package resources

import (
	"slices"
	"strings"
	"testing"

	"sluice.dev/sluice/controlplane/gateway/config"
)

// Pages may pay, and read receipts, where there is a price.
func TestPagesMayPayWhereThereIsAPrice(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		what         string
		cors         config.CORS
		price        string
		sends, reads []string
		never        string // sent
	}{
		{"no price", config.CORS{}, "", []string{"authorization", "content-type", "x-api-key"}, []string{"retry-after", "x-ratelimit-remaining"}, "x-payment"},
		{"a price", config.CORS{}, "0.01", []string{"authorization", "x-payment", "payment-signature", "access-control-expose-headers"},
			[]string{"x-ratelimit-remaining", "x-payment-response", "payment-response", "payment-required"}, "cookie"},
		{"a price, and lists", config.CORS{Headers: []string{"x-a"}, Expose: []string{"x-b"}}, "0.01",
			[]string{"x-a", "x-payment"}, []string{"x-b", "x-payment-response"}, "authorization"},
	} {
		p := corsPolicy(c.cors, config.Route{Price: c.price}, []string{"x-api-key"})
		sends, reads := strings.Split(p.AllowHeaders, ", "), strings.Split(p.ExposeHeaders, ", ")
		for _, h := range c.sends {
			if !slices.Contains(sends, h) {
				t.Errorf("%s: pages may not send %s: %v", c.what, h, sends)
			}
		}
		for _, h := range c.reads {
			if !slices.Contains(reads, h) {
				t.Errorf("%s: pages may not read %s: %v", c.what, h, reads)
			}
		}
		if slices.Contains(sends, c.never) {
			t.Errorf("%s: pages may send %s", c.what, c.never)
		}
	}
}
