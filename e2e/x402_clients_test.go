//go:build clients

package e2e

import (
	"encoding/hex"
	"testing"
)

var payingInNode = program{"x402-node", "package-lock.json", npmInstall, nodeMain}

// paidBy is what one client has seen.
type paidBy struct {
	Status, Version int
	Receipt         paidReceipt
}

// pay lets p pay for a clip of s with each of its clients, with the money of w.
func (p program) pay(t *testing.T, s *stack, w wallet) map[string]paidBy {
	t.Helper()
	return intoText[map[string]paidBy](t, p.prints(t, "URL="+s.url("/v1/clips"), "KEY=0x"+hex.EncodeToString(w.key.Serialize())))
}

// Public clients of the payment protocol, of both of its versions, pay for a
// clip each.
func TestX402Clients(t *testing.T) {
	s := theStack(t)
	for _, c := range []struct {
		program
		clients []string
	}{
		{payingInNode, []string{"x402-fetch", "@x402/fetch"}},
		{program{"x402-python", "requirements.txt", pipInstall, pythonMain}, []string{"x402"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := s.funded(t, "100000")
			seen := c.pay(t, s, w)
			for _, client := range c.clients {
				if got := seen[client]; got.Status != 201 || !got.Receipt.Success || got.Receipt.Payer != w.address {
					t.Errorf("%s: %+v", client, got)
				}
			}
		})
	}
}

// With version 2 on offer, clients that know it pay by it, and the others as
// before.
func TestX402ClientsOfBothVersions(t *testing.T) {
	s := own(t, nil)
	s.offerV2(t, nil)
	w := s.funded(t, "100000")
	seen := payingInNode.pay(t, s, w)
	for client, version := range map[string]int{"x402-fetch": 1, "@x402/fetch": 2} {
		if got := seen[client]; got.Status != 201 || got.Version != version || !got.Receipt.Success || got.Receipt.Payer != w.address {
			t.Errorf("%s: %+v, want version %d", client, got, version)
		}
	}
}
