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

// currentTerms returns the terms in force.
func (s *Service) currentTerms(ctx context.Context) (x402.Terms, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := s.config.Now(); s.at.IsZero() || now.Before(s.at) || now.Sub(s.at) >= termsAge {
		t, err := s.config.Terms(ctx)
		if err != nil {
			return t, fmt.Errorf("read the terms of payment: %w", err)
		}
		s.terms, s.at = t, now
	}
	return s.terms, nil
}

// checkTerms refuses a requirement in any money but the configured: settlement calls
// the token's contract, and pays for what that does.
func checkTerms(r x402.Requirement, t x402.Terms) error {
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
