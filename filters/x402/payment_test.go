package x402_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"sluice.dev/sluice/filters/x402"
	"sluice.dev/sluice/platform/limits/growth"
)

const (
	payer = "0xa6b6a3c9b7f4b8b0bd9e6b2d9a2b17d1a5a0c0f1"
	shop  = "0x209693Bc6afc0C5328bA36FaF03C514EF312287C"
	asset = "0x036CbD53842c5426634e7929541eC2318f3dCF7e"
)

var (
	nonce     = "0x" + strings.Repeat("ab", 32)
	signature = "0x" + strings.Repeat("1b", 65)
)

// v1 is a payment of version 1 with some fields of its authorization replaced.
func v1(replace ...string) string {
	text := fmt.Sprintf(`{"x402Version":1,"scheme":"exact","network":"base-sepolia","payload":{"signature":%q,"authorization":`+
		`{"from":%q,"to":%q,"value":"10000","validAfter":"1000","validBefore":"2000","nonce":%q}}}`, signature, payer, shop, nonce)
	return strings.NewReplacer(replace...).Replace(text)
}

func v2(replace ...string) string {
	text := fmt.Sprintf(`{"x402Version":2,"resource":{"url":"https://gw/v1/clips"},"accepted":{"scheme":"exact","network":"eip155:84532","amount":"10000",`+
		`"asset":%q,"payTo":%q,"maxTimeoutSeconds":60,"extra":{}},"payload":{"signature":%q,"authorization":`+
		`{"from":%q,"to":%q,"value":"10000","validAfter":"1000","validBefore":"2000","nonce":%q}}}`, asset, shop, signature, payer, shop, nonce)
	return strings.NewReplacer(replace...).Replace(text)
}

func TestParseReadsBothVersions(t *testing.T) {
	t.Parallel()
	want := x402.Payment{Version: 1, Scheme: "exact", Network: "base-sepolia", From: payer, To: strings.ToLower(shop),
		Value: "10000", ValidAfter: "1000", ValidBefore: "2000", Nonce: nonce, Signature: signature}
	if got, issue := x402.Parse([]byte(v1())); got != want || issue != "" {
		t.Errorf("%+v %s", got, issue)
	}
	want.Version, want.Network = 2, "eip155:84532"
	want.Asset, want.PayTo, want.Resource, want.Amount = strings.ToLower(asset), strings.ToLower(shop), "https://gw/v1/clips", "10000"
	if got, issue := x402.Parse([]byte(v2())); got != want || issue != "" {
		t.Errorf("%+v %s", got, issue)
	}
}

