package resources

import (
	"cmp"
	"fmt"
	"net"
	"time"

	cluster "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpoint "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	upstreamhttp "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	"sluice.dev/sluice/controlplane/gateway/config"
)

const (
	defaultConnectTimeout = time.Second
	// Shorter than common keep-alive times of servers, so that a connection is
	// not used while its other end closes it.
	defaultUpstreamIdle   = 50 * time.Second
	defaultMaxConnections = uint32(4096)
	defaultMaxRequests    = uint32(16384)
	bufferLimit           = 64 << 10
	// Of the requests of a product that are in flight, so many of a hundred may be
	// retries where routes have their own, and so many in any case.
	retryPercent, minRetries = 20, 3
)

// addProduct adds the cluster of a product. Addresses that are all numeric go
// by EDS, so that a change of them touches nothing else; names are resolved by
// the edge, which EDS does not allow.
func (s *Set) addProduct(p config.Product) error {
	load, numeric, err := s.endpoints(p)
	if err != nil {
		return fmt.Errorf("product %s: %w", p.Name, err)
	}
	c, err := s.newCluster(p)
	if err != nil {
		return fmt.Errorf("product %s: %w", p.Name, err)
	}
	if numeric {
		c.ClusterDiscoveryType = &cluster.Cluster_Type{Type: cluster.Cluster_EDS}
		c.EdsClusterConfig = &cluster.Cluster_EdsClusterConfig{EdsConfig: endpointsSource()}
		s.Endpoints[p.Name] = load
	} else {
		c.ClusterDiscoveryType = &cluster.Cluster_Type{Type: cluster.Cluster_STRICT_DNS}
		c.DnsLookupFamily = cluster.Cluster_V4_PREFERRED
		c.RespectDnsTtl = true //nolint:staticcheck // its successor is an extension of its own for the same bit
		c.LoadAssignment = load
	}
	s.Clusters[p.Name] = c
	return nil
}

// endpointsWait is how long a cluster waits for its addresses.
const endpointsWait = 2 * time.Second

// endpointsSource is viaADS with an end of waiting. A cluster that is changed asks for
// addresses that Envoy has asked for already, which is not sent again: after the
// wait it takes those that Envoy keeps. Without end it would wait for ever, and
// with it every later change of clusters.
func endpointsSource() *core.ConfigSource {
	s := viaADS()
	s.InitialFetchTimeout = durationpb.New(endpointsWait)
	return s
}

// endpoints returns the addresses of p and whether all are IP addresses. A
// product without any answers 503.
func (s *Set) endpoints(p config.Product) (load *endpoint.ClusterLoadAssignment, numeric bool, err error) {
	group := &endpoint.LocalityLbEndpoints{}
	numeric = true
	for _, u := range p.Upstreams {
		if issue, _ := s.opts.upstreamFault(u.Address); issue != "" {
			continue
		}
		addrs, err := s.opts.resolve(u.Address)
		if err != nil {
			return nil, false, err
		}
		for _, addr := range addrs {
			socket, err := socketAddress(addr)
			if err != nil {
				return nil, false, err
			}
			numeric = numeric && net.ParseIP(socket.GetSocketAddress().Address) != nil
			group.LbEndpoints = append(group.LbEndpoints, &endpoint.LbEndpoint{
				HostIdentifier:      &endpoint.LbEndpoint_Endpoint{Endpoint: &endpoint.Endpoint{Address: socket}},
				LoadBalancingWeight: u32(max(1, u.Weight)),
			})
		}
	}
	return &endpoint.ClusterLoadAssignment{ClusterName: p.Name, Endpoints: []*endpoint.LocalityLbEndpoints{group}}, numeric, nil
}

func (s *Set) newCluster(p config.Product) (*cluster.Cluster, error) {
	c := &cluster.Cluster{
		Name:                          p.Name,
		ConnectTimeout:                durationpb.New(p.ConnectTimeout.Or(defaultConnectTimeout)),
		LbPolicy:                      cluster.Cluster_LEAST_REQUEST,
		PerConnectionBufferLimitBytes: u32(bufferLimit),
		CircuitBreakers:               breakers(p, s.retried[p.Name]),
		OutlierDetection:              outliers(p.Outliers),
		UpstreamConnectionOptions: &cluster.UpstreamConnectionOptions{TcpKeepalive: &core.TcpKeepalive{
			KeepaliveProbes: u32(3), KeepaliveTime: u32(30), KeepaliveInterval: u32(5),
		}},
		TypedExtensionProtocolOptions: map[string]*anypb.Any{
			"envoy.extensions.upstreams.http.v3.HttpProtocolOptions": pack(upstreamOptions(p)),
		},
	}
	if h := p.Health; h != nil {
		checked(c, *h)
	} else if p.HealthPath != "" {
		checked(c, config.Health{Path: p.HealthPath})
	}
	if p.TLS != nil {
		var err error
		if c.TransportSocket, err = s.upstreamTLS(p.Name, *p.TLS, p.SpeaksHTTP2()); err != nil {
			return nil, err
		}
	}
	return c, nil
}

