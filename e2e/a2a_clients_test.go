//go:build clients

package e2e

import (
	"slices"
	"strings"
	"testing"
)

// The official libraries of both versions of A2A read the agent card, by itself
// and without a hint of which version it is.
func TestAgentCardClients(t *testing.T) {
	s := theStack(t)
	type card struct {
		Name, URL       string
		Skills, Schemes []string
	}
	check := func(t *testing.T, version string, c card) {
		t.Helper()
		if c.Name == "" || !strings.HasPrefix(c.URL, s.url("/")) || len(c.Skills) < 3 || !slices.Contains(c.Schemes, "bearer") {
			t.Errorf("version %s reads %+v", version, c)
		}
	}
	t.Run("node", func(t *testing.T) {
		t.Parallel()
		seen := intoText[map[string]card](t, program{"a2a-node", "package-lock.json", npmInstall, nodeMain}.prints(t, "BASE="+s.url("")))
		check(t, "0.3", seen["0.3"])
		check(t, "1", seen["1"])
	})
	for version, lock := range map[string]string{"0.3": "requirements-0.3.txt", "1": "requirements.txt"} {
		t.Run("python "+version, func(t *testing.T) {
			t.Parallel()
			install := []string{"sh", "-c", "python3 -m venv venv && venv/bin/pip install -q -r " + lock}
			check(t, version, intoText[card](t, program{"a2a-python", lock, install, pythonMain}.prints(t, "BASE="+s.url(""))))
		})
	}
}
