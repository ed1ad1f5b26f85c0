//go:build clients

package e2e

import (
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// payingClient is a program of public clients under clients/.
type payingClient struct {
	name, lock   string
	install, run []string
}

var payingInNode = payingClient{"x402-node", "package-lock.json", []string{"npm", "ci", "--no-audit", "--no-fund", "--loglevel=error"}, []string{"node", "main.mjs"}}

// paidBy is what one client has seen.
type paidBy struct {
	Status, Version int
	Receipt         paidReceipt
}

// pay lets c pay for a clip of s with each of its clients, with the money of w.
func (c payingClient) pay(t *testing.T, s *stack, w wallet) map[string]paidBy {
	t.Helper()
	dir := installed(t, c.name, c.lock, c.install)
	cmd := exec.Command(c.run[0], c.run[1:]...)
	if filepath.Base(c.run[0]) != c.run[0] {
		cmd.Path = filepath.Join(dir, c.run[0])
	}
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	cmd.Env = append(os.Environ(), "URL="+s.url("/v1/clips"), "KEY=0x"+hex.EncodeToString(w.key.Serialize()))
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return intoText[map[string]paidBy](t, string(out))
}

// Public clients of the payment protocol, of both of its versions, pay for a
// clip each.
func TestX402Clients(t *testing.T) {
	s := theStack(t)
	inPython := payingClient{"x402-python", "requirements.txt",
		[]string{"sh", "-c", "python3 -m venv venv && venv/bin/pip install -q -r requirements.txt"}, []string{"venv/bin/python", "main.py"}}
	for _, c := range []struct {
		payingClient
		clients []string
	}{{payingInNode, []string{"x402-fetch", "@x402/fetch"}}, {inPython, []string{"x402"}}} {
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
