// Package ledger is the provider of a platform without one: it notes payment methods and
// charges nobody. Invoices stay open until the operator says that they are paid.
package ledger

import (
	"context"
	"errors"
	"regexp"

	"sluice.dev/sluice/controlplane/accounts/billing/provider"
)

// Ledger is a provider.Provider.
type Ledger struct{}

var _ provider.Provider = Ledger{}

var tokenForm = regexp.MustCompile(`^pm_[A-Za-z0-9_]{1,100}$`)

// errNothing is the error of calls that would move money.
var errNothing = errors.New("the ledger charges nobody")

// Name implements provider.Provider.
func (Ledger) Name() string { return "ledger" }

// Charges is false.
func (Ledger) Charges() bool { return false }

// Customer is the account itself.
func (Ledger) Customer(_ context.Context, account string) (string, error) { return account, nil }

// Setup is refused: there is nobody to hand a payment method to.
func (Ledger) Setup(context.Context, string) (provider.Setup, error) {
	return provider.Setup{}, &provider.Refusal{Code: "nothing_is_charged"}
}

// Attach notes a token of up to 100 letters after pm_, as a method of the customer's own.
func (Ledger) Attach(_ context.Context, customer, token string) (provider.Method, error) {
	if !tokenForm.MatchString(token) {
		return provider.Method{}, &provider.Refusal{Code: "resource_missing"}
	}
	return provider.Method{Reference: customer + "/" + token, Kind: "ledger"}, nil
}

// Detach has nothing to do.
func (Ledger) Detach(context.Context, string) error { return nil }

// Prepare fails.
func (Ledger) Prepare(context.Context, provider.Payment) (string, error) { return "", errNothing }

// Look fails.
func (Ledger) Look(context.Context, string) (provider.Outcome, error) {
	return provider.Outcome{}, errNothing
}

// Charge fails.
func (Ledger) Charge(context.Context, string, string) (provider.Outcome, error) {
	return provider.Outcome{}, errNothing
}
