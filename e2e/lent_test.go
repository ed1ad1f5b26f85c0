package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"sluice.dev/sluice/e2e/harness"
)

// lent is a stack that tests have for themselves one after the other.
type lent struct {
	*stack
	document  json.RawMessage // in force before the first
	processes map[int]string  // that run since its start, by their ids
}

// gateways and platforms are stacks of each profile whose last test has ended.
var gateways, platforms = harness.Pool[*lent]{Most: 2}, harness.Pool[*lent]{Most: 2}

// lentGateway is a gateway alone for a test that changes nothing of it but the
// configuration document, keys and accounts. Requests that were made before are in its
// log and its metrics, and in windows of limits. Once the test has passed, the next one
// gets it, with the document of the start; after a failure, or if a process has ended,
// nobody does.
func lentGateway(t *testing.T) *stack {
	t.Helper()
	return lend(t, &gateways, func() *stack { return startGateway(t) })
}

// lentStack is lentGateway for a whole platform. It may call receivers and issuers on this
// machine, has two workers at its edge, and holds what its operators give it besides.
func lentStack(t *testing.T) *stack {
	t.Helper()
	return lend(t, &platforms, func() *stack {
		return start(t, map[string]string{"SLUICE_WEBHOOK_ALLOW_CIDRS": "127.0.0.0/8", "SLUICE_EDGE_CONCURRENCY": "2",
			"SLUICE_MODEL_UPSTREAM_KEY": "sk-0123456789abcdef", "OPERATORS_OWN": "word", "ENGINE_E2E": engineKey})
	})
}

// lend takes a stack that the test before has given back, or a new one.
func lend(t *testing.T, from *harness.Pool[*lent], begin func() *stack) *stack {
	t.Helper()
	l, ok := from.Take()
	if !ok {
		l = &lent{stack: begin()}
		r := call(t, http.MethodGet, l.dev["SLUICE_ADMIN_URL"]+"/admin/v1/config", l.dev["SLUICE_ADMIN_KEY"], nil)
		l.document, l.processes = into[struct{ Document json.RawMessage }](t, r).Document, l.running()
	}
	t.Cleanup(func() {
		if !t.Failed() && l.whole() {
			if err := l.reset(); err != nil {
				t.Errorf("give the stack back: %v", err)
			} else if from.Give(l) {
				return
			}
		}
		if err := l.stop(); err != nil {
			t.Error(err)
		}
	})
	return l.stack
}

// running are the parts of the stack and its Envoys, each with its program. What parts start
// when they need it comes and goes.
func (l *lent) running() map[int]string {
	found, all := map[int]string{}, harness.Processes()
	for pid, p := range all {
		if p.Parent == l.PID() || all[p.Parent].Parent == l.PID() && p.Args[0] == l.env["SLUICE_ENVOY"] {
			found[pid] = p.Args[0]
		}
	}
	return found
}

// whole reports whether every process of the start still runs.
func (l *lent) whole() bool {
	now := l.running()
	for pid, program := range l.processes {
		if now[pid] != program {
			return false
		}
	}
	return true
}

// reset puts the document of the start in force at every edge.
func (l *lent) reset() error {
	r, err := try(http.MethodPut, l.dev["SLUICE_ADMIN_URL"]+"/admin/v1/config", l.dev["SLUICE_ADMIN_KEY"], l.document)
	if err := unless(err, r, http.StatusOK); err != nil {
		return fmt.Errorf("put the first document in force: %w", err)
	}
	client.CloseIdleConnections() // a connection goes on by the listener that it came to
	return harness.Until(l.isHeld)
}
