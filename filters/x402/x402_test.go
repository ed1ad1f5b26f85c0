package x402_test

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"sluice.dev/sluice/filters/x402"
)

func asked() x402.Requirement {
	return x402.Requirement{
		Terms:  x402.Terms{Network: "base-sepolia", Asset: asset, PayTo: shop, Name: "USDC", Version: "2", Seconds: 60},
		Amount: 10000, Resource: "https://gw/v1/clips", Description: "One call", MimeType: "application/json",
	}
}

func TestDecide(t *testing.T) {
	t.Parallel()
	const now = 1500
	for name, c := range map[string]struct {
		text string
		now  int64
		want x402.Reason
	}{
		"version 1":                    {v1(), now, x402.Accepted},
		"version 2":                    {v2(), now, x402.Accepted},
		"version 2 without a resource": {v2(`"resource":{"url":"https://gw/v1/clips"},`, ""), now, x402.Accepted},
		"another scheme":               {v1(`"exact"`, `"upto"`), now, x402.BadScheme},
		"another network":              {v1(`"base-sepolia"`, `"base"`), now, x402.BadNetwork},
		"no network":                   {v1(`"base-sepolia"`, `""`), now, x402.BadNetwork},
		"another recipient":            {v1(`"to":"`+shop, `"to":"`+payer), now, x402.BadRecipient},
		"less":                         {v1(`"10000"`, `"9999"`), now, x402.BadAmount},
		"more":                         {v1(`"10000"`, `"10001"`), now, x402.BadAmount},
		"more by 2^64":                 {v1(`"10000"`, `"18446744073709561616"`), now, x402.BadAmount},
		"at its first second":          {v1(), 1000, x402.Accepted},
		"before it":                    {v1(), 999, x402.TooEarly},
		"with time left to settle":     {v1(), 1994, x402.Accepted},
		"without":                      {v1(), 1995, x402.TooLate},
		"for good":                     {v1(`"2000"`, `"99999999999999999999999"`), now, x402.Accepted},
		"version 2, another resource":  {v2("/v1/clips", "/v1/other"), now, x402.BadRequirements},
		"version 2, another asset":     {v2(`"asset":"`+asset, `"asset":"`+payer), now, x402.BadRequirements},
		"version 2, another payee":     {v2(`"payTo":"`+shop, `"payTo":"`+payer), now, x402.BadRequirements},
		"version 2, another amount":    {v2(`"amount":"10000"`, `"amount":"1"`), now, x402.BadRequirements},
	} {
		p, issue := x402.Parse([]byte(c.text))
		if issue != "" {
			t.Fatal(name, issue)
		}
		if got := x402.Decide(asked(), p, c.now); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestChains(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]uint64{"base": 8453, "eip155:84532": 84532, "eip155:1": 0, "": 0, "solana": 0} {
		if got := x402.Chain(name); got != want {
			t.Errorf("%s: %d", name, got)
		}
	}
	for _, name := range x402.Networks() {
		if x402.Chain(name) == 0 {
			t.Error(name)
		}
	}
}

// What public clients need of a quote; see docs/x402.md.
func TestQuote(t *testing.T) {
	t.Parallel()
	body := x402.AppendQuote(nil, asked(), x402.HeaderIsRequired, "req-1", "https://gw")
	var got any
	if err := json.Unmarshal(body, &got); err != nil {
		t.Fatal(err)
	}
	const want = `{"accepts":[{"asset":"0x036CbD53842c5426634e7929541eC2318f3dCF7e","description":"One call","extra":{"name":"USDC","version":"2"},` +
		`"maxAmountRequired":"10000","maxTimeoutSeconds":60,"mimeType":"application/json","network":"base-sepolia",` +
		`"payTo":"0x209693Bc6afc0C5328bA36FaF03C514EF312287C","resource":"https://gw/v1/clips","scheme":"exact"}],"code":"payment_required",` +
		`"documentation_url":"https://gw/docs/errors/payment_required","error":"X-PAYMENT header is required","request_id":"req-1","x402Version":1}`
	if text, _ := json.Marshal(got); string(text) != want {
		t.Errorf("%s", text)
	}
}

func TestQuoteOfVersion2(t *testing.T) {
	t.Parallel()
	text, err := base64.StdEncoding.DecodeString(x402.HeaderV2(asked(), x402.BadAmount))
	var got any
	if err != nil || json.Unmarshal(text, &got) != nil {
		t.Fatal(err, string(text))
	}
	const want = `{"accepts":[{"amount":"10000","asset":"0x036CbD53842c5426634e7929541eC2318f3dCF7e","extra":{"name":"USDC","version":"2"},` +
		`"maxTimeoutSeconds":60,"network":"eip155:84532","payTo":"0x209693Bc6afc0C5328bA36FaF03C514EF312287C","scheme":"exact"}],` +
		`"error":"invalid_exact_evm_payload_authorization_value","resource":{"description":"One call","mimeType":"application/json","url":"https://gw/v1/clips"},"x402Version":2}`
	if text, _ := json.Marshal(got); string(text) != want {
		t.Errorf("%s", text)
	}
}

func TestIsAddress(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]bool{payer: true, shop: true, "": false, "0x": false, shop[2:]: false, shop + "0": false, strings.Replace(shop, "C", "G", 1): false} {
		if x402.IsAddress(s) != want {
			t.Error(s)
		}
	}
}
