package resources

import (
	"strings"
	"testing"

	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tls "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/proto"
	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/filters/credentials/clientcert"
)

// built compiles a document.
func builtWith(t *testing.T, b *Builder, d config.Document) *Set {
	t.Helper()
	p, err := d.Policy(1, "http://gw", config.ProvisionalNumbers(d))
	if err != nil {
		t.Fatal(err)
	}
	s, err := b.Build(d, p)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func asking(auth ...string) config.Document {
	return config.Document{
		Classes: []config.Class{{Name: "default", PerMinute: 1}}, Plans: []config.Plan{{Name: "free"}}, Scopes: []string{},
		Products: []config.Product{{Name: "shop", Upstreams: []config.Upstream{{Address: "127.0.0.1:1"}}}},
		Routes: []config.Route{{Name: "a", Path: "/a", Product: "shop", Auth: auth, ForwardCertificate: len(auth) == 1 && auth[0] == "certificate"},
			{Name: "b", Path: "/b", Product: "shop", Auth: []string{"key"}}},
	}
}

// Only listeners with TLS ask for certificates, and only routes that go by them are told
// of one; a change of the authorities leaves the listeners as they are.
func TestWhoIsAskedForACertificate(t *testing.T) {
	t.Parallel()
	b := NewBuilder(Options{})
	at := Addresses{Gateway: "127.0.0.1:1", TLS: "/sds", HTTP3: true}
	plain := builtWith(t, b, asking("key"))
	if plain.Secrets[ClientAuthorities] != nil {
		t.Error("a document that asks for none has authorities")
	}
	before, err := plain.Listeners(at)
	if err != nil {
		t.Fatal(err)
	}
	if text := before["gateway"].String(); strings.Contains(text, PeerFilter) || strings.Contains(text, ClientAuthorities) {
		t.Error("the listener of a document without them asks for certificates")
	}
	d := asking("certificate")
	d.ClientCertificates = &config.ClientCertificates{CA: "pem", Depth: 3}
	s := builtWith(t, b, d)
	checks := s.Secrets[ClientAuthorities].GetValidationContext()
	if checks.GetTrustedCa().GetInlineString() != "pem" || checks.GetMaxVerifyDepth().GetValue() != 3 || checks.GetTrustChainVerification() != tls.CertificateValidationContext_VERIFY_TRUST_CHAIN {
		t.Errorf("%v", checks)
	}
	listeners, err := s.Listeners(at)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"gateway": true, "gateway" + HTTP3Suffix: false} {
		l := listeners[name]
		socket := &tls.DownstreamTlsContext{}
		if want {
			if err := l.FilterChains[0].TransportSocket.GetTypedConfig().UnmarshalTo(socket); err != nil {
				t.Fatal(err)
			}
			if socket.GetRequireClientCertificate().GetValue() || socket.CommonTlsContext.GetValidationContextSdsSecretConfig().GetName() != ClientAuthorities {
				t.Errorf("%v", socket)
			}
		} else if strings.Contains(l.FilterChains[0].TransportSocket.String(), ClientAuthorities) {
			t.Error("HTTP/3 asks for certificates, which Envoy cannot")
		}
		m := &hcm.HttpConnectionManager{}
		if err := l.FilterChains[0].Filters[0].GetTypedConfig().UnmarshalTo(m); err != nil {
			t.Fatal(err)
		}
		var order []string
		for _, f := range m.HttpFilters {
			order = append(order, f.Name)
		}
		if m.HttpFilters[1].Name != PeerFilter || !m.HttpFilters[1].Disabled || m.HttpFilters[2].Name != EdgeFilter {
			t.Errorf("%s: %v", name, order)
		}
		if m.ForwardClientCertDetails != hcm.HttpConnectionManager_SANITIZE {
			t.Error("clients' x-forwarded-client-cert reaches products")
		}
	}
	for name, asks := range map[string]bool{"a": true, "b": false} {
		r := s.made[name].routes[0].route
		if (r.TypedPerFilterConfig[PeerFilter] != nil) != asks || strings.Contains(strings.Join(r.RequestHeadersToRemove, " "), clientcert.Header) != asks || (len(r.RequestHeadersToAdd) == 1) != asks {
			t.Errorf("route %s: %v", name, r)
		}
	}
	d.ClientCertificates = &config.ClientCertificates{CAFile: "/etc/clients.pem"}
	next := builtWith(t, b, d)
	after, err := next.Listeners(at)
	if err != nil {
		t.Fatal(err)
	}
	if !proto.Equal(after["gateway"], listeners["gateway"]) {
		t.Error("other authorities make another listener")
	}
	if c := next.Secrets[ClientAuthorities].GetValidationContext(); c.GetTrustedCa().GetFilename() != "/etc/clients.pem" || c.GetWatchedDirectory().GetPath() != "/etc" || c.GetMaxVerifyDepth().GetValue() != 4 {
		t.Errorf("%v", c)
	}
	unencrypted, err := next.Listeners(Addresses{Gateway: "127.0.0.1:1"})
	if err != nil || strings.Contains(unencrypted["gateway"].String(), ClientAuthorities) {
		t.Errorf("a listener without TLS asks for certificates: %v", err)
	}
}
