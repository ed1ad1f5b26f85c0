package config

import (
	"testing"

	"sluice.dev/sluice/deploy"
)

func defaults(t testing.TB) Document {
	t.Helper()
	d, _, err := ParseYAML(deploy.Document)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// numbers gives d every number it needs, in order.
func numbers(d Document) Numbers {
	n := Numbers{Scopes: map[string]int{}, Plans: map[string]uint16{}}
	for i, s := range d.ScopeNames() {
		n.Scopes[s] = i
	}
	for i, p := range d.PlanNames() {
		n.Plans[p] = uint16(i + 1)
	}
	return n
}

func TestDefaultDocumentIsValidAndCompiles(t *testing.T) {
	t.Parallel()
	d := defaults(t)
	if err := d.Validate(); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Policy(1, "http://gw", numbers(d)); err != nil {
		t.Fatal(err)
	}
}
