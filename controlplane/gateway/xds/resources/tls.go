package resources

import (
	"path"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	matcher "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"sluice.dev/sluice/controlplane/gateway/config"
)

// systemCA is where the edge's machine keeps the authorities that it believes.
const systemCA = "/etc/ssl/certs/ca-certificates.crt"

// upstreamTLS speaks TLS 1.2 or newer with a product, whose certificate must be
// signed by an authority that is believed and have the name that is asked for.
//
// Files of the edge's machine are secrets of their own, which Envoy watches: they
// are taken anew when others are moved in their place.
func (s *Set) upstreamTLS(product string, t config.TLS, http2 bool) (*core.TransportSocket, error) {
	checks := &tlsv3.CertificateValidationContext{
		MatchTypedSubjectAltNames: []*tlsv3.SubjectAltNameMatcher{{
			SanType: tlsv3.SubjectAltNameMatcher_DNS,
			Matcher: &matcher.StringMatcher{MatchPattern: &matcher.StringMatcher_Exact{Exact: t.ServerName}},
		}},
	}
	common := &tlsv3.CommonTlsContext{
		TlsParams:             &tlsv3.TlsParameters{TlsMinimumProtocolVersion: tlsv3.TlsParameters_TLSv1_2, TlsMaximumProtocolVersion: tlsv3.TlsParameters_TLSv1_3},
		ValidationContextType: &tlsv3.CommonTlsContext_ValidationContext{ValidationContext: checks},
		AlpnProtocols:         []string{"http/1.1"},
	}
	switch {
	case t.CA != "":
		checks.TrustedCa = &core.DataSource{Specifier: &core.DataSource_InlineString{InlineString: t.CA}}
	case t.CAFile != "":
		common.ValidationContextType = &tlsv3.CommonTlsContext_CombinedValidationContext{CombinedValidationContext: &tlsv3.CommonTlsContext_CombinedCertificateValidationContext{
			DefaultValidationContext: checks, ValidationContextSdsSecretConfig: s.secret(authorities(product, t)),
		}}
	default:
		checks.TrustedCa = file(systemCA)
	}
	if http2 {
		common.AlpnProtocols = []string{"h2"}
	}
	if t.CertFile != "" {
		common.TlsCertificateSdsSecretConfigs = []*tlsv3.SdsSecretConfig{s.secret(ownCertificate(product, t))}
	}
	c := &tlsv3.UpstreamTlsContext{CommonTlsContext: common, Sni: t.ServerName}
	if err := c.ValidateAll(); err != nil {
		return nil, err
	}
	return &core.TransportSocket{Name: "envoy.transport_sockets.tls", ConfigType: &core.TransportSocket_TypedConfig{TypedConfig: pack(c)}}, nil
}

// secretWithin is how long a product waits for its secrets until it goes on
// without: with a file that cannot be read it must not hold up a starting edge.
const secretWithin = 5 * time.Second

// secret adds a secret to those that are served, and says where it comes from.
func (s *Set) secret(secret *tlsv3.Secret) *tlsv3.SdsSecretConfig {
	s.Secrets[secret.Name] = secret
	source := viaADS()
	source.InitialFetchTimeout = durationpb.New(secretWithin)
	return &tlsv3.SdsSecretConfig{Name: secret.Name, SdsConfig: source}
}

// authoritiesOf and certificateOf are the names of a product's secrets.
func authoritiesOf(product string) string { return product + ".authorities" }
func certificateOf(product string) string { return product + ".certificate" }

func authorities(product string, t config.TLS) *tlsv3.Secret {
	return &tlsv3.Secret{Name: authoritiesOf(product), Type: &tlsv3.Secret_ValidationContext{ValidationContext: &tlsv3.CertificateValidationContext{
		TrustedCa: file(t.CAFile), WatchedDirectory: folder(t.CAFile),
	}}}
}

func ownCertificate(product string, t config.TLS) *tlsv3.Secret {
	c := &tlsv3.TlsCertificate{CertificateChain: file(t.CertFile), PrivateKey: file(t.KeyFile)}
	if path.Dir(t.CertFile) == path.Dir(t.KeyFile) { // else Envoy watches the files one by one
		c.WatchedDirectory = folder(t.CertFile)
	}
	return &tlsv3.Secret{Name: certificateOf(product), Type: &tlsv3.Secret_TlsCertificate{TlsCertificate: c}}
}

// folder is the folder of a file on the edge's machine. Who watches it sees also
// that a link of the folder leads elsewhere, by which files of Kubernetes change.
func folder(name string) *core.WatchedDirectory { return &core.WatchedDirectory{Path: path.Dir(name)} }

// file is a file on the edge's machine.
func file(name string) *core.DataSource {
	return &core.DataSource{Specifier: &core.DataSource_Filename{Filename: name}}
}
