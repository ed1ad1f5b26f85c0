package payments

import (
	"context"
	"fmt"
	"time"

	"sluice.dev/sluice/filters/x402"
	"sluice.dev/sluice/workers/payments/evm"
	"sluice.dev/sluice/workers/payments/payment"
)

// termsAge is how long the configured terms are believed.
const termsAge = time.Second

// configured returns the terms in force.
func (h *Hub) configured(ctx context.Context) (x402.Terms, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if now := h.config.Now(); h.at.IsZero() || now.Before(h.at) || now.Sub(h.at) >= termsAge {
		t, err := h.config.Terms(ctx)
		if err != nil {
			return t, fmt.Errorf("read the terms of payment: %w", err)
		}
		h.terms, h.at = t, now
	}
	return h.terms, nil
}

// ours refuses a requirement in any money but the configured: settlement calls
// the token's contract, and pays for what that does.
func ours(r x402.Requirement, t x402.Terms) error {
	if chain := x402.Chain(t.Network); chain == 0 || x402.Chain(r.Network) != chain {
		return payment.Refuse(x402.BadNetwork)
	}
	token, err := evm.ParseAddress(r.Asset)
	configured, broken := evm.ParseAddress(t.Asset)
	if err != nil || broken != nil || token != configured || r.Name != t.Name || r.Version != t.Version {
		return payment.Refuse(x402.BadRequirements)
	}
	return nil
}
