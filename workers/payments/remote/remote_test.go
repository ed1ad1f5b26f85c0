package remote_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"

	"sluice.dev/sluice/filters/x402"
	"sluice.dev/sluice/platform/outbound"
	"sluice.dev/sluice/workers/payments/payment"
	"sluice.dev/sluice/workers/payments/remote"
)

// facilitator answers status and body to every call, and keeps the last one.
func facilitator(t *testing.T, status int, body string) (f remote.Facilitator, last *map[string]any) {
	t.Helper()
	last = &map[string]any{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := json.NewDecoder(r.Body).Decode(last); err != nil {
			t.Error(err)
		}
		(*last)["path"] = r.URL.Path
		if body == "" { // no answer at all
			<-r.Context().Done()
			return
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}))
	t.Cleanup(s.Close)
	client := outbound.New(outbound.Config{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	return remote.New(remote.Config{URL: s.URL + "/", Client: client, VerifyTimeout: 50 * time.Millisecond, SettleTimeout: 50 * time.Millisecond}), last
}

func sample() payment.Payment {
	return payment.Payment{
		Network:     "base-sepolia",
		Payment:     x402.Payment{Version: 2, Network: "eip155:84532", From: "0xa", To: "0xb", Value: "7", ValidAfter: "0", ValidBefore: "9", Nonce: "0xc", Signature: "0xd"},
		Requirement: x402.Requirement{Terms: x402.Terms{Network: "base-sepolia", Asset: "0xe", PayTo: "0xb", Name: "USDC", Version: "2", Seconds: 60}, Amount: 7, Resource: "http://gw/x"},
	}
}

func TestRequestIsThatOfTheProtocol(t *testing.T) {
	t.Parallel()
	f, last := facilitator(t, 200, `{"isValid":true,"payer":"0xa"}`)
	if err := f.Check(t.Context(), sample()); err != nil {
		t.Fatal(err)
	}
	got, _ := json.Marshal(*last)
	const want = `{"path":"/verify","paymentPayload":{"network":"base-sepolia","payload":{"authorization":{"from":"0xa","nonce":"0xc","to":"0xb",` +
		`"validAfter":"0","validBefore":"9","value":"7"},"signature":"0xd"},"scheme":"exact","x402Version":1},"paymentRequirements":{"asset":"0xe",` +
		`"description":"","extra":{"name":"USDC","version":"2"},"maxAmountRequired":"7","maxTimeoutSeconds":60,"mimeType":"","network":"base-sepolia",` +
		`"payTo":"0xb","resource":"http://gw/x","scheme":"exact"},"x402Version":1}`
	if string(got) != want {
		t.Errorf("%s", got)
	}
}

// unknown stands for an error that is no refusal.
const unknown x402.Reason = "unknown"

func outcome(err error) x402.Reason {
	if err == nil {
		return x402.Accepted
	}
	if r, ok := errors.AsType[*payment.Refusal](err); ok {
		return r.Reason
	}
	return unknown
}

func TestVerdicts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status int
		body   string
		want   x402.Reason
	}{
		"valid":                {200, `{"isValid":true}`, x402.Accepted},
		"not valid":            {200, `{"isValid":false,"invalidReason":"insufficient_funds"}`, x402.NoFunds},
		"not valid, as 400":    {400, `{"isValid":false,"invalidReason":"invalid_payload"}`, "invalid_payload"},
		"not valid, no reason": {200, `{"isValid":false}`, x402.VerifyFailed},
		"a reason for a log":   {200, `{"isValid":false,"invalidReason":"two\nlines"}`, x402.VerifyFailed},
		"no verdict":           {200, `{}`, unknown},
		"broken":               {500, `{"isValid":true}`, unknown},
		"not JSON":             {200, `<html>`, unknown},
		"no answer":            {200, ``, unknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, _ := facilitator(t, c.status, c.body)
			if err := f.Check(t.Context(), sample()); outcome(err) != c.want {
				t.Errorf("%v, want %s", err, c.want)
			}
		})
	}
}

func TestSettlements(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status int
		body   string
		first  x402.Reason // of a first call
		again  x402.Reason // of one after a call without an answer
	}{
		"settled":     {200, `{"success":true,"transaction":"0xabc"}`, x402.Accepted, x402.Accepted},
		"refused":     {200, `{"success":false,"errorReason":"insufficient_funds"}`, x402.NoFunds, unknown},
		"used before": {200, `{"success":false,"errorReason":"invalid_exact_evm_payload_nonce_already_used"}`, x402.NonceUsed, x402.Accepted},
		"a duplicate": {402, `{"success":false,"errorReason":"duplicate_settlement"}`, x402.Duplicate, x402.Accepted},
		"no reason":   {400, `{"success":false}`, x402.SettleFailed, unknown},
		"no verdict":  {200, `{}`, unknown, unknown},
		"broken":      {503, `{"success":true}`, unknown, unknown},
		"no answer":   {200, ``, unknown, unknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, _ := facilitator(t, c.status, c.body)
			hash, err := f.Settle(t.Context(), sample(), false)
			if outcome(err) != c.first || (err == nil) != (hash == "0xabc") {
				t.Errorf("%s %v, want %q", hash, err, c.first)
			}
			if _, err := f.Settle(t.Context(), sample(), true); outcome(err) != c.again {
				t.Errorf("again: %v, want %q", err, c.again)
			}
		})
	}
}
