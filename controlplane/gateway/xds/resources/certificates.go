package resources

import (
	"strings"

	tree "github.com/cncf/xds/go/xds/type/matcher/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listener "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	inspector "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/listener/tls_inspector/v3"
	tcp "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	quic "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/quic/v3"
	sni "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/cert_mappers/sni/v3"
	demand "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/cert_selectors/on_demand_secret/v3"
	tls "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"
	"sluice.dev/sluice/filters/edgeapi"
)

// Filter chains of a listener where certificates go by name. One for all exact names
// looks the secret up by the name that a client asks for, so that a certificate which is
// added or renewed alters no chain, and cuts no connection. Wildcards have a chain each.
const (
	defaultChain = "default"
	namedChain   = "named"
	acmeChain    = "acme"
)

// Prefetch is the name of a listener that accepts nothing. It names all secrets of
// exact names, so that edges have them before a client asks, and keep them while no
// control plane answers. It changes with the names, in place of those that serve.
const Prefetch = "certificates"

// Names are the hosts that there are certificates for. Listeners are made anew for another *Names.
type Names struct {
	Exact, Wildcards []string // sorted
}

// CertificateSecret is the secret of a host, which is its name: a chain and its key, PEM.
func CertificateSecret(host string, chain, key []byte) *tls.Secret {
	inline := func(b []byte) *core.DataSource {
		return &core.DataSource{Specifier: &core.DataSource_InlineBytes{InlineBytes: b}}
	}
	return &tls.Secret{Name: host, Type: &tls.Secret_TlsCertificate{TlsCertificate: &tls.TlsCertificate{CertificateChain: inline(chain), PrivateKey: inline(key)}}}
}

// byName adds to l what depends on the name or protocol that a client asks for. A
// listener without any stays as it is.
// named is the chain for exact names.
func (s *Set) byName(l *listener.Listener, named *listener.FilterChain, n *Names, overUDP bool) {
	chains := map[string]string{} // by host
	add := func(chain *listener.FilterChain, socket *core.TransportSocket, name string, hosts ...string) {
		chain = proto.CloneOf(chain)
		chain.Name, chain.TransportSocket = name, socket
		l.FilterChains = append(l.FilterChains, chain)
		for _, h := range hosts {
			chains[h] = name
		}
	}
	first := l.FilterChains[0]
	if n != nil && !overUDP && len(n.Exact) > 0 { // Envoy has no certificates on demand over QUIC
		add(named, transportSocket("envoy.transport_sockets.tls", onDemand()), namedChain, n.Exact...)
	}
	if n != nil {
		for _, host := range n.Wildcards {
			add(first, withSecret(host, overUDP), host, host)
		}
	}
	alpn := s.settings.answersALPN && !overUDP
	if len(chains) == 0 && !alpn {
		return
	}
	first.Name = defaultChain
	l.FilterChainMatcher = byHost(chains)
	if alpn {
		l.FilterChains = append(l.FilterChains, challengeChain())
		l.FilterChainMatcher = exactly(protocols(), map[string]*tree.Matcher_OnMatch{"'acme-tls/1'": toChain(acmeChain)}, goOn(l.FilterChainMatcher))
	}
	if !overUDP { // QUIC says both by itself
		l.ListenerFilters = append(l.ListenerFilters, &listener.ListenerFilter{
			Name: "envoy.filters.listener.tls_inspector", ConfigType: &listener.ListenerFilter_TypedConfig{TypedConfig: pack(&inspector.TlsInspector{})},
		})
	}
}

// onDemand shows the certificate in the secret of the name that a client asks for.
// Envoy resumes no sessions there.
func onDemand(prefetch ...string) *tls.DownstreamTlsContext {
	c := downstreamTLS("", "h2", "http/1.1")
	c.CommonTlsContext.TlsCertificateSdsSecretConfigs = nil
	c.CommonTlsContext.CustomTlsCertificateSelector = extension("envoy.tls.certificate_selectors.on_demand_secret", &demand.Config{
		ConfigSource: viaADS(), CertificateMapper: extension("envoy.tls.certificate_mappers.sni", &sni.SNI{DefaultValue: "none"}), PrefetchSecretNames: prefetch,
	})
	c.SessionTicketKeysType = &tls.DownstreamTlsContext_DisableStatelessSessionResumption{DisableStatelessSessionResumption: true}
	c.DisableStatefulSessionResumption = true
	return c
}

