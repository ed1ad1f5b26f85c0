package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sluice.dev/sluice/controlplane/accounts/billing/price"
)

const pricedPlans = `
classes: [{name: default, per_minute: 600}]
plans:
  - {name: free}
  - name: pro
    price:
      currency: USD
      monthly: "29.00"
      units:
        requests: {amount: "0.40", per: 1000, included: 100000}
        bytes_out: {amount: "0.05", per: 1000000000}
        connection_minutes: {amount: "0.0005"}
products: [{name: a, upstreams: [{address: "a.example:80"}]}]
routes: [{name: r, path: /a, auth: [none], product: a}]
`

func TestPricesOfPlans(t *testing.T) {
	t.Parallel()
	d, _, err := ParseYAML([]byte(pricedPlans))
	if err == nil {
		err = d.Validate()
	}
	if err != nil {
		t.Fatal(err)
	}
	amount := func(s string) price.Amount {
		a, err := price.ParseAmount(s)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	want := map[string]price.Plan{"pro": {Currency: "USD", Monthly: 2900, Units: map[price.Metric]price.Unit{
		price.Requests:          {Amount: amount("0.4"), Per: 1000, Included: 100000},
		price.BytesOut:          {Amount: amount("0.05"), Per: 1_000_000_000},
		price.ConnectionMinutes: {Amount: amount("0.0005"), Per: 1},
	}}}
	if diff := cmp.Diff(want, d.Prices(), cmp.AllowUnexported(price.Amount{})); diff != "" {
		t.Error(diff)
	}
	dearer := d
	dearer.Plans = append([]Plan{}, d.Plans...)
	other := *d.Plans[1].Price
	other.Monthly = "39.00"
	dearer.Plans[1].Price = &other
	if changes := Diff(d, dearer); len(changes) != 1 || d.Equal(dearer) {
		t.Errorf("a price is changed, and the difference is %v", changes)
	}
}

func TestPricesOfPlansAreChecked(t *testing.T) {
	t.Parallel()
	for text, fault := range map[string]string{
		`{currency: EUR, monthly: "5"}`:                                                 "",
		`{currency: JPY, monthly: "500"}`:                                               "",
		`{currency: eur}`:                                                               "plans[0].price.currency",
		`{monthly: "5"}`:                                                                "plans[0].price.currency",
		`{currency: KWD}`:                                                               "plans[0].price.currency",
		`{currency: JPY, monthly: "5.5"}`:                                               "plans[0].price.monthly",
		`{currency: EUR, monthly: "-5"}`:                                                "plans[0].price.monthly",
		`{currency: EUR, units: {views: {amount: "1"}}}`:                                "plans[0].price.units.views",
		`{currency: EUR, units: {requests: {amount: "x"}}}`:                             "plans[0].price.units.requests.amount",
		`{currency: EUR, units: {requests: {}}}`:                                        "plans[0].price.units.requests.amount",
		`{currency: EUR, units: {tokens: {amount: "1", per: -1, included: -1}}}`:        "plans[0].price.units.tokens.included",
		`{currency: EUR, units: {tokens: {amount: "1"}, prompt_tokens: {amount: "1"}}}`: "plans[0].price.units.prompt_tokens",
		`{currency: EUR, yearly: "1"}`:                                                  "yearly",
		`{currency: EUR}}, {name: b, price: {currency: USD}`:                            "plans[1].price.currency",
	} {
		d, _, err := ParseYAML([]byte("plans: [{name: free, price: " + text + "}]\nproducts: [{name: a, upstreams: [{address: \"a.example:80\"}]}]\nroutes: [{name: r, path: /a, auth: [none], product: a}]\n"))
		if err == nil {
			err = d.Validate()
		}
		said := ""
		if err != nil {
			said = err.Error()
		}
		if fault == "" && strings.Contains(said, "price") || fault != "" && !strings.Contains(said, fault) {
			t.Errorf("%s: %s", text, said)
		}
	}
}
