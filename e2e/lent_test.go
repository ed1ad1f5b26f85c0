package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"sluice.dev/sluice/e2e/harness"
)

// lent is a stack that tests have for themselves one after the other.
type lent struct {
	*stack
	document  json.RawMessage // in force before the first
	processes map[int]string  // that run since its start, by their ids
}

// gateways are stacks of the profile gateway whose last test has ended.
var gateways = harness.Pool[*lent]{Most: 2}

// lentGateway is a gateway alone for a test that changes nothing of it but the
// configuration document, keys and accounts. Requests that were made before are in its
// log and its metrics, and in windows of limits. Once the test has passed, the next one
// gets it, with the document of the start; after a failure, or if a process has ended,
// nobody does.
func lentGateway(t *testing.T) *stack {
	t.Helper()
	l, ok := gateways.Take()
	if !ok {
		l = &lent{stack: startGateway(t)}
		r := call(t, http.MethodGet, l.dev["SLUICE_ADMIN_URL"]+"/admin/v1/config", l.dev["SLUICE_ADMIN_KEY"], nil)
		l.document, l.processes = into[struct{ Document json.RawMessage }](t, r).Document, l.running()
	}
	t.Cleanup(func() {
		if !t.Failed() && maps.Equal(l.running(), l.processes) {
			if err := l.reset(); err != nil {
				t.Errorf("give the stack back: %v", err)
			} else if gateways.Give(l) {
				return
			}
		}
		if err := l.stop(); err != nil {
			t.Error(err)
		}
	})
	return l.stack
}

// running are the processes below the stack's own, each with its program.
func (l *lent) running() map[int]string {
	found := map[int]string{}
	for _, part := range harness.Children(l.PID()) {
		found[part.PID] = part.Args[0]
		for _, p := range harness.Children(part.PID) {
			found[p.PID] = p.Args[0]
		}
	}
	return found
}

// reset puts the document of the start in force at every edge.
func (l *lent) reset() error {
	file := filepath.Join(l.dir, "first.yaml")
	if err := os.WriteFile(file, l.document, 0o600); err != nil {
		return err
	}
	if err := harness.Run(l.env, "apply", "-f", file, "--wait"); err != nil {
		return fmt.Errorf("put the first document in force: %w", err)
	}
	return nil
}
