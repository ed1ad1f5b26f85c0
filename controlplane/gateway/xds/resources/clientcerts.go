package resources

import (
	mutation "github.com/envoyproxy/go-control-plane/envoy/config/common/mutation_rules/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listener "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	route "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	headers "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/header_mutation/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tls "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/filters/credentials/clientcert"
)

const (
	// PeerFilter tells the edge filter of the client's certificate, on routes that ask
	// for one. It is Envoy's own, and only in the chains of documents with
	// client_certificates.
	PeerFilter = "sluice.peer"
	// ClientAuthorities is the name of the secret that says whose client certificates
	// listeners believe.
	ClientAuthorities = "listener-clients"
	// certificateHeader tells a product, where its route says so, which certificate the
	// client has.
	certificateHeader = ownHeaders + "client-certificate"
)

// addClientAuthorities adds the secret ClientAuthorities. It is no part of the
// listeners, which would cut their connections with each change of it.
func (s *Set) addClientAuthorities() {
	c := s.doc.ClientCertificates
	if c == nil {
		return
	}
	checks := &tls.CertificateValidationContext{
		TrustedCa: &core.DataSource{Specifier: &core.DataSource_InlineString{InlineString: c.CA}},
		// With 2, one authority may stand between a certificate and a believed one; 0 and 1 are the same.
		MaxVerifyDepth: wrapperspb.UInt32(c.Authorities()),
	}
	if c.CAFile != "" {
		checks.TrustedCa, checks.WatchedDirectory = file(c.CAFile), folder(c.CAFile)
	}
	s.Secrets[ClientAuthorities] = &tls.Secret{Name: ClientAuthorities, Type: &tls.Secret_ValidationContext{ValidationContext: checks}}
}

// ask has a listener ask clients for certificates, if the document says so. Envoy's
// HTTP/3 cannot.
func (s *Set) ask(l *listener.Listener) error {
	if !s.settings.clients {
		return nil
	}
	return askClients(l)
}

// askClients makes every chain of l with TLS ask clients for a certificate, which they
// need not have. One that does not verify ends the handshake. Until the authorities are
// there, the listener that was there before goes on.
func askClients(l *listener.Listener) error {
	for _, chain := range l.FilterChains {
		socket := chain.GetTransportSocket()
		if socket == nil {
			continue
		}
		c := &tls.DownstreamTlsContext{}
		if err := socket.GetTypedConfig().UnmarshalTo(c); err != nil {
			return err
		}
		c.CommonTlsContext.ValidationContextType = &tls.CommonTlsContext_ValidationContextSdsSecretConfig{
			ValidationContextSdsSecretConfig: &tls.SdsSecretConfig{Name: ClientAuthorities, SdsConfig: viaADS()},
		}
		socket.ConfigType = &core.TransportSocket_TypedConfig{TypedConfig: pack(c)}
	}
	return nil
}

// peerFilter is PeerFilter, which does nothing but on routes that turn it on.
func peerFilter() *hcm.HttpFilter {
	return &hcm.HttpFilter{Name: PeerFilter, Disabled: true, ConfigType: &hcm.HttpFilter_TypedConfig{TypedConfig: pack(&headers.HeaderMutation{})}}
}

// peerTold turns PeerFilter on.
var peerTold = pack(&route.FilterConfig{Config: pack(&headers.HeaderMutationPerRoute{Mutations: &headers.Mutations{
	RequestMutations: []*mutation.HeaderMutation{{Action: &mutation.HeaderMutation_Append{Append: replaceHeader(clientcert.Header, clientcert.Format)}}},
}})})

// forCertificates makes out, which is of r, a route into which certificates let. What
// the edge filter is told no product gets.
func forCertificates(out *route.Route, r config.Route, filters map[string]*anypb.Any) {
	if !r.AsksForCertificate() {
		return
	}
	filters[PeerFilter] = peerTold
	out.RequestHeadersToRemove = append(out.RequestHeadersToRemove, clientcert.Header)
	if r.ForwardCertificate {
		out.RequestHeadersToAdd = append(out.RequestHeadersToAdd,
			replaceHeader(certificateHeader, `sha256=%DOWNSTREAM_PEER_FINGERPRINT_256%;subject="%DOWNSTREAM_PEER_SUBJECT%"`))
	}
}
