package resources

import (
	"net"
	"strconv"
	"strings"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listener "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	route "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	router "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"
	"sluice.dev/sluice/filters/edgeapi"
)

// Plain is the name of the listener for requests without encryption.
const Plain = "plain"

// plain is the listener at addr. It answers authorities that check who has a name, by
// asking the control plane, and sends everybody else to https. No filter of ours and no
// product is behind it.
func (s *Set) plain(addr string) (*listener.Listener, error) {
	address, err := socketAddress(addr)
	if err != nil {
		return nil, err
	}
	m := &hcm.HttpConnectionManager{
		StatPrefix: Plain,
		RouteSpecifier: &hcm.HttpConnectionManager_RouteConfig{RouteConfig: &route.RouteConfiguration{Name: Plain, VirtualHosts: []*route.VirtualHost{{
			Name: Plain, Domains: []string{"*"}, Routes: []*route.Route{challengeRoute(), s.toHTTPS()},
		}}}},
		HttpFilters: []*hcm.HttpFilter{{
			Name:       "envoy.filters.http.router",
			ConfigType: &hcm.HttpFilter_TypedConfig{TypedConfig: pack(&router.Router{SuppressEnvoyHeaders: true, DynamicStats: wrapperspb.Bool(false)})},
		}},
		UseRemoteAddress:             wrapperspb.Bool(true),
		InternalAddressConfig:        &hcm.HttpConnectionManager_InternalAddressConfig{},
		NormalizePath:                wrapperspb.Bool(true),
		PathWithEscapedSlashesAction: hcm.HttpConnectionManager_REJECT_REQUEST,
		RequestHeadersTimeout:        seconds(10),
		RequestTimeout:               seconds(10),
		StreamIdleTimeout:            seconds(10),
		DelayedCloseTimeout:          seconds(1),
		DrainTimeout:                 seconds(5),
		MaxRequestHeadersKb:          u32(32),
		CommonHttpProtocolOptions: &core.HttpProtocolOptions{
			IdleTimeout: seconds(30), HeadersWithUnderscoresAction: core.HttpProtocolOptions_REJECT_REQUEST, MaxHeadersCount: u32(100),
		},
		CodecType:                  hcm.HttpConnectionManager_HTTP1,
		ServerHeaderTransformation: hcm.HttpConnectionManager_PASS_THROUGH,
	}
	if err := m.ValidateAll(); err != nil {
		return nil, err
	}
	return &listener.Listener{
		Name: Plain, Address: address, EnableReusePort: wrapperspb.Bool(true),
		PerConnectionBufferLimitBytes:        u32(bufferLimit),
		MaxConnectionsToAcceptPerSocketEvent: u32(16),
		FilterChains: []*listener.FilterChain{{Filters: []*listener.Filter{{
			Name: "envoy.filters.network.http_connection_manager", ConfigType: &listener.Filter_TypedConfig{TypedConfig: pack(m)},
		}}}},
	}, nil
}

// challengeRoute asks the control plane, by way of the agent.
func challengeRoute() *route.Route {
	return &route.Route{
		Name:  "challenge",
		Match: &route.RouteMatch{PathSpecifier: &route.RouteMatch_Prefix{Prefix: edgeapi.HTTPChallengePath}},
		Action: &route.Route_Route{Route: &route.RouteAction{
			ClusterSpecifier: &route.RouteAction_Cluster{Cluster: edgeapi.FeedCluster}, Timeout: seconds(5),
		}},
		RequestHeadersToRemove: []string{"authorization", "cookie"},
	}
}

// toHTTPS sends to the same address over https, at the port of the public address.
func (s *Set) toHTTPS() *route.Route {
	to := &route.RedirectAction{SchemeRewriteSpecifier: &route.RedirectAction_HttpsRedirect{HttpsRedirect: true}, PortRedirect: 443}
	host, https := strings.CutPrefix(s.opts.DocsBase, "https://")
	if _, port, err := net.SplitHostPort(host); https && err == nil {
		if n, err := strconv.ParseUint(port, 10, 16); err == nil {
			to.PortRedirect = uint32(n)
		}
	}
	if to.PortRedirect == 443 {
		to.PortRedirect = 0
	}
	to.ResponseCode = route.RedirectAction_PERMANENT_REDIRECT
	return &route.Route{Name: "https", Match: &route.RouteMatch{PathSpecifier: &route.RouteMatch_Prefix{Prefix: "/"}}, Action: &route.Route_Redirect{Redirect: to}}
}
