package stripe_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"sluice.dev/sluice/controlplane/accounts/billing/provider"
	"sluice.dev/sluice/controlplane/accounts/billing/provider/stripe"
	"sluice.dev/sluice/controlplane/accounts/billing/provider/stripe/stripetest"
	"sluice.dev/sluice/platform/outbound"
)

func must[T any](t *testing.T) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func refusal(err error) string {
	if r, ok := errors.AsType[*provider.Refusal](err); ok {
		return r.Code
	}
	return ""
}

// TestEveryCallIsOneOfStripes has stripe-mock hold every request against Stripe's description.
func TestEveryCallIsOneOfStripes(t *testing.T) {
	t.Parallel()
	server := stripetest.New(t)
	s, ctx := server.Client(), t.Context()
	customer := must[string](t)(s.Customer(ctx, "acct_1"))
	if again := must[string](t)(s.Customer(ctx, "acct_1")); again != customer {
		t.Errorf("two customers: %s and %s", customer, again)
	}
	setup := must[provider.Setup](t)(s.Setup(ctx, customer))
	if setup.ClientSecret == "" || setup.PublishableKey != "pk_test_123" {
		t.Errorf("%+v", setup)
	}
	m := must[provider.Method](t)(s.Attach(ctx, customer, "pm_one"))
	if want := (provider.Method{Reference: "pm_one", Kind: "card", Brand: "visa", Last4: "4242", ExpMonth: 8, ExpYear: 2030}); m != want {
		t.Errorf("%+v", m)
	}
	if again := must[provider.Method](t)(s.Attach(ctx, customer, "pm_one")); again != m {
		t.Errorf("again: %+v", again)
	}
	for token, want := range map[string]string{"pm_missing": "resource_missing", "pm_../x": "resource_missing", "4242424242424242": "resource_missing", "tok_visa": "resource_missing", "pm_": "resource_missing"} {
		if _, err := s.Attach(ctx, customer, token); refusal(err) != want {
			t.Errorf("%s: %v", token, err)
		}
	}
	if _, err := s.Attach(ctx, "cus_other", "pm_one"); refusal(err) != "payment_method_already_attached" {
		t.Errorf("somebody else's: %v", err)
	}
	p := provider.Payment{Customer: customer, Invoice: "inv_1", Amount: 4900, Currency: "EUR", Description: "Invoice 1"}
	payment := must[string](t)(s.Prepare(ctx, p))
	if again := must[string](t)(s.Prepare(ctx, p)); again != payment {
		t.Errorf("two payments: %s and %s", payment, again)
	}
	server.Fail(stripetest.Fault{Path: "/confirm", Decline: "insufficient_funds"})
	if o := must[provider.Outcome](t)(s.Charge(ctx, payment, m.Reference)); o != (provider.Outcome{Failure: "insufficient_funds"}) {
		t.Errorf("declined: %+v", o)
	}
	for range 2 { // the second finds that it is paid
		if o := must[provider.Outcome](t)(s.Charge(ctx, payment, m.Reference)); o != (provider.Outcome{State: provider.Paid}) || server.Charges() != 1 {
			t.Errorf("charged: %+v, %d times", o, server.Charges())
		}
	}
	for status, want := range map[string]provider.State{"processing": provider.Processing, "canceled": provider.Canceled, "requires_confirmation": provider.Unpaid} {
		server.SetStatus(status)
		if o := must[provider.Outcome](t)(s.Look(ctx, payment)); o.State != want {
			t.Errorf("%s: %+v", status, o)
		}
	}
	server.SetStatus("odd")
	if _, err := s.Look(ctx, payment); err == nil {
		t.Error("a status that nobody knows is taken")
	}
	for range 2 { // the second finds that it is gone
		if err := s.Detach(ctx, "pm_one"); err != nil {
			t.Error(err)
		}
	}
	if err := s.Detach(ctx, "pm_missing"); err != nil {
		t.Error(err)
	}
}

func TestWhatStripeAnswers(t *testing.T) {
	t.Parallel()
	var status int
	var body string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer sk_secret" || r.Header.Get("Stripe-Version") != stripe.Version {
			t.Error(r.Header)
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}))
	defer server.Close()
	s := stripe.New(stripe.Config{Key: "sk_secret", URL: server.URL + "/", Client: outbound.New(outbound.Config{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, MaxBody: stripe.MaxAnswer})})
	for _, c := range []struct {
		status  int
		body    string
		refusal string // empty: an error that says nothing
	}{
		{400, `{"error":{"type":"invalid_request_error","code":"amount_too_small"}}`, "amount_too_small"},
		{402, `{"error":{"type":"card_error","code":"card_declined","decline_code":"lost_card"}}`, "lost_card"},
		{404, `{"error":{"type":"invalid_request_error"}}`, "invalid_request_error"},
		{400, `{"error":{"code":"<script>"}}`, "unknown"},
		{400, `nothing`, "unknown"},
		{401, `{"error":{"type":"invalid_request_error","message":"Invalid API Key provided: sk_secret"}}`, ""},
		{409, `{"error":{"code":"idempotency_key_in_use"}}`, ""},
		{429, `{"error":{"code":"rate_limit"}}`, ""},
		{500, `{}`, ""},
		{200, `{`, ""},
		{200, `{"id":"pi_1","status":"requires_payment_method","x":"` + strings.Repeat("x", stripe.MaxAnswer) + `"}`, ""},
		{302, ``, ""},
	} {
		status, body = c.status, c.body
		_, err := s.Prepare(t.Context(), provider.Payment{Invoice: "inv_1"})
		if err == nil || refusal(err) != c.refusal {
			t.Errorf("%d %.80s: %v", c.status, c.body, err)
		}
		if err != nil && strings.Contains(err.Error(), "sk_secret") {
			t.Errorf("the key is in an error: %v", err)
		}
	}
}
