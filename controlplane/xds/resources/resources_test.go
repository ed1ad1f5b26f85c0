package resources

import (
	"testing"

	"sluice.dev/sluice/controlplane/config"
)

var addresses = map[string][]string{"api": {"127.0.0.1:9091"}, "media": {"127.0.0.1:9092"}, "runtime": {"localhost:9093"}}

// build compiles document d .
func build(t testing.TB, d config.Document, o Options) *Set {
	t.Helper()
	s, err := built(t, d, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func built(t testing.TB, d config.Document, o Options) (*Set, error) {
	t.Helper()
	p, err := d.Policy(7, o.DocsBase, config.ProvisionalNumbers(d))
	if err != nil {
		t.Fatal(err)
	}
	return Build(d, p, o)
}

func defaults(t testing.TB) config.Document {
	t.Helper()
	d, err := config.Default()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// Envoy itself accepts everything that the default document becomes, the
// filter and its policy included.
func TestEnvoyAcceptsTheDefaults(t *testing.T) {
	t.Parallel()
	s := build(t, defaults(t), Options{Addresses: addresses, DocsBase: "http://gw"})
	file := static(t, s, Addresses{Gateway: "127.0.0.1:0", Runtime: "127.0.0.1:0"})
	if out, err := envoy(t, file, "--mode", "validate"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}