// However a client spells a payment, it is one and the same.
func TestSpellingsOfOnePayment(t *testing.T) {
	t.Parallel()
	want, _ := x402.Parse([]byte(v1()))
	for name, text := range map[string]string{
		"capitals":       v1(payer, "0x"+strings.ToUpper(payer[2:]), nonce, "0X"+strings.ToUpper(nonce[2:])),
		"white space":    v1(",", " ,\n "),
		"unknown fields": v1(`"scheme"`, `"note":{"scheme":"other"},"scheme"`, `"from"`, `"memo":[1],"from"`),
	} {
		if got, issue := x402.Parse([]byte(text)); got != want || issue != "" {
			t.Errorf("%s: %+v %s", name, got, issue)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, issue string }{
		"nothing":                  {"", "is not JSON"},
		"two values":               {v1() + "{}", "is not JSON"},
		"an array":                 {"[" + v1() + "]", "is not an object"},
		"a version to come":        {v1(`n":1`, `n":3`), "x402Version"},
		"a version as text":        {v1(`n":1`, `n":"1"`), "x402Version"},
		"a version as a fraction":  {v1(`n":1`, `n":1.0`), "x402Version"},
		"no scheme":                {v1(`"scheme":"exact",`, ``), "scheme"},
		"the network twice":        {v1(`"network"`, `"network":"base","network"`), "network is given twice"},
		"the nonce twice":          {v1(`"nonce"`, `"nonce":"0x00","nonce"`), "nonce is given twice"},
		"the payload twice":        {v1(`"payload"`, `"payload":{},"payload"`), "payload is given twice"},
		"an escape in a value":     {v1(`"exact"`, `"\u0065xact"`), "scheme is not plain text"},
		"a value as a number":      {v1(`"10000"`, `10000`), "value is not a string"},
		"a value in hexadecimal":   {v1(`"10000"`, `"0x2710"`), "value is not a whole number"},
		"a value with an exponent": {v1(`"10000"`, `"1e4"`), "value is not a whole number"},
		"a value with zeros":       {v1(`"10000"`, `"010000"`), "value is not a whole number"},
		"a value with a sign":      {v1(`"10000"`, `"+10000"`), "value is not a whole number"},
		"a value with a space":     {v1(`"10000"`, `" 10000"`), "value is not a whole number"},
		"an empty value":           {v1(`"10000"`, `""`), "value is not a whole number"},
		"a value of 2^256": {v1(`"10000"`, `"115792089237316195423570985008687907853269984665640564039457584007913129639936"`),
			"value is not a whole number below 2^256"},
		"a short nonce":        {v1(nonce, nonce[:64]), "nonce is not 0x"},
		"a nonce without 0x":   {v1(nonce, nonce[2:]+"00"), "nonce is not 0x"},
		"a sender of names":    {v1(payer, "vitalik.eth"), "from is not 0x"},
		"a wallet's signature": {v1(signature, signature+"00"), "signature is not 0x and 130"},
		"a blank before":       {" " + v1(), "too much white space"},
		"a line end behind":    {v1() + "\n", "too much white space"},
		"blanks inside":        {v1(`"scheme"`, strings.Repeat(" ", 1025)+`"scheme"`), "too much white space"},
		"8 KB of blanks":       {v1() + strings.Repeat(" ", 7000), "too much white space"},
		"more than a header":   {v1(`"scheme"`, `"x":"`+strings.Repeat("x", 8192)+`","scheme"`), "is longer than 8192 bytes"},
		"deep nesting":         {v1(`"scheme"`, `"x":`+strings.Repeat("[", 9)+strings.Repeat("]", 9)+`,"scheme"`), "nested too deeply"},
		"version 2, no choice": {v2(`"accepted"`, `"chosen"`), "accepted is not an object"},
		"version 2, no asset":  {v2(`"asset"`, `"token"`), "asset is not a string"},
		"version 2, a bad URL": {v2(`{"url":"https://gw/v1/clips"}`, `"https://gw"`), "resource is not an object"},
	} {
		if p, issue := x402.Parse([]byte(c.text)); !strings.Contains(issue, c.issue) || p != (x402.Payment{}) {
			t.Errorf("%s: %q, want %q", name, issue, c.issue)
		}
	}
}

func TestLargestNumber(t *testing.T) {
	t.Parallel()
	const most = "115792089237316195423570985008687907853269984665640564039457584007913129639935"
	p, issue := x402.Parse([]byte(v1(`"2000"`, `"`+most+`"`)))
	if issue != "" || p.ValidBefore != most || p.ValidBefore.Uint64() != 1<<64-1 || p.ValidAfter.Uint64() != 1000 {
		t.Errorf("%+v %s", p, issue)
	}
}

func TestDecodeTakesOneSpelling(t *testing.T) {
	t.Parallel()
	good := base64.StdEncoding.EncodeToString([]byte("{}?>"))
	if text, issue := x402.Decode(good); string(text) != "{}?>" || issue != "" {
		t.Error(string(text), issue)
	}
	for name, header := range map[string]string{
		"the URL alphabet":   base64.URLEncoding.EncodeToString([]byte("{}?>")),
		"no padding":         strings.TrimRight(base64.StdEncoding.EncodeToString([]byte("a")), "="),
		"stray bits":         "YR==",
		"a line end":         good[:4] + "\n" + good[4:],
		"two, with a comma":  good + "," + good,
		"two, with a space":  good + ", " + good,
		"plain JSON":         v1(),
		"more than is taken": strings.Repeat("AAAA", x402.MaxHeader/4+1),
	} {
		if _, issue := x402.Decode(header); issue == "" {
			t.Errorf("%s: accepted", name)
		}
	}
}

// What the parser takes is JSON that the standard library reads alike, and is
// the same when it is read from its own form.
func FuzzParse(f *testing.F) {
	f.Add([]byte(v1()))
	f.Add([]byte(v2()))
	f.Add([]byte(v1(`"10000"`, `"0"`)))
	f.Fuzz(func(t *testing.T, text []byte) {
		growth.Linear(t, len(text), 8, 4<<10, func() { x402.Parse(text) })
		p, issue := x402.Parse(text)
		if issue != "" {
			return
		}
		var other struct {
			Payload struct {
				Authorization struct{ From, Value, Nonce string }
			}
		}
		if err := json.Unmarshal(text, &other); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if len(p.From) != 42 || len(p.Nonce) != 66 || len(p.Signature) != 132 || p.From != strings.ToLower(p.From) || p.Value == "" {
			t.Fatalf("%+v", p)
		}
	})
}

func FuzzDecode(f *testing.F) {
	f.Add(base64.StdEncoding.EncodeToString([]byte(v1())))
	f.Fuzz(func(t *testing.T, header string) {
		growth.Linear(t, len(header), 4, 1<<10, func() { x402.Decode(header) })
		if text, issue := x402.Decode(header); issue == "" && base64.StdEncoding.EncodeToString(text) != header {
			t.Fatalf("%q has two spellings", header)
		}
	})
}
