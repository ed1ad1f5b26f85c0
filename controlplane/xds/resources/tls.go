package resources

import (
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	matcher "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"sluice.dev/sluice/controlplane/config"
)

// systemCA is where the edge's machine keeps the authorities that it believes.
const systemCA = "/etc/ssl/certs/ca-certificates.crt"

// upstreamTLS speaks TLS 1.2 or newer with a product, whose certificate must be
// signed by an authority that is believed and have the name that is asked for.
func upstreamTLS(t config.TLS, http2 bool) (*core.TransportSocket, error) {
	ca := file(systemCA)
	switch {
	case t.CA != "":
		ca = &core.DataSource{Specifier: &core.DataSource_InlineString{InlineString: t.CA}}
	case t.CAFile != "":
		ca = file(t.CAFile)
	}
	common := &tlsv3.CommonTlsContext{
		TlsParams: &tlsv3.TlsParameters{TlsMinimumProtocolVersion: tlsv3.TlsParameters_TLSv1_2, TlsMaximumProtocolVersion: tlsv3.TlsParameters_TLSv1_3},
		ValidationContextType: &tlsv3.CommonTlsContext_ValidationContext{ValidationContext: &tlsv3.CertificateValidationContext{
			TrustedCa: ca,
			MatchTypedSubjectAltNames: []*tlsv3.SubjectAltNameMatcher{{
				SanType: tlsv3.SubjectAltNameMatcher_DNS,
				Matcher: &matcher.StringMatcher{MatchPattern: &matcher.StringMatcher_Exact{Exact: t.ServerName}},
			}},
		}},
		AlpnProtocols: []string{"http/1.1"},
	}
	if http2 {
		common.AlpnProtocols = []string{"h2"}
	}
	if t.CertFile != "" {
		common.TlsCertificates = []*tlsv3.TlsCertificate{{CertificateChain: file(t.CertFile), PrivateKey: file(t.KeyFile)}}
	}
	c := &tlsv3.UpstreamTlsContext{CommonTlsContext: common, Sni: t.ServerName}
	if err := c.ValidateAll(); err != nil {
		return nil, err
	}
	return &core.TransportSocket{Name: "envoy.transport_sockets.tls", ConfigType: &core.TransportSocket_TypedConfig{TypedConfig: pack(c)}}, nil
}

// file is a file on the edge's machine.
func file(name string) *core.DataSource {
	return &core.DataSource{Specifier: &core.DataSource_Filename{Filename: name}}
}
