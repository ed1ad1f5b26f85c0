package resources

import (
	"slices"
	"strings"
	"testing"
	"time"

	cluster "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/filters/identityheader"
)

func managers(t *testing.T, s *Set) map[string]*hcm.HttpConnectionManager {
	t.Helper()
	listeners, err := s.Listeners(Addresses{Gateway: "127.0.0.1:8080", Runtime: "127.0.0.1:8090"})
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]*hcm.HttpConnectionManager{}
	for name, l := range listeners {
		m := &hcm.HttpConnectionManager{}
		if err := l.FilterChains[0].Filters[0].GetTypedConfig().UnmarshalTo(m); err != nil {
			t.Fatal(err)
		}
		if !l.EnableReusePort.GetValue() || l.PerConnectionBufferLimitBytes.GetValue() > 64<<10 {
			t.Errorf("%s: %v", name, l)
		}
		out[name] = m
	}
	return out
}

// Envoy's list of what an edge that the internet reaches must have set.
func TestListenersFollowTheEdgeChecklist(t *testing.T) {
	t.Parallel()
	for name, m := range managers(t, build(t, defaults(t), Options{Addresses: addresses})) {
		for what, ok := range map[string]bool{
			"the peer's address counts":      m.UseRemoteAddress.GetValue() && m.XffNumTrustedHops == 0,
			"nobody is internal":             m.InternalAddressConfig != nil && len(m.InternalAddressConfig.CidrRanges) == 0,
			"underscores are refused":        m.CommonHttpProtocolOptions.HeadersWithUnderscoresAction == core.HttpProtocolOptions_REJECT_REQUEST,
			"paths are normal":               m.NormalizePath.GetValue() && m.MergeSlashes,
			"escaped slashes are refused":    m.PathWithEscapedSlashesAction == hcm.HttpConnectionManager_REJECT_REQUEST,
			"headers come soon":              within(m.RequestHeadersTimeout.AsDuration(), 30*time.Second),
			"requests end":                   within(m.RequestTimeout.AsDuration(), 2*time.Hour),
			"streams do not idle":            m.StreamIdleTimeout.AsDuration() == defaultIdle,
			"connections do not idle":        within(m.CommonHttpProtocolOptions.IdleTimeout.AsDuration(), time.Hour),
			"headers are small":              m.MaxRequestHeadersKb.GetValue() <= 60 && m.CommonHttpProtocolOptions.MaxHeadersCount.GetValue() <= 100,
			"few streams on a connection":    m.Http2ProtocolOptions.MaxConcurrentStreams.GetValue() <= 100,
			"small windows":                  m.Http2ProtocolOptions.InitialStreamWindowSize.GetValue() <= 64<<10 && m.Http2ProtocolOptions.InitialConnectionWindowSize.GetValue() <= 1<<20,
			"dead peers are noticed":         within(m.Http2ProtocolOptions.ConnectionKeepalive.GetInterval().AsDuration(), time.Minute),
			"floods of frames are bounded":   m.Http2ProtocolOptions.MaxOutboundFrames.GetValue() <= 2000 && m.Http2ProtocolOptions.MaxOutboundControlFrames.GetValue() <= 500,
			"floods of nothing too":          m.Http2ProtocolOptions.MaxConsecutiveInboundFramesWithEmptyPayload.GetValue() == 1 && m.Http2ProtocolOptions.MaxInboundPriorityFramesPerStream.GetValue() <= 20,
			"a bad message ends its peer":    !m.StreamErrorOnInvalidHttpMessage.GetValue() && m.HttpProtocolOptions.GetAllowChunkedLength() == false && !m.HttpProtocolOptions.GetAcceptHttp_10(),
			"no tracing by strangers":        m.ForwardClientCertDetails == hcm.HttpConnectionManager_SANITIZE && m.Tracing == nil,
			"the request id is ours":         m.GenerateRequestId.GetValue() && !m.PreserveExternalRequestId && m.AlwaysSetRequestIdInResponse,
			"no upgrades":                    len(m.UpgradeConfigs) == 0,
			"no trace of the proxy":          m.Via == "" && m.ServerHeaderTransformation == hcm.HttpConnectionManager_PASS_THROUGH,
			"forged identities are dropped":  len(m.EarlyHeaderMutationExtensions) == 1,
			"routes come by ADS":             m.GetRds().GetConfigSource().GetAds() != nil && m.GetRds().RouteConfigName == name,
			"the edge filter is the first":   m.HttpFilters[0].Disabled && m.HttpFilters[1].Name == EdgeFilter && m.HttpFilters[1].GetConfigDiscovery().GetDefaultConfig() == nil,
			"it waits for its configuration": m.HttpFilters[1].GetConfigDiscovery().GetConfigSource().GetInitialFetchTimeout().AsDuration() == 0,
			"the router is the last":         m.HttpFilters[len(m.HttpFilters)-1].Name == "envoy.filters.http.router",
		} {
			if !ok {
				t.Errorf("%s: not so: %s", name, what)
			}
		}
	}
}

func within(d, most time.Duration) bool { return d > 0 && d <= most }

