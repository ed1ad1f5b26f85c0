//go:build clients

package e2e

import "testing"

// The client for JavaScript works as it stands; it needs Node.
func TestDocsClientsInNode(t *testing.T) {
	s := theStack(t)
	list := examples(t, "javascript")["clients"]
	if len(list) != 1 {
		t.Fatalf("%d programs", len(list))
	}
	list[0].checkClient(t, list[0].run(t, s.reader(t), "main.mjs", "node"))
}