func upstreamOptions(p config.Product) *upstreamhttp.HttpProtocolOptions {
	spoken := &upstreamhttp.HttpProtocolOptions_ExplicitHttpConfig{
		ProtocolConfig: &upstreamhttp.HttpProtocolOptions_ExplicitHttpConfig_HttpProtocolOptions{HttpProtocolOptions: &core.Http1ProtocolOptions{}},
	}
	if p.SpeaksHTTP2() {
		spoken.ProtocolConfig = &upstreamhttp.HttpProtocolOptions_ExplicitHttpConfig_Http2ProtocolOptions{Http2ProtocolOptions: &core.Http2ProtocolOptions{
			InitialStreamWindowSize: u32(64 << 10), InitialConnectionWindowSize: u32(1 << 20),
		}}
	}
	return &upstreamhttp.HttpProtocolOptions{
		CommonHttpProtocolOptions: &core.HttpProtocolOptions{IdleTimeout: durationpb.New(p.IdleTimeout.Or(defaultUpstreamIdle))},
		UpstreamProtocolOptions:   &upstreamhttp.HttpProtocolOptions_ExplicitHttpConfig_{ExplicitHttpConfig: spoken},
	}
}

// breakers bound what one edge asks of a product. Envoy's own defaults of 1024
// are lower than what one edge can carry.
// Where routes have retries of their own, a part of what is in flight may be such: when
// all of it fails, a product is not asked several times as much as when nothing does.
func breakers(p config.Product, retried bool) *cluster.CircuitBreakers {
	connections, requests := cmp.Or(p.MaxConnections, defaultMaxConnections), cmp.Or(p.MaxRequests, defaultMaxRequests)
	bounds := &cluster.CircuitBreakers_Thresholds{
		MaxConnections: u32(connections), MaxPendingRequests: u32(cmp.Or(p.MaxPending, requests)), MaxRequests: u32(requests), MaxRetries: u32(256),
	}
	if retried {
		bounds.MaxRetries = nil
		bounds.RetryBudget = &cluster.CircuitBreakers_Thresholds_RetryBudget{BudgetPercent: &typev3.Percent{Value: retryPercent}, MinRetryConcurrency: u32(minRetries)}
	}
	return &cluster.CircuitBreakers{Thresholds: []*cluster.CircuitBreakers_Thresholds{bounds}}
}

// outliers takes an address out that fails to answer, not one that answers
// errors unless the product says so: those may be the callers' doing. By
// default the last half always stays in.
func outliers(o config.Outliers) *cluster.OutlierDetection {
	if o.Off {
		return nil
	}
	ejection := o.Ejection.Or(5 * time.Second)
	d := &cluster.OutlierDetection{
		SplitExternalLocalOriginErrors:         true,
		ConsecutiveLocalOriginFailure:          u32(cmp.Or(o.Failures, 5)),
		EnforcingConsecutiveLocalOriginFailure: u32(100),
		EnforcingSuccessRate:                   u32(0),
		EnforcingLocalOriginSuccessRate:        u32(0),
		Interval:                               durationpb.New(o.Interval.Or(2 * time.Second)),
		BaseEjectionTime:                       durationpb.New(ejection),
		MaxEjectionTime:                        durationpb.New(max(ejection, time.Minute)),
		MaxEjectionPercent:                     u32(cmp.Or(o.MaxPercent, 50)),
		AlwaysEjectOneHost:                     wrapperspb.Bool(false),
	}
	if o.ServerErrors > 0 {
		d.Consecutive_5Xx, d.EnforcingConsecutive_5Xx = u32(o.ServerErrors), u32(100)
	}
	return d
}

// checked has each address of c asked for its health. An address that the
// document does not name any more goes at once, however well it is. Only when
// no address at all is well are all tried: Envoy's own bound of a half would send
// requests to two dead ones of three.
func checked(c *cluster.Cluster, h config.Health) {
	c.HealthChecks = []*core.HealthCheck{healthCheck(h)}
	c.IgnoreHealthOnHostRemoval = true
	c.CommonLbConfig = &cluster.Cluster_CommonLbConfig{HealthyPanicThreshold: &typev3.Percent{Value: 1}}
}

func healthCheck(h config.Health) *core.HealthCheck {
	interval := durationpb.New(h.Interval.Or(5 * time.Second))
	check := &core.HealthCheck{
		Timeout: durationpb.New(h.Timeout.Or(time.Second)), Interval: interval, NoTrafficInterval: interval,
		HealthyThreshold: u32(cmp.Or(h.Healthy, 1)), UnhealthyThreshold: u32(cmp.Or(h.Unhealthy, 3)),
		HealthChecker: &core.HealthCheck_HttpHealthCheck_{HttpHealthCheck: &core.HealthCheck_HttpHealthCheck{Path: h.Path, Host: h.Host}},
	}
	if h.GRPC != nil {
		check.HealthChecker = grpcHealth(h)
	}
	return check
}
