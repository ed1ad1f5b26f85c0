package main

import (
	"encoding/base64"
	"slices"
	"strings"
	"testing"

	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/proxytest"
	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/types"
	"sluice.dev/sluice/filters/edgeapi"
	"sluice.dev/sluice/filters/identityheader"
	"sluice.dev/sluice/filters/x402"
)

const payerAddress = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266"

// payment is a header that is good as far as an edge can tell.
func payment() [2]string {
	return [2]string{"x-payment", base64.StdEncoding.EncodeToString([]byte(`{"x402Version":1,"scheme":"exact","network":"base-sepolia","payload":{"signature":"0x` +
		strings.Repeat("1b", 65) + `","authorization":{"from":"` + payerAddress + `","to":"` + payTo + `","value":"10000","validAfter":"0","validBefore":"99999999999","nonce":"0x` +
		strings.Repeat("ab", 32) + `"}}}`))}
}

// paying is a paid request on its way, with the control plane played by the test.
type paying struct {
	t  *testing.T
	h  proxytest.HostEmulator
	id uint32
}

// pay sends a paid request, which must wait for its claim.
func pay(t *testing.T, h proxytest.HostEmulator, headers ...[2]string) paying {
	t.Helper()
	load(keyRecord(), secretRecord())
	set(t, h, []string{"xds", "route_name"}, "clips.sold")
	set(t, h, []string{"source", "address"}, "192.0.2.1:1234")
	p := paying{t, h, h.InitializeHttpContext()}
	all := append([][2]string{{":path", "/v1/clips"}, {":method", "POST"}, {"x-request-id", "req-1"}, payment()}, headers...)
	if a := h.CallOnRequestHeaders(p.id, all, true); a != types.ActionPause || h.GetSentLocalResponse(p.id) != nil {
		t.Fatalf("%v %+v", a, h.GetSentLocalResponse(p.id))
	}
	return p
}

// answerCall answers the one call about a payment that is under way, made for context id.
func (p paying) answerCall(id uint32, path, status string, headers ...[2]string) {
	p.t.Helper()
	calls := p.h.GetCalloutAttributesFromContext(id)
	if len(calls) == 0 {
		p.t.Fatalf("no call of %s", path)
	}
	last := calls[len(calls)-1]
	got := toMap(last.Headers)
	caller, err := identityheader.Verify([][]byte{secret[:]}, got[identityheader.Header], signedAt(p.t, got[identityheader.Header]))
	if got[":path"] != path || err != nil || caller.Key != identityheader.EdgeKey || last.Upstream != edgeapi.FeedCluster {
		p.t.Fatalf("%+v %v, want %s", got, err, path)
	}
	var all [][2]string
	if status != "" {
		all = append([][2]string{{":status", status}}, headers...)
	}
	p.h.CallOnHttpCallResponse(last.CalloutID, all, nil, nil)
}

func (p paying) granted() {
	p.t.Helper()
	p.answerCall(p.id, "/hub/v1/claims", "201", [2]string{"x-sluice-payment", "xpay_1"})
}

// answer is the product's.
func (p paying) answer(status string) types.Action {
	return p.h.CallOnResponseHeaders(p.id, [][2]string{{":status", status}}, false)
}

// answerPending lets a tick pass and answers the call that it makes.
func (p paying) answerPending(path, status string) {
	p.t.Helper()
	p.h.Tick()
	p.answerCall(proxytest.PluginContextID, path, status)
}

func TestPaidRequestIsSettled(t *testing.T) {
	both(t, func(t *testing.T, h proxytest.HostEmulator) {
		p := pay(t, h, [2]string{identityheader.Header, "forged"})
		p.granted()
		request := toMap(h.GetCurrentRequestHeaders(p.id))
		c, err := told("media", request[identityheader.Header], signedAt(t, request[identityheader.Header]))
		if err != nil || c.Key != "pay_"+payerAddress || c.Account != "" || request["x-payment"] != "" || h.GetCurrentHttpStreamAction(p.id) != types.ActionContinue {
			t.Fatalf("%+v %v %v", c, err, request)
		}
		if a := p.answer("201"); a != types.ActionPause {
			t.Fatal("the answer did not wait for the settlement")
		}
		p.answerCall(p.id, "/hub/v1/claims/xpay_1/settle", "200", [2]string{"x-payment-response", "receipt"})
		response := toMap(h.GetCurrentResponseHeaders(p.id))
		if response["x-payment-response"] != "receipt" || response["cache-control"] != "no-store" || h.GetCurrentHttpStreamAction(p.id) != types.ActionContinue {
			t.Fatalf("%v", response)
		}
		h.CompleteHttpContext(p.id)
	})
}

