package main

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/proxytest"
	"sluice.dev/sluice/filters/credentials/apikey"
	"sluice.dev/sluice/filters/decision"
)

const payTo = "0x209693bc6afc0c5328ba36faf03c514ef312287c"

func TestPricedRouteIsQuoted(t *testing.T) {
	both(t, func(t *testing.T, h proxytest.HostEmulator) {
		load(keyRecord(), secretRecord())
		r := send(t, h, "clips.sold", [2]string{":path", "/v1/clips?token=x"})
		var q struct {
			X402Version                   int
			Error, Code                   string
			Request_ID, Documentation_URL string
			Accepts                       []struct{ MaxAmountRequired, Resource, PayTo, Description, MimeType string }
		}
		if err := json.Unmarshal([]byte(r.body), &q); err != nil {
			t.Fatal(err, r.body)
		}
		if r.status != 402 || q.X402Version != 1 || q.Code != string(decision.PaymentRequired) || q.Request_ID != "req-1" || q.Error == "" || len(q.Accepts) != 1 {
			t.Fatalf("%d %s", r.status, r.body)
		}
		if a := q.Accepts[0]; a.MaxAmountRequired != "10000" || a.Resource != "http://gw/v1/clips" || a.PayTo != payTo || a.Description == "" || a.MimeType == "" {
			t.Errorf("%+v", a)
		}
		if r.response["cache-control"] != "no-store" || r.response["x-ratelimit-limit"] != "50" {
			t.Errorf("%v", r.response)
		}
	})
}

// Money does not make up for a bad credential, and a good one costs nothing.
func TestOnlyTheLackOfACredentialIsForSale(t *testing.T) {
	both(t, func(t *testing.T, h proxytest.HostEmulator) {
		load(keyRecord(), secretRecord())
		for header, want := range map[string]uint32{
			"Bearer " + key: 0, "Bearer " + apikey.FormatKey(8, [apikey.SecretBytes]byte{8}): 401, "Bearer x": 401, "Basic eDp5": 401,
		} {
			if r := send(t, h, "clips.sold", [2]string{"authorization", header}); r.status != want {
				t.Errorf("%s: %d %s", header, r.status, r.body)
			}
		}
	})
}

// An address that is over its limit is told so, whatever it sends for a payment:
// none is read. A path is repeated up to a length.
func TestWhatAnAddressCanHaveReadIsBounded(t *testing.T) {
	both(t, func(t *testing.T, h proxytest.HostEmulator) {
		load(keyRecord(), secretRecord())
		long := send(t, h, "clips.sold", [2]string{":path", "/v1/clips/" + strings.Repeat("\xff", maxPath-10)})
		if long.status != 402 || len(long.body) > 16<<10 {
			t.Errorf("a path of %d bytes: %d, %d bytes", maxPath, long.status, len(long.body))
		}
		if r := send(t, h, "clips.sold", [2]string{":path", "/v1/clips/" + strings.Repeat("x", maxPath)}); r.status != 400 || !strings.Contains(r.body, `"field":"path"`) {
			t.Errorf("a longer path: %d %s", r.status, r.body)
		}
		blank := [2]string{"x-payment", base64.StdEncoding.EncodeToString([]byte(`{"x402Version":1}` + strings.Repeat(" ", 6000)))}
		for range 48 {
			if r := send(t, h, "clips.sold", blank); r.status != 400 || !strings.Contains(r.body, "too much white space") {
				t.Fatalf("%d %s", r.status, r.body)
			}
		}
		for _, headers := range [][][2]string{{blank}, {payment()}, nil} {
			if r := send(t, h, "clips.sold", headers...); r.status != 429 {
				t.Errorf("over the limit: %d %s", r.status, r.body)
			}
		}
	})
}
