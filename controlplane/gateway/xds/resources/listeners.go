package resources

import (
	"time"

	mutation "github.com/envoyproxy/go-control-plane/envoy/config/common/mutation_rules/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listener "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	router "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	early "github.com/envoyproxy/go-control-plane/envoy/extensions/http/early_header_mutation/header_mutation/v3"
	matcher "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	"sluice.dev/sluice/controlplane/gateway/config"
)

// requestTimes bound how long a whole request may take to arrive. Uploads
// through the runtime are long.
var requestTimes = map[string]time.Duration{config.Gateway: 5 * time.Minute, config.Runtime: time.Hour}

// ownHeaders is what the names of our own request headers begin with, the
// identity's among them.
const ownHeaders = "x-sluice-"

func (s *Set) listener(name, addr string, change ...func(*hcm.HttpConnectionManager)) (*listener.Listener, error) {
	address, err := socketAddress(addr)
	if err != nil {
		return nil, err
	}
	manager, err := s.manager(name, change...)
	if err != nil {
		return nil, err
	}
	return &listener.Listener{
		Name:                          name,
		Address:                       address,
		EnableReusePort:               wrapperspb.Bool(true),
		PerConnectionBufferLimitBytes: u32(bufferLimit),
		// A worker with many new clients goes on serving the old ones in between.
		MaxConnectionsToAcceptPerSocketEvent: u32(16),
		FilterChains: []*listener.FilterChain{{Filters: []*listener.Filter{{
			Name:       "envoy.filters.network.http_connection_manager",
			ConfigType: &listener.Filter_TypedConfig{TypedConfig: manager},
		}}}},
	}, nil
}

// manager follows Envoy's own list for an edge that the internet can reach; change
// is what a listener has of its own.
func (s *Set) manager(name string, change ...func(*hcm.HttpConnectionManager)) (*anypb.Any, error) {
	m := &hcm.HttpConnectionManager{
		StatPrefix: name,
		RouteSpecifier: &hcm.HttpConnectionManager_Rds{Rds: &hcm.Rds{
			ConfigSource: viaADS(), RouteConfigName: name,
		}},
		HttpFilters: s.withCache(s.chain()),
		AccessLog:   accessLog(name, s.settings, s.opts.Traces != nil),

		// Who calls: the peer itself, or whom trusted proxies name, and nobody counts as internal.
		UseRemoteAddress:      wrapperspb.Bool(true),
		XffNumTrustedHops:     s.settings.proxies,
		InternalAddressConfig: &hcm.HttpConnectionManager_InternalAddressConfig{},

		// What a path means is settled before a route is chosen by it.
		NormalizePath:                wrapperspb.Bool(true),
		MergeSlashes:                 true,
		PathWithEscapedSlashesAction: hcm.HttpConnectionManager_REJECT_REQUEST,

		// Slow and idle peers.
		RequestHeadersTimeout: seconds(10),
		RequestTimeout:        durationpb.New(requestTimes[name]),
		StreamIdleTimeout:     durationpb.New(defaultIdle), // of routes that say nothing else
		DelayedCloseTimeout:   seconds(1),
		DrainTimeout:          seconds(5),

		MaxRequestHeadersKb: u32(32),
		CommonHttpProtocolOptions: &core.HttpProtocolOptions{
			IdleTimeout:                  seconds(300),
			HeadersWithUnderscoresAction: core.HttpProtocolOptions_REJECT_REQUEST,
			MaxHeadersCount:              u32(100),
		},
		Http2ProtocolOptions: &core.Http2ProtocolOptions{
			MaxConcurrentStreams:        u32(100),
			InitialStreamWindowSize:     u32(64 << 10),
			InitialConnectionWindowSize: u32(1 << 20),
			// A peer that is gone without a word holds its streams for so long.
			ConnectionKeepalive: &core.KeepaliveSettings{Interval: seconds(30), Timeout: seconds(10)},
			// What a peer can make Envoy queue or read for nothing. A flood of
			// resets is bounded by the runtime keys of the bootstrap.
			MaxOutboundFrames:                            u32(2000),
			MaxOutboundControlFrames:                     u32(500),
			MaxConsecutiveInboundFramesWithEmptyPayload:  u32(1),
			MaxInboundPriorityFramesPerStream:            u32(20),
			MaxInboundWindowUpdateFramesPerDataFrameSent: u32(10),
		},

		// The request id is ours, and every answer shows it.
		GenerateRequestId:            wrapperspb.Bool(true),
		AlwaysSetRequestIdInResponse: true,
		PreserveExternalRequestId:    false,

		// Nothing in an answer tells what stands in front of the product.
		ServerHeaderTransformation: hcm.HttpConnectionManager_PASS_THROUGH,

		EarlyHeaderMutationExtensions: []*core.TypedExtensionConfig{dropForged()},
		LocalReplyConfig:              s.localReplies(),

		Tracing: s.traced(),
	}
	acceptExtendedConnect(m)
	for _, f := range change {
		f(m)
	}
	if err := m.ValidateAll(); err != nil {
		return nil, err
	}
	return pack(m), nil
}