func TestAnswersToAClaim(t *testing.T) {
	both(t, func(t *testing.T, h proxytest.HostEmulator) {
		for _, c := range []struct {
			status string
			header [2]string
			want   uint32
			text   string
		}{
			{"402", [2]string{"x-sluice-reason", "insufficient_funds"}, 402, "insufficient_funds"},
			{"201", [2]string{"x-other", "no id"}, 503, "service_unavailable"},
			{"500", [2]string{}, 503, "service_unavailable"},
			{"", [2]string{}, 503, "service_unavailable"},
		} {
			p := pay(t, h)
			p.answerCall(p.id, "/hub/v1/claims", c.status, c.header)
			got := h.GetSentLocalResponse(p.id)
			if got == nil || got.StatusCode != c.want || !strings.Contains(string(got.Data), c.text) {
				t.Errorf("%+v: %+v", c, got)
			}
			h.CompleteHttpContext(p.id)
		}
	})
}

func TestProductThatFailsIsNotPaid(t *testing.T) {
	both(t, func(t *testing.T, h proxytest.HostEmulator) {
		p := pay(t, h)
		p.granted()
		if a := p.answer("503"); a != types.ActionContinue {
			t.Fatal(a)
		}
		h.CompleteHttpContext(p.id)
		p.answerPending("/hub/v1/claims/xpay_1/release", "500")
		p.answerPending("/hub/v1/claims/xpay_1/release", "204")
	})
}

func TestSettlementThatIsRefused(t *testing.T) {
	both(t, func(t *testing.T, h proxytest.HostEmulator) {
		p := pay(t, h)
		p.granted()
		p.answer("200")
		p.answerCall(p.id, "/hub/v1/claims/xpay_1/settle", "402", [2]string{"x-sluice-reason", "insufficient_funds"}, [2]string{"x-payment-response", "receipt"})
		got := h.GetSentLocalResponse(p.id)
		if got == nil || got.StatusCode != 402 || !strings.Contains(string(got.Data), "insufficient_funds") || !strings.Contains(string(got.Data), "req-1") {
			t.Fatalf("%+v", got)
		}
		if m := toMap(got.Headers); m["x-payment-response"] != "receipt" || m["x-ratelimit-limit"] == "" {
			t.Errorf("%v", m)
		}
		h.CompleteHttpContext(p.id)
	})
}

// The payer gets what was paid for, and the control plane is told when it is back.
func TestSettlementThatIsNotAnswered(t *testing.T) {
	both(t, func(t *testing.T, h proxytest.HostEmulator) {
		p := pay(t, h)
		p.granted()
		p.answer("200")
		p.answerCall(p.id, "/hub/v1/claims/xpay_1/settle", "")
		if h.GetSentLocalResponse(p.id) != nil || h.GetCurrentHttpStreamAction(p.id) != types.ActionContinue {
			t.Fatal("the answer was withheld")
		}
		h.CompleteHttpContext(p.id)
		p.answerPending("/hub/v1/claims/xpay_1/settle", "")
		p.answerPending("/hub/v1/claims/xpay_1/settle", "200")
	})
}

// Leaving while the product is at work makes nothing free.
func TestPayerWhoLeaves(t *testing.T) {
	both(t, func(t *testing.T, h proxytest.HostEmulator) {
		p := pay(t, h)
		p.granted()
		h.CompleteHttpContext(p.id)
		p.answerPending("/hub/v1/claims/xpay_1/settle", "200")
	})
}

func TestPaymentHeadersThatAreRefused(t *testing.T) {
	both(t, func(t *testing.T, h proxytest.HostEmulator) {
		load(keyRecord(), secretRecord())
		good := payment()
		for text, headers := range map[string][][2]string{
			"is given twice": {good, good}, "is empty": {{"x-payment", ""}}, "is not base64": {{"x-payment", good[1] + "!"}}, "is not JSON": {{"x-payment", "AAAA"}},
		} {
			if r := send(t, h, "clips.sold", headers...); r.status != 400 || !strings.Contains(r.body, text) {
				t.Errorf("%s: %d %s", text, r.status, r.body)
			}
		}
	})
}

// Nobody pays for an answer that a crash of the filter has cost; who leaves does.
func TestACrashIsNotPaidFor(t *testing.T) {
	for _, c := range []struct {
		crashed bool
		want    string
	}{{true, "/release"}, {false, "/settle"}} {
		pending = pendingSettlements{}
		t.Cleanup(func() { pending = pendingSettlements{} })
		r := request{extra: &extra{paid: &paidRequest{stage: granted, paymentID: "clm_1"}}}
		r.endPaidRequest(c.crashed)
		if want := x402.ClaimsPath + "/clm_1" + c.want; !slices.Equal(pending.paths, []string{want}) {
			t.Errorf("crashed %v: owed %q, want %q", c.crashed, pending.paths, want)
		}
	}
}
