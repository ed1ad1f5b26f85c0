package resources

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/platform/certs"
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

// The same of a document that uses each field: weights, mTLS, CORS, rewrites,
// conditions, outlier detection and health checks, behind TLS and HTTP/3.
func TestEnvoyAcceptsEveryField(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := certs.Make(certs.MakeConfig{Dir: dir, Edges: []string{"edge"}}); err != nil {
		t.Fatal(err)
	}
	d := everything()
	own := certs.In(dir, "edge")
	d.Products[2].TLS = &config.TLS{ServerName: "guarded.internal", CAFile: certs.In(dir, "ca").Cert, CertFile: own.Cert, KeyFile: own.Key}
	ca, err := os.ReadFile(certs.In(dir, "ca").Cert)
	if err != nil {
		t.Fatal(err)
	}
	d.Products[3].TLS.CA = string(ca)
	if err := d.Validate(); err != nil {
		t.Fatal(err)
	}
	s := build(t, d, Options{Addresses: map[string][]string{"media": {"10.0.0.1:80", "media.internal:80"}}, DocsBase: "https://api.example"})
	for _, a := range []Addresses{
		{Gateway: "127.0.0.1:0", Runtime: "127.0.0.1:0"},
		{Gateway: "127.0.0.1:0", Runtime: "[::1]:0", TLS: listenerSecret(t, own), HTTP3: true},
	} {
		if out, err := envoy(t, static(t, s, a), "--mode", "validate", "--service-node", "edge", "--service-cluster", "edges"); err != nil {
			t.Errorf("%+v: %v\n%s", a, err, out)
		}
	}
}

// listenerSecret writes what an edge's agent hands its Envoy.
func listenerSecret(t *testing.T, f certs.Files) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "listener.json")
	text := fmt.Sprintf(`{"resources":[{"@type":"type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret","name":%q,
		"tls_certificate":{"certificate_chain":{"filename":%q},"private_key":{"filename":%q}}}]}`, ListenerSecret, f.Cert, f.Key)
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}
