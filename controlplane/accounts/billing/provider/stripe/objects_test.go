package stripe

import (
	"encoding/json"
	"testing"

	"sluice.dev/sluice/platform/limits/growth"
)

// FuzzAnswers reads what Stripe, or whoever is in its place, may say of a payment method and
// of a payment.
func FuzzAnswers(f *testing.F) {
	f.Add([]byte(`{"id":"pm_1","type":"card","customer":null,"card":{"brand":"visa","last4":"4242","exp_month":8,"exp_year":2030}}`))
	f.Add([]byte(`{"id":"pi_1","status":"requires_payment_method","last_payment_error":{"code":"card_declined","decline_code":"lost_card"}}`))
	f.Add([]byte(`{"type":"type"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		growth.Linear(t, len(b), 64, 16<<10, func() { var m paymentMethod; _ = json.Unmarshal(b, &m) })
		var m paymentMethod
		if json.Unmarshal(b, &m) == nil {
			got, err := m.method()
			if err == nil && (got.Reference == "" || len(got.Last4) > 4 || len(got.Brand) > 40) {
				t.Errorf("%+v", got)
			}
		}
		var p paymentIntent
		if json.Unmarshal(b, &p) == nil {
			if o, err := p.outcome(); err == nil && len(o.Failure) > 100 {
				t.Errorf("%+v", o)
			}
		}
	})
}
