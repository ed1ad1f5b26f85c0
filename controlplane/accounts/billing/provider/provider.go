// Package provider says what billing wants of whoever takes customers' money: that it keeps
// their payment methods, so that no card number passes through us, and charges one of them.
package provider

import "context"

// Provider keeps payment methods and charges them. Its calls take seconds and must not be
// made in a transaction of the database. An error that is no *Refusal says nothing about what
// has happened: the call may be made again.
type Provider interface {
	// Name names it in rows and answers: up to 20 small letters.
	Name() string
	// Charges is false when it keeps books only and never charges anybody.
	Charges() bool
	// Customer makes the customer of an account and returns the provider's name of it. Called
	// again for the same account it may return the same, or another that nobody uses.
	Customer(ctx context.Context, account string) (customer string, err error)
	// Setup prepares a browser to hand a new payment method to the provider.
	Setup(ctx context.Context, customer string) (Setup, error)
	// Attach gives the payment method that a token names to a customer. Called again it
	// returns the same. It fails with a *Refusal of a token that names none, or somebody
	// else's.
	Attach(ctx context.Context, customer, token string) (Method, error)
	// Detach takes a payment method away from its customer, if it has it.
	Detach(ctx context.Context, reference string) error
	// Prepare makes a payment that charges nobody yet, and returns the provider's name of it.
	Prepare(ctx context.Context, p Payment) (payment string, err error)
	// Look tells what became of a payment.
	Look(ctx context.Context, payment string) (Outcome, error)
	// Charge charges a payment that Prepare made to a payment method. A payment is charged
	// once at most, however often this is called.
	Charge(ctx context.Context, payment, reference string) (Outcome, error)
}

// Setup is what a browser needs to hand over a payment method.
type Setup struct {
	ClientSecret   string `json:"client_secret"`             // for this one payment method
	PublishableKey string `json:"publishable_key,omitempty"` // of the provider's account
}

// Method is a payment method as the provider describes it.
type Method struct {
	Reference         string // the provider's name of it
	Kind              string // card, sepa_debit and so on
	Brand             string // of a card; else empty
	Last4             string // last digits, as people know it by; empty: it has none
	ExpMonth, ExpYear int    // of a card; else 0
}

// Payment is what is to be paid.
type Payment struct {
	Customer    string // the provider's name
	Invoice     string // inv_…: payments prepared for one invoice are one
	Amount      int64  // in the currency's smallest unit
	Currency    string // ISO 4217
	Description string
}

// State is how far a payment is.
type State int

// The states of a payment.
const (
	Unpaid     State = iota // nobody was charged; it may be charged
	Processing              // it is being charged, which may take days
	Paid
	Canceled // nobody was charged, and nobody will be
)

// Outcome is what became of a payment.
type Outcome struct {
	State   State
	Failure string // why the last charge failed, a word of the provider's; empty: it did not
}

// Refusal is the error of a provider that has understood, and does not do it.
type Refusal struct {
	Code string // a word of the provider's, such as resource_missing; at most 100 bytes
}

// Error implements error.
func (r *Refusal) Error() string { return "the provider refuses: " + r.Code }