// withSecret shows the certificate of one secret. A chain that has not got it waits no
// longer than secretWithin, so that it holds up no other.
func withSecret(name string, overUDP bool) *core.TransportSocket {
	source := viaADS()
	source.InitialFetchTimeout = seconds(int(secretWithin.Seconds()))
	secrets := []*tls.SdsSecretConfig{{Name: name, SdsConfig: source}}
	if overUDP {
		c := downstreamTLS("", "h3")
		c.CommonTlsContext.TlsCertificateSdsSecretConfigs = secrets
		return transportSocket("envoy.transport_sockets.quic", &quic.QuicDownstreamTransport{DownstreamTlsContext: c})
	}
	c := downstreamTLS("", "h2", "http/1.1")
	c.CommonTlsContext.TlsCertificateSdsSecretConfigs = secrets
	return transportSocket("envoy.transport_sockets.tls", c)
}

// challengeChain hands connections of tls-alpn-01 (RFC 8737), which are nothing but a
// handshake, to the agent.
func challengeChain() *listener.FilterChain {
	return &listener.FilterChain{Name: acmeChain, Filters: []*listener.Filter{{
		Name: "envoy.filters.network.tcp_proxy",
		ConfigType: &listener.Filter_TypedConfig{TypedConfig: pack(&tcp.TcpProxy{
			StatPrefix: acmeChain, ClusterSpecifier: &tcp.TcpProxy_Cluster{Cluster: edgeapi.ChallengeCluster}, IdleTimeout: seconds(10),
		})},
	}}}
}

// prefetch is the listener Prefetch.
func prefetch(n *Names) *listener.Listener {
	address, _ := socketAddress("127.0.0.1:1") // it is not bound
	return &listener.Listener{
		Name: Prefetch, Address: address, BindToPort: wrapperspb.Bool(false),
		FilterChains: []*listener.FilterChain{{
			Name: Prefetch, Filters: challengeChain().Filters, TransportSocket: transportSocket("envoy.transport_sockets.tls", onDemand(n.Exact...)),
		}},
	}
}

// byHost chooses a chain by the name that a client asks for. A wildcard stands for one
// label.
func byHost(chains map[string]string) *tree.Matcher {
	exact, wildcards := map[string]*tree.Matcher_OnMatch{}, []*tree.Matcher_MatcherList_FieldMatcher(nil)
	for _, host := range sortedKeys(chains) {
		if !strings.HasPrefix(host, "*.") {
			exact[host] = toChain(chains[host])
			continue
		}
		wildcards = append(wildcards, &tree.Matcher_MatcherList_FieldMatcher{
			Predicate: &tree.Matcher_MatcherList_Predicate{MatchType: &tree.Matcher_MatcherList_Predicate_SinglePredicate_{SinglePredicate: &tree.Matcher_MatcherList_Predicate_SinglePredicate{
				Input: serverName(),
				Matcher: &tree.Matcher_MatcherList_Predicate_SinglePredicate_ValueMatch{ValueMatch: &tree.StringMatcher{MatchPattern: &tree.StringMatcher_SafeRegex{SafeRegex: &tree.RegexMatcher{
					EngineType: &tree.RegexMatcher_GoogleRe2{GoogleRe2: &tree.RegexMatcher_GoogleRE2{}}, Regex: `[^.]+` + strings.ReplaceAll(host[1:], ".", `\.`),
				}}}},
			}}},
			OnMatch: toChain(chains[host]),
		})
	}
	rest := toChain(defaultChain)
	if len(wildcards) > 0 {
		rest = goOn(&tree.Matcher{MatcherType: &tree.Matcher_MatcherList_{MatcherList: &tree.Matcher_MatcherList{Matchers: wildcards}}, OnNoMatch: rest})
	}
	if len(exact) == 0 {
		exact["invalid"] = toChain(defaultChain) // a table may not be empty
	}
	return exactly(serverName(), exact, rest)
}
