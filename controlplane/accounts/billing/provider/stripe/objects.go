package stripe

import (
	"encoding/json"
	"fmt"

	"sluice.dev/sluice/controlplane/accounts/billing/provider"
)

// object is anything of Stripe's.
type object struct {
	ID string `json:"id"`
}

// paymentMethod is a PaymentMethod. What depends on its type stands in a field of that name.
type paymentMethod struct {
	object
	Type     string `json:"type"`
	Customer string `json:"customer"`
	details
}

// details are what a PaymentMethod says of itself, whatever its type.
type details struct {
	Brand    string `json:"brand"`
	Last4    string `json:"last4"`
	ExpMonth int    `json:"exp_month"`
	ExpYear  int    `json:"exp_year"`
}

// UnmarshalJSON reads the details from where the type says. It takes time and memory linear
// in b, which is an answer of Stripe's of MaxAnswer bytes at most.
func (m *paymentMethod) UnmarshalJSON(b []byte) error {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(b, &all); err != nil {
		return err
	}
	*m = paymentMethod{}
	for name, into := range map[string]any{"id": &m.ID, "type": &m.Type, "customer": &m.Customer} {
		if raw := all[name]; raw != nil {
			if err := json.Unmarshal(raw, into); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	if raw := all[m.Type]; raw != nil {
		return json.Unmarshal(raw, &m.details)
	}
	return nil
}

// method is m as billing keeps it.
func (m paymentMethod) method() (provider.Method, error) {
	if !idForm.MatchString(m.ID) || !word.MatchString(m.Type) || len(m.Last4) > 4 || len(m.Brand) > 40 {
		return provider.Method{}, fmt.Errorf("stripe: a payment method that cannot be read")
	}
	return provider.Method{Reference: m.ID, Kind: m.Type, Brand: m.Brand, Last4: m.Last4, ExpMonth: m.ExpMonth, ExpYear: m.ExpYear}, nil
}

// paymentIntent is a PaymentIntent.
type paymentIntent struct {
	object
	Status string `json:"status"`
	Last   struct {
		Code        string `json:"code"`
		DeclineCode string `json:"decline_code"`
	} `json:"last_payment_error"`
}

// outcome is what became of p. A payment that waits for its customer in a browser, as some
// banks want it, may be charged to another method.
func (p paymentIntent) outcome() (o provider.Outcome, err error) {
	for _, code := range []string{p.Last.Code, p.Last.DeclineCode} {
		if word.MatchString(code) {
			o.Failure = code
		}
	}
	switch p.Status {
	case "succeeded":
		return provider.Outcome{State: provider.Paid}, nil
	case "processing":
		return provider.Outcome{State: provider.Processing}, nil
	case "canceled":
		o.State = provider.Canceled
	case "requires_action":
		o.Failure = "authentication_required"
	case "requires_payment_method", "requires_confirmation":
	default:
		return o, fmt.Errorf("stripe: a payment that is %.40q", p.Status)
	}
	return o, nil
}
