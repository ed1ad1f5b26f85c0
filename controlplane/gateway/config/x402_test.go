package config

import (
	"fmt"
	"testing"

	"sluice.dev/sluice/filters/x402"
)

// priced is small with one route for sale.
func priced(change func(*X402, *Route)) Document {
	d := small()
	d.X402 = &X402{Network: "base-sepolia", PayTo: "0x209693Bc6afc0C5328bA36FaF03C514EF312287C"}
	d.Routes[0].Price = "0.01"
	change(d.X402, &d.Routes[0])
	return d
}

func TestPricesAreChecked(t *testing.T) {
	t.Parallel()
	many := uint8(19)
	for name, c := range map[string]struct {
		change func(*X402, *Route)
		want   string
	}{
		"a price":                    {func(*X402, *Route) {}, "[]"},
		"small letters":              {func(x *X402, _ *Route) { x.PayTo = "0x209693bc6afc0c5328ba36faf03c514ef312287c" }, "[]"},
		"a mistyped digit":           {func(x *X402, _ *Route) { x.PayTo = "0x209693Bc6afc0C5328bA36FaF03C514EF312287D" }, "[x402.pay_to]"},
		"no recipient":               {func(x *X402, _ *Route) { x.PayTo = "" }, "[x402.pay_to]"},
		"an unknown network":         {func(x *X402, _ *Route) { x.Network = "solana" }, "[x402.network x402.asset x402.token_name x402.token_version]"},
		"a network without a token":  {func(x *X402, _ *Route) { x.Network = "polygon" }, "[x402.asset x402.token_name x402.token_version]"},
		"a token without its domain": {func(x *X402, _ *Route) { x.Asset = x.PayTo }, "[x402.token_name x402.token_version]"},
		"a domain without its token": {func(x *X402, _ *Route) { x.Name = "USDC" }, "[x402.token_name]"},
		"too many decimals":          {func(x *X402, r *Route) { x.Decimals, r.Price = &many, "1" }, "[x402.decimals routes[0].price]"},
		"no time":                    {func(x *X402, _ *Route) { x.Timeout = "1s" }, "[x402.timeout]"},
		"a price of nothing":         {func(_ *X402, r *Route) { r.Price = "0.000000" }, "[routes[0].price]"},
		"a price below the token's":  {func(_ *X402, r *Route) { r.Price = "0.0000001" }, "[routes[0].price]"},
		"a price with a sign":        {func(_ *X402, r *Route) { r.Price = "-1" }, "[routes[0].price]"},
		"a price with an exponent":   {func(_ *X402, r *Route) { r.Price = "1e2" }, "[routes[0].price]"},
		"a price beyond counting":    {func(_ *X402, r *Route) { r.Price = "99999999999999" }, "[routes[0].price]"},
		"a price for what is free":   {func(_ *X402, r *Route) { r.Auth, r.Scope = []string{"none"}, "" }, "[routes[0].price]"},
		"a price on the runtime":     {func(_ *X402, r *Route) { r.Listener = Runtime }, "[routes[0].price]"},
	} {
		d := priced(c.change)
		if got := fmt.Sprint(fieldsAtFault(t, d.Validate())); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func TestPriceWithNobodyToPay(t *testing.T) {
	t.Parallel()
	d := priced(func(*X402, *Route) {})
	d.X402 = nil
	if got := fmt.Sprint(fieldsAtFault(t, d.Validate())); got != "[routes[0].price]" {
		t.Error(got)
	}
}

func TestAtomicAmounts(t *testing.T) {
	t.Parallel()
	none := uint8(0)
	for amount, want := range map[string]uint64{"0.01": 10000, "1": 1e6, "12.5": 12500000, "0.000001": 1, "9223372036854.775807": 1<<63 - 1,
		"9223372036854.775808": 0, "": 0, ".5": 0, "1.": 0, "1.2.3": 0, "0x1": 0, "1_0": 0} {
		if got, ok := (&X402{}).Atomic(amount); got != want && ok || ok != (want > 0) {
			t.Errorf("%s: %d %v", amount, got, ok)
		}
	}
	if got, ok := (&X402{Decimals: &none}).Atomic("7"); got != 7 || !ok {
		t.Error(got, ok)
	}
}

func TestPolicyHasTermsAndPrices(t *testing.T) {
	t.Parallel()
	d := priced(func(*X402, *Route) {})
	p, err := d.Policy(1, "http://gw", ProvisionalNumbers(d))
	if err != nil {
		t.Fatal(err)
	}
	want := x402.Terms{Network: "base-sepolia", PayTo: d.X402.PayTo, Asset: "0x036CbD53842c5426634e7929541eC2318f3dCF7e", Name: "USDC", Version: "2", Seconds: 60}
	if p.Payment != want || p.Routes[0].Price != 10000 || p.Routes[1].Price != 0 {
		t.Errorf("%+v %+v", p.Payment, p.Routes)
	}
}
