package payments_test

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/filters/identityheader"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/platform/http/identity"
	"sluice.dev/sluice/platform/limits/fairshare"
	"sluice.dev/sluice/workers/payments"
)

var secret = []byte("0123456789abcdef0123456789abcdef")

// seller is somebody with an account and scopes.
func seller(scopes ...string) *identity.Caller {
	return &identity.Caller{Account: "acct_1", Key: "key_1", Scopes: scopes}
}

// ask calls the facilitator over HTTP, as an edge would; a caller of nil has no
// credential.
func (b *testbed) ask(path string, o payments.Order, c *identity.Caller) (int, string) {
	b.t.Helper()
	r := chi.NewRouter()
	payments.Facilitator{
		Service: b.service, Places: b.places,
		Identity: identity.Verifier{Secrets: func() [][]byte { return [][]byte{secret} }, Now: b.clock},
	}.Routes(r, httpapi.Adapter{Log: slog.New(slog.DiscardHandler)})
	q, p := o.Requirement, o.Payment
	text, err := json.Marshal(map[string]any{
		"x402Version": 1,
		"paymentPayload": map[string]any{"x402Version": 1, "scheme": p.Scheme, "network": p.Network, "payload": map[string]any{"signature": p.Signature, "authorization": map[string]any{
			"from": p.From, "to": p.To, "value": p.Value, "validAfter": p.ValidAfter, "validBefore": p.ValidBefore, "nonce": p.Nonce}}},
		"paymentRequirements": map[string]any{"scheme": "exact", "network": q.Network, "maxAmountRequired": string(p.Value), "resource": q.Resource, "asset": q.Asset, "payTo": q.PayTo,
			"maxTimeoutSeconds": 60, "extra": map[string]any{"name": q.Name, "version": q.Version}},
	})
	if err != nil {
		b.t.Fatal(err)
	}
	req := httptest.NewRequestWithContext(b.t.Context(), http.MethodPost, path, strings.NewReader(string(text)))
	req.Header.Set("Content-Type", "application/json")
	if c != nil {
		req.Header.Set(identityheader.Header, identityheader.Sign(secret, *c, b.clock().Unix()))
	}
	rec := httptest.NewRecorder()
	r.ServeHTTP(rec, req)
	return rec.Code, rec.Body.String()
}

func TestWhoMaySettle(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		caller         *identity.Caller
		settle, verify int
	}{
		"nobody":                  {nil, 401, 401},
		"a key without the scope": {seller("clips:write", "payments:read"), 403, 200},
		"a payer":                 {&identity.Caller{Key: "pay_0x1", Scopes: []string{"*"}}, 401, 200},
		"a key with the scope":    {seller(payments.SettleScope), 200, 200},
		"a key with all scopes":   {seller("*"), 200, 200},
	} {
		r := &remote{}
		b := newTestbed(t, r)
		o := b.order()
		if status, body := b.ask("/x402/verify", o, c.caller); status != c.verify || (r.checks > 0) != (status == 200) {
			t.Errorf("%s verifies: %d %s, asked %d times", name, status, body, r.checks)
		}
		if status, body := b.ask("/x402/settle", o, c.caller); status != c.settle || (r.settles > 0) != (status == 200) {
			t.Errorf("%s settles: %d %s, asked %d times", name, status, body, r.settles)
		}
	}
	b := newTestbed(t, nil)
	if status, body := b.ask("/x402/verify", b.order(), nil); status != 200 || !strings.Contains(body, `"isValid":true`) {
		t.Errorf("the ledger, where nothing costs: %d %s", status, body)
	}
	if status, _ := b.ask("/x402/settle", b.order(), nil); status != 401 {
		t.Errorf("somebody without a key settles in the ledger: %d", status)
	}
}

// Whoever settles says what is paid and to whom, and never in which money: its
// contract is called at our cost. Neither a node nor a facilitator hears of it.
func TestOnlyOurMoneyIsSettled(t *testing.T) {
	t.Parallel()
	r := &remote{}
	b := newTestbed(t, r)
	for name, change := range map[string]func(*payments.Order){
		"another chain":        func(o *payments.Order) { o.Requirement.Network, o.Payment.Network = "polygon", "polygon" },
		"no chain":             func(o *payments.Order) { o.Requirement.Network, o.Payment.Network = "nowhere", "nowhere" },
		"a contract of theirs": func(o *payments.Order) { o.Requirement.Asset = shop },
		"another name":         func(o *payments.Order) { o.Requirement.Name = "USD Coin" },
		"another version":      func(o *payments.Order) { o.Requirement.Version = "1" },
	} {
		o := b.order(change)
		for _, path := range []string{"/x402/verify", "/x402/settle"} {
			if status, body := b.ask(path, o, seller("*")); status != 200 || !strings.Contains(body, "invalid_network") && !strings.Contains(body, "invalid_payment_requirements") {
				t.Errorf("%s at %s: %d %s", name, path, status, body)
			}
		}
		if _, err := b.service.Claim(t.Context(), o); err == nil {
			t.Errorf("%s: an edge's claim is granted", name)
		}
	}
	if r.checks != 0 || r.settles != 0 {
		t.Errorf("the settler was asked %d and %d times", r.checks, r.settles)
	}
	elsewhere := b.order(func(o *payments.Order) { o.Requirement.PayTo, o.Payment.To = token, token })
	if status, body := b.ask("/x402/settle", elsewhere, seller("*")); status != 200 || !strings.Contains(body, `"success":true`) {
		t.Errorf("another seller's payment in our money: %d %s", status, body)
	}
}

// A seller that has its share of payments under way slows no other.
func TestSellersShareWhatIsAsked(t *testing.T) {
	t.Parallel()
	b := newTestbed(t, &remote{})
	b.places = fairshare.New(fairshare.Config{Places: 4})
	leave, _ := b.places.TryEnter("acct_1")
	other := &identity.Caller{Account: "acct_2", Key: "key_2", Scopes: []string{"*"}}
	for _, path := range []string{"/x402/verify", "/x402/settle"} {
		if status, body := b.ask(path, b.order(), seller("*")); status != 429 {
			t.Errorf("%s beyond the share: %d %s", path, status, body)
		}
		if status, body := b.ask(path, b.order(), other); status != 200 {
			t.Errorf("%s for another: %d %s", path, status, body)
		}
	}
	leave()
	if status, body := b.ask("/x402/settle", b.order(), seller("*")); status != 200 {
		t.Errorf("behind it: %d %s", status, body)
	}
}
