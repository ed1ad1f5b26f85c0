package relay

import (
	"crypto/tls"
	"os"
	"path/filepath"
	"testing"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	secret "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/protobuf/types/known/anypb"

	"sluice.dev/sluice/platform/certs"
)

// secretOf is what a control plane sends for a name: a certificate for these hosts.
func secretOf(t *testing.T, name string, hosts ...string) *discovery.Resource {
	t.Helper()
	dir := t.TempDir()
	if err := certs.Make(certs.MakeConfig{Dir: dir, Hosts: hosts}); err != nil {
		t.Fatal(err)
	}
	read := func(suffix string) *core.DataSource {
		text, err := os.ReadFile(filepath.Join(dir, certs.Gateway+suffix))
		if err != nil {
			t.Fatal(err)
		}
		return &core.DataSource{Specifier: &core.DataSource_InlineBytes{InlineBytes: text}}
	}
	s, err := anypb.New(&secret.Secret{Name: name, Type: &secret.Secret_TlsCertificate{TlsCertificate: &secret.TlsCertificate{CertificateChain: read(".pem"), PrivateKey: read(".key")}}})
	if err != nil {
		t.Fatal(err)
	}
	return &discovery.Resource{Name: name, Version: "1", Resource: s}
}

// Whoever answers while Envoy cannot shows the certificates by name that Envoy has.
func TestCertificatesByNameWithoutEnvoy(t *testing.T) {
	t.Parallel()
	r := &Relay{lastGood: loadLastGood(quietly(t.TempDir(), time.Now), nil)}
	r.lastGood.apply(resource.SecretType, &discovery.DeltaDiscoveryResponse{Resources: []*discovery.Resource{
		secretOf(t, "api.example.com", "api.example.com"), secretOf(t, "*.wild.example.com", "*.wild.example.com"),
		{Name: "broken.example.com", Version: "1", Resource: &anypb.Any{TypeUrl: "nothing"}},
	}}, false, nil)
	own := &tls.Certificate{}
	config := r.ByName(&tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return own, nil }})
	for host, named := range map[string]bool{
		"api.example.com": true, "API.example.com": true, "a.wild.example.com": true,
		"a.b.wild.example.com": false, "wild.example.com": false, "example.com": false, "": false, ".": false, "*.wild.example.com": true,
	} {
		got, err := config.GetCertificate(&tls.ClientHelloInfo{ServerName: host})
		if err != nil || (got != own) != named {
			t.Errorf("%q: %v, %v", host, got != own, err)
		}
	}
	got, err := config.GetCertificate(&tls.ClientHelloInfo{ServerName: "api.example.com"})
	if err != nil || got.Leaf.VerifyHostname("api.example.com") != nil {
		t.Errorf("it shows another certificate: %v", err)
	}
	if _, err := config.GetCertificate(&tls.ClientHelloInfo{ServerName: "broken.example.com"}); err == nil {
		t.Error("a certificate that cannot be read is shown")
	}
}
