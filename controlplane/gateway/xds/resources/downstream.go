package resources

import (
	"fmt"
	"net"

	mutation "github.com/envoyproxy/go-control-plane/envoy/config/common/mutation_rules/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listener "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	headers "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/header_mutation/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	quic "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/quic/v3"
	tls "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/proto"
)

// ListenerSecret is the name of the secret that holds the listeners'
// certificate. It never passes the control plane: the edge has it in a file,
// from which Envoy takes it, and takes it again when the file is replaced.
const ListenerSecret = "listener"

// HTTP3Suffix is what the name of a listener for HTTP/3 ends with.
const HTTP3Suffix = "-h3"

// downstreamTLS is what clients meet: TLS 1.2 or 1.3 with the secret in file.
func downstreamTLS(file string, protocols ...string) *tls.DownstreamTlsContext {
	return &tls.DownstreamTlsContext{CommonTlsContext: &tls.CommonTlsContext{
		TlsParams: &tls.TlsParameters{
			TlsMinimumProtocolVersion: tls.TlsParameters_TLSv1_2,
			TlsMaximumProtocolVersion: tls.TlsParameters_TLSv1_3,
			// For TLS 1.2: forward secrecy and authenticated encryption only.
			CipherSuites: []string{
				"[ECDHE-ECDSA-AES128-GCM-SHA256|ECDHE-ECDSA-CHACHA20-POLY1305]", "[ECDHE-RSA-AES128-GCM-SHA256|ECDHE-RSA-CHACHA20-POLY1305]",
				"ECDHE-ECDSA-AES256-GCM-SHA384", "ECDHE-RSA-AES256-GCM-SHA384",
			},
		},
		AlpnProtocols: protocols,
		TlsCertificateSdsSecretConfigs: []*tls.SdsSecretConfig{{Name: ListenerSecret, SdsConfig: &core.ConfigSource{
			ResourceApiVersion:    core.ApiVersion_V3,
			ConfigSourceSpecifier: &core.ConfigSource_PathConfigSource{PathConfigSource: &core.PathConfigSource{Path: file}},
		}}},
	}}
}

// overTLS makes l speak TLS, and ask clients for certificates where the document says so.
// A handshake that takes too long is ended.
func (s *Set) overTLS(l *listener.Listener, name, addr string, a Addresses) error {
	named := l.FilterChains[0]
	if a.HTTP3 && a.Names != nil { // where exact names are not announced: see byName
		over, err := s.listener(name, addr)
		if err != nil {
			return err
		}
		named = over.FilterChains[0]
	}
	for _, c := range []*listener.FilterChain{l.FilterChains[0], named} {
		c.TransportSocketConnectTimeout = seconds(10)
	}
	l.FilterChains[0].TransportSocket = transportSocket("envoy.transport_sockets.tls", downstreamTLS(a.TLS, "h2", "http/1.1"))
	s.byName(l, named, a.Names, false)
	return s.ask(l)
}

// overQUIC is a listener on the same port of UDP that speaks HTTP/3 and does all
// else as l.
func (s *Set) overQUIC(l *listener.Listener, name string, a Addresses) (*listener.Listener, error) {
	manager, err := s.manager(name, func(m *hcm.HttpConnectionManager) {
		m.CodecType = hcm.HttpConnectionManager_HTTP3
		m.Http3ProtocolOptions = &core.Http3ProtocolOptions{AllowExtendedConnect: true, QuicProtocolOptions: &core.QuicProtocolOptions{
			MaxConcurrentStreams:        u32(100),
			InitialStreamWindowSize:     u32(64 << 10),
			InitialConnectionWindowSize: u32(1 << 20),
		}}
	})
	if err != nil {
		return nil, err
	}
	q := proto.CloneOf(l)
	q.Name += HTTP3Suffix
	q.Address.GetSocketAddress().Protocol = core.SocketAddress_UDP
	q.MaxConnectionsToAcceptPerSocketEvent = nil // of TCP
	q.UdpListenerConfig = &listener.UdpListenerConfig{QuicOptions: &listener.QuicProtocolOptions{}}
	q.FilterChains[0].Filters[0].ConfigType = &listener.Filter_TypedConfig{TypedConfig: manager}
	q.FilterChains[0].TransportSocket = transportSocket("envoy.transport_sockets.quic",
		&quic.QuicDownstreamTransport{DownstreamTlsContext: downstreamTLS(a.TLS, "h3")})
	s.byName(q, q.FilterChains[0], a.Names, true)
	return q, nil
}

// announced tells clients of HTTP/3 on the port of addr, in every answer.
func announced(addr string) func(*hcm.HttpConnectionManager) {
	_, port, _ := net.SplitHostPort(addr) // it has been parsed before
	f := &headers.HeaderMutation{Mutations: &headers.Mutations{ResponseMutations: []*mutation.HeaderMutation{{
		Action: &mutation.HeaderMutation_Append{Append: &core.HeaderValueOption{
			Header:       &core.HeaderValue{Key: "alt-svc", Value: fmt.Sprintf(`h3=":%s"; ma=86400`, port)},
			AppendAction: core.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD,
		}},
	}}}}
	return func(m *hcm.HttpConnectionManager) {
		last := len(m.HttpFilters) - 1
		m.HttpFilters = append(m.HttpFilters[:last:last], &hcm.HttpFilter{
			Name:       "envoy.filters.http.header_mutation",
			ConfigType: &hcm.HttpFilter_TypedConfig{TypedConfig: pack(f)},
		}, m.HttpFilters[last])
	}
}

func transportSocket(name string, m proto.Message) *core.TransportSocket {
	return &core.TransportSocket{Name: name, ConfigType: &core.TransportSocket_TypedConfig{TypedConfig: pack(m)}}
}
