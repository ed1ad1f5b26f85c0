package relay

import (
	"crypto/tls"
	"fmt"
	"strings"

	secret "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"github.com/envoyproxy/go-control-plane/pkg/resource/v3"
)

// ByName is base with the certificates that Envoy was given for names: whoever answers in
// Envoy's place shows a client the certificate that Envoy would.
func (r *Relay) ByName(base *tls.Config) *tls.Config {
	c := base.Clone()
	others := base.GetCertificate
	c.GetCertificate = func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		if named, err := r.lastGood.certificate(strings.ToLower(hello.ServerName)); named != nil || err != nil {
			return named, err
		}
		return others(hello)
	}
	return c
}

// certificate returns the one of a host, or else of the wildcard above it; nil: Envoy has
// neither.
func (b *lastGood) certificate(host string) (*tls.Certificate, error) {
	wildcard := "*"
	if _, domain, below := strings.Cut(host, "."); below {
		wildcard = "*." + domain
	}
	for _, name := range []string{host, wildcard} {
		kept, _ := b.named(resource.SecretType, name)
		if kept == nil {
			continue
		}
		var s secret.Secret
		if err := kept.UnmarshalTo(&s); err != nil {
			return nil, fmt.Errorf("read the certificate of %s: %w", name, err)
		}
		pair := s.GetTlsCertificate()
		c, err := tls.X509KeyPair(pair.GetCertificateChain().GetInlineBytes(), pair.GetPrivateKey().GetInlineBytes())
		if err != nil {
			return nil, fmt.Errorf("read the certificate of %s: %w", name, err)
		}
		return &c, nil
	}
	return nil, nil
}
