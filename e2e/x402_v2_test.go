package e2e

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// quotedV2 is the PAYMENT-REQUIRED header of a 402.
type quotedV2 struct {
	X402Version int `json:"x402Version"`
	Resource    struct {
		URL string `json:"url"`
	} `json:"resource"`
	Accepts []json.RawMessage `json:"accepts"`
}

// offerV2 turns on version 2 of the payment protocol, with some other settings,
// and waits for a quote of it.
func (s *stack) offerV2(t testing.TB, settings map[string]any) (q quotedV2, body quoted) {
	t.Helper()
	s.reconfigure(t, func(d map[string]any) {
		x := d["x402"].(map[string]any)
		x["v2"] = true
		for k, v := range settings {
			x[k] = v
		}
	})
	eventually(t, "a quote of version 2", func() error {
		r, err := try(http.MethodPost, s.url("/v1/clips"), "", clipOrder)
		if err != nil {
			return err
		}
		b, err := base64.StdEncoding.DecodeString(r.Header.Get("Payment-Required"))
		if err != nil || json.Unmarshal(b, &q) != nil {
			return fmt.Errorf("%d, PAYMENT-REQUIRED %q", r.StatusCode, r.Header.Get("Payment-Required"))
		}
		return json.Unmarshal([]byte(r.body), &body)
	})
	return q, body
}

// paidBySecondVersion pays for a clip by version 2; version 1 stays on offer.
func (s *stack) paidBySecondVersion(t *testing.T) {
	t.Helper()
	q, body := s.offerV2(t, nil)
	if q.X402Version != 2 || len(q.Accepts) != 1 || q.Resource.URL != s.url("/v1/clips") || body.X402Version != 1 {
		t.Fatalf("%+v, body %+v", q, body)
	}
	accepted := intoText[struct{ Scheme, Network, Amount, Asset, PayTo string }](t, string(q.Accepts[0]))
	offer := body.Accepts[0]
	if accepted.Scheme != "exact" || accepted.Network != "eip155:84532" || accepted.Amount != "10000" || accepted.Asset != offer.Asset || accepted.PayTo != offer.PayTo {
		t.Errorf("%s", q.Accepts[0])
	}
	w := s.funded(t, "20000")
	first := w.payFor(t, offer)
	one := paymentOf(t, first)
	second, err := json.Marshal(map[string]any{"x402Version": 2, "resource": q.Resource, "accepted": q.Accepts[0], "payload": one})
	if err != nil {
		t.Fatal(err)
	}
	header := base64.StdEncoding.EncodeToString(second)
	r := call(t, http.MethodPost, s.url("/v1/clips"), "", clipOrder, "PAYMENT-SIGNATURE", header)
	wantStatus(t, r, http.StatusCreated)
	wantHeaders(t, r)
	b, err := base64.StdEncoding.DecodeString(r.Header.Get("Payment-Response"))
	if err != nil {
		t.Fatal(err)
	}
	if p := intoText[paidReceipt](t, string(b)); !p.Success || p.Payer != w.address || p.Network != "eip155:84532" {
		t.Errorf("%s", b)
	}
	// The same nonce in the other version's words is the same payment.
	again := call(t, http.MethodPost, s.url("/v1/clips"), "", clipOrder, "X-PAYMENT", first)
	wantStatus(t, again, http.StatusPaymentRequired)
	both := call(t, http.MethodPost, s.url("/v1/clips"), "", clipOrder, "X-PAYMENT", first, "PAYMENT-SIGNATURE", header)
	if both.StatusCode != http.StatusBadRequest || !strings.Contains(both.body, "given twice") {
		t.Errorf("both headers: %d %s", both.StatusCode, both.body)
	}
	wantStatus(t, call(t, http.MethodPost, s.url("/v1/clips"), "", clipOrder, "X-PAYMENT", w.payFor(t, offer)), http.StatusCreated)
	if amount, held := s.balance(t, w.address); amount != "0" || held != "0" {
		t.Error(amount, held)
	}
}

// paymentOf is the payload of an X-PAYMENT header.
func paymentOf(t testing.TB, header string) json.RawMessage {
	t.Helper()
	text, err := base64.StdEncoding.DecodeString(header)
	if err != nil {
		t.Fatal(err)
	}
	return intoText[struct{ Payload json.RawMessage }](t, string(text)).Payload
}