// chain is the order of filters. The edge filter is the first that answers:
// answers of a filter before it would lack the rate-limit headers. The chain is the same whatever
// the routes are, but for filters that few documents need: the first route that asks for one, and the
// last, change the listener, which closes connections as at an upgrade.
func (s *Set) chain() []*hcm.HttpFilter {
	list := append([]*hcm.HttpFilter{corsFilter(CORSFilter)}, s.grpcWebFilters()...)
	if s.settings.clients {
		list = append(list, peerFilter())
	}
	list = append(list, discovered(EdgeFilter, false), corsFilter(PreflightFilter))
	if s.settings.names {
		list = append(list, namesFilter())
	}
	if s.settings.compress {
		list = append(list, compressing()...)
	}
	return append(list, discovered(ValidateFilter, true), discovered(ChatCapsFilter, true), &hcm.HttpFilter{
		Name: "envoy.filters.http.router",
		ConfigType: &hcm.HttpFilter_TypedConfig{TypedConfig: pack(&router.Router{
			SuppressEnvoyHeaders: true,
			DynamicStats:         wrapperspb.Bool(false), // nobody reads statistics per upstream and status here
		})},
	})
}

// discovered is a filter whose configuration comes by ECDS. There is no
// default: the listener opens when the configuration is there.
func discovered(name string, disabled bool) *hcm.HttpFilter {
	return &hcm.HttpFilter{
		Name:     name,
		Disabled: disabled,
		ConfigType: &hcm.HttpFilter_ConfigDiscovery{ConfigDiscovery: &core.ExtensionConfigSource{
			ConfigSource: viaADS(), TypeUrls: []string{wasmType, faultType},
		}},
	}
}

// dropForged removes what a client sends under the names of our own headers and
// of those by which Envoy is steered, before any filter runs. Envoy would keep
// the latter, and the request id, from a client on loopback, whatever counts as
// internal. Variants with underscores never get here.
func dropForged() *core.TypedExtensionConfig {
	drop := []*mutation.HeaderMutation{{Action: &mutation.HeaderMutation_Remove{Remove: "x-request-id"}}}
	for _, prefix := range []string{ownHeaders, "x-envoy-"} {
		drop = append(drop, &mutation.HeaderMutation{Action: &mutation.HeaderMutation_RemoveOnMatch_{
			RemoveOnMatch: &mutation.HeaderMutation_RemoveOnMatch{KeyMatcher: &matcher.StringMatcher{
				MatchPattern: &matcher.StringMatcher_Prefix{Prefix: prefix},
			}},
		}})
	}
	return extension("envoy.http.early_header_mutation.header_mutation", &early.HeaderMutation{Mutations: drop})
}