func TestIdentityIsAmongOurHeaders(t *testing.T) {
	t.Parallel()
	if !strings.HasPrefix(identityheader.Header, ownHeaders) {
		t.Errorf("clients could forge %s", identityheader.Header)
	}
}

func TestFiltersAreOffUnlessARouteTurnsThemOn(t *testing.T) {
	t.Parallel()
	for _, m := range managers(t, build(t, defaults(t), Options{Addresses: addresses})) {
		var on, off []string
		for _, f := range m.HttpFilters {
			if f.Disabled {
				off = append(off, f.Name)
			} else {
				on = append(on, f.Name)
			}
		}
		if got := strings.Join(on, " "); got != "sluice.edge envoy.filters.http.router" {
			t.Errorf("on: %s", got)
		}
		if got := strings.Join(off, " "); got != "sluice.cors sluice.preflight sluice.validate sluice.chatcaps" {
			t.Errorf("off: %s", got)
		}
	}
}

func TestAccessLogShowsNoSecret(t *testing.T) {
	t.Parallel()
	d := defaults(t)
	for which, n := range map[string]int{"": 1, "failures": 1, "all": 1, "off": 0} {
		d.AccessLog, d.RequestLog = which, "off"
		for _, m := range managers(t, build(t, d, Options{Addresses: addresses})) {
			if len(m.AccessLog) != n || (n == 1 && (m.AccessLog[0].Filter == nil) != (which == "all")) {
				t.Errorf("%q: %v", which, m.AccessLog)
			}
			for _, l := range m.AccessLog {
				text := strings.ToLower(string(l.GetTypedConfig().Value))
				text = strings.ReplaceAll(text, "request.headers['x-sluice-identity'].split(';m=')[0]", "") // without its signature
				for _, secret := range []string{"authorization", "cookie", "%path(wq", "req(:path", "identity", "payment"} {
					if strings.Contains(text, secret) {
						t.Errorf("%q: it shows %s", which, secret)
					}
				}
			}
		}
	}
}

func TestListenersOfAddressesThatAreNone(t *testing.T) {
	t.Parallel()
	s := build(t, defaults(t), Options{Addresses: addresses})
	for _, a := range []Addresses{{Gateway: "nowhere"}, {Gateway: "127.0.0.1:0", Runtime: "127.0.0.1:99999"}} {
		if _, err := s.Listeners(a); err == nil {
			t.Errorf("%+v is accepted", a)
		}
	}
	if l, err := s.Listeners(Addresses{Runtime: "127.0.0.1:8090"}); err != nil || len(l) != 1 || l[config.Runtime] == nil {
		t.Errorf("%v, %v", l, err)
	}
}

func TestAddressesGoByEDSAndNamesByDNS(t *testing.T) {
	t.Parallel()
	s := build(t, defaults(t), Options{Addresses: addresses})
	media, runtime := s.Clusters["media"], s.Clusters["runtime"]
	if media.GetType() != cluster.Cluster_EDS || media.LoadAssignment != nil || s.Endpoints["media"] == nil {
		t.Errorf("media: %v", media)
	}
	if runtime.GetType() != cluster.Cluster_STRICT_DNS || runtime.LoadAssignment == nil || s.Endpoints["runtime"] != nil {
		t.Errorf("runtime: %v", runtime)
	}
}

func TestTLSAndHTTP3(t *testing.T) {
	t.Parallel()
	s := build(t, defaults(t), Options{Addresses: addresses})
	at := Addresses{Gateway: "127.0.0.1:8080", Runtime: "127.0.0.1:8090"}
	for what, c := range map[string]struct {
		tls   string
		http3 bool
		want  int // listeners
	}{
		"plain": {"", false, 2}, "TLS": {"/s/listener.json", false, 2}, "HTTP/3": {"/s/listener.json", true, 4}, "HTTP/3 without TLS": {"", true, 2},
	} {
		at.TLS, at.HTTP3 = c.tls, c.http3
		listeners, err := s.Listeners(at)
		if err != nil || len(listeners) != c.want {
			t.Fatalf("%s: %d listeners, %v", what, len(listeners), err)
		}
		for name, l := range listeners {
			quic := strings.HasSuffix(name, HTTP3Suffix)
			if quic != (l.UdpListenerConfig != nil) || quic != (l.Address.GetSocketAddress().Protocol == core.SocketAddress_UDP) {
				t.Errorf("%s: %s is %v", what, name, l)
			}
			if socket := l.FilterChains[0].TransportSocket; (socket != nil) != (c.tls != "") {
				t.Errorf("%s: %s has %v", what, name, socket)
			}
			m := &hcm.HttpConnectionManager{}
			if err := l.FilterChains[0].Filters[0].GetTypedConfig().UnmarshalTo(m); err != nil {
				t.Fatal(err)
			}
			announces := slices.ContainsFunc(m.HttpFilters, func(f *hcm.HttpFilter) bool { return f.Name == "envoy.filters.http.header_mutation" })
			if announces != (c.want == 4 && !quic) || m.HttpFilters[len(m.HttpFilters)-1].Name != "envoy.filters.http.router" {
				t.Errorf("%s: filters of %s: %v", what, name, m.HttpFilters)
			}
		}
	}
}
