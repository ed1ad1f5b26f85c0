//go:build clients

package e2e

import (
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Public clients of the payment protocol, of both of its versions, pay for a
// clip each.
func TestX402Clients(t *testing.T) {
	s := theStack(t)
	for name, c := range map[string]struct {
		lock         string
		install, run []string
		clients      []string
	}{
		"x402-node": {"package-lock.json", []string{"npm", "ci", "--no-audit", "--no-fund", "--loglevel=error"},
			[]string{"node", "main.mjs"}, []string{"x402-fetch", "@x402/fetch"}},
		"x402-python": {"requirements.txt", []string{"sh", "-c", "python3 -m venv venv && venv/bin/pip install -q -r requirements.txt"},
			[]string{"venv/bin/python", "main.py"}, []string{"x402"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := s.funded(t, "100000")
			dir := installed(t, name, c.lock, c.install)
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
			seen := intoText[map[string]struct {
				Status  int
				Receipt paidReceipt
			}](t, string(out))
			for _, client := range c.clients {
				if got := seen[client]; got.Status != 201 || !got.Receipt.Success || got.Receipt.Payer != w.address {
					t.Errorf("%s: %+v", client, got)
				}
			}
		})
	}
}
