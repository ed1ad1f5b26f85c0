package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"sluice.dev/sluice/controlplane/accounts/billing/invoicing"
	"sluice.dev/sluice/controlplane/accounts/billing/provider"
	"sluice.dev/sluice/controlplane/accounts/billing/provider/ledger"
	"sluice.dev/sluice/controlplane/accounts/billing/provider/stripe"
	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/platform/outbound"
)

// billingProvider is who keeps payment methods and charges them.
func (e Environment) billingProvider() (provider.Provider, error) {
	key, err := e.stripeKey()
	if err != nil {
		return nil, err
	}
	name := e.Get("SLUICE_BILLING_PROVIDER")
	switch {
	case name == "ledger", name == "auto" && key == "":
		return ledger.Ledger{}, nil
	case name != "auto" && name != "stripe":
		return nil, fmt.Errorf("SLUICE_BILLING_PROVIDER is %q: expected auto, stripe or ledger", name)
	case key == "":
		return nil, errors.New("SLUICE_STRIPE_KEY or SLUICE_STRIPE_KEY_FILE must be set, with SLUICE_BILLING_PROVIDER=stripe")
	}
	allow, err := e.prefixes("SLUICE_WEBHOOK_ALLOW_CIDRS")
	if err != nil {
		return nil, err
	}
	return stripe.New(stripe.Config{
		Key: key, PublishableKey: e.Get("SLUICE_STRIPE_PUBLISHABLE_KEY"), URL: e.Get("SLUICE_STRIPE_URL"),
		Client: outbound.New(outbound.Config{Allow: allow, MaxBody: stripe.MaxAnswer}),
	}), nil
}

// stripeKey is the secret key of the account at Stripe; empty: there is none.
func (e Environment) stripeKey() (string, error) {
	file := e.Get("SLUICE_STRIPE_KEY_FILE")
	if file == "" {
		return e.Get("SLUICE_STRIPE_KEY"), nil
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("SLUICE_STRIPE_KEY_FILE: %w", err)
	}
	return strings.TrimSpace(string(b)), nil
}

// prices are those of plans in the configuration that was in force at a time.
func (p *process) prices(ctx context.Context, at time.Time) (out invoicing.Prices, err error) {
	out.Version, out.Plans, err = config.Store{DB: p.pool}.PricesAt(ctx, at)
	return out, err
}
