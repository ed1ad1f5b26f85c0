package resources

import (
	"errors"
	"net"
	"net/url"
	"time"

	"cel.dev/expr"
	xdstype "github.com/cncf/xds/go/xds/type/v3"
	cluster "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpoint "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	trace "github.com/envoyproxy/go-control-plane/envoy/config/trace/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	samplers "github.com/envoyproxy/go-control-plane/envoy/extensions/tracers/opentelemetry/samplers/v3"
	tracing "github.com/envoyproxy/go-control-plane/envoy/type/tracing/v3"
	percent "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"sluice.dev/sluice/controlplane/gateway/config"
)

// Traces says where edges report traces to.
type Traces struct {
	// Endpoint is the base URL of a collector that takes OTLP over HTTP, as an
	// edge reaches it.
	Endpoint string
	// Ratio of the requests that are traced, 0 to 1.
	Ratio float64
}

// tracesCluster leads to the collector. No product can have this name.
const tracesCluster = "sluice:traces"

// tracesPath is where a collector takes OTLP over HTTP.
const tracesPath = "/v1/traces"

// collector reads the address of a collector.
func (t Traces) collector() (u *url.URL, hostport string, err error) {
	u, err = url.Parse(t.Endpoint)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "" || u.User != nil || u.RawQuery != "" {
		return nil, "", errors.New("the collector of traces is no http:// or https:// address without user and query")
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return u, net.JoinHostPort(u.Hostname(), port), nil
}

// addTraces adds the cluster of the collector.
func (s *Set) addTraces() error {
	if s.opts.Traces == nil {
		return nil
	}
	u, hostport, err := s.opts.Traces.collector()
	if err != nil {
		return err
	}
	address, err := socketAddress(hostport)
	if err != nil {
		return err
	}
	p := config.Product{Name: tracesCluster, Outliers: config.Outliers{Off: true}}
	if u.Scheme == "https" {
		p.TLS = &config.TLS{ServerName: u.Hostname()}
	}
	c, err := s.newCluster(p)
	if err != nil {
		return err
	}
	c.ClusterDiscoveryType = &cluster.Cluster_Type{Type: cluster.Cluster_STRICT_DNS}
	if net.ParseIP(u.Hostname()) != nil {
		c.ClusterDiscoveryType = &cluster.Cluster_Type{Type: cluster.Cluster_STATIC}
	}
	c.LoadAssignment = &endpoint.ClusterLoadAssignment{ClusterName: tracesCluster, Endpoints: []*endpoint.LocalityLbEndpoints{{
		LbEndpoints: []*endpoint.LbEndpoint{{HostIdentifier: &endpoint.LbEndpoint_Endpoint{Endpoint: &endpoint.Endpoint{Address: address}}}},
	}}}
	s.Clusters[tracesCluster] = c
	return nil
}

// traced is how the connection manager traces; nil: not at all. A request keeps
// the trace that its caller began, but whether it is reported is drawn here:
// neither a traceparent, whatever id or flag it has, nor a header of Envoy's can
// force it.
func (s *Set) traced() *hcm.HttpConnectionManager_Tracing {
	t := s.opts.Traces
	if t == nil {
		return nil
	}
	return &hcm.HttpConnectionManager_Tracing{
		ClientSampling:  &percent.Percent{},
		RandomSampling:  &percent.Percent{Value: 100 * t.Ratio},
		OverallSampling: &percent.Percent{Value: 100},
		// A query may hold a credential: the path is a tag of its own without it.
		MaxPathTagLength: u32(0),
		Operation:        "%REQ(:METHOD)% %METADATA(ROUTE:sluice:route)%",
		CustomTags: []*tracing.CustomTag{
			{Tag: "url.path", Type: &tracing.CustomTag_Value{Value: "%PATH(NQ:ORIG_OR_PATH)%"}},
			{Tag: "sluice.route", Type: &tracing.CustomTag_Value{Value: "%METADATA(ROUTE:sluice:route)%"}},
		},
		Provider: &trace.Tracing_Http{Name: "envoy.tracers.opentelemetry", ConfigType: &trace.Tracing_Http_TypedConfig{TypedConfig: pack(&trace.OpenTelemetryConfig{
			ServiceName: "sluice-edge",
			HttpService: &core.HttpService{HttpUri: &core.HttpUri{
				Uri: t.Endpoint + tracesPath, HttpUpstreamType: &core.HttpUri_Cluster{Cluster: tracesCluster}, Timeout: durationpb.New(5 * time.Second),
			}},
			Sampler: extension("envoy.tracers.opentelemetry.samplers.cel", &samplers.CELSamplerConfig{Expression: &xdstype.CelExpression{CelExprParsed: drawn()}}),
		})}},
	}
}

// drawn is request.id.matches('^[ -~]{14}9'): Envoy notes in the id that it gives a
// request, at this place, that it drew the request to be traced. Its tracer by
// itself would go by the flag of a caller's traceparent instead, or by the ratio
// of the trace id, which a caller chooses too. A span of its own for the request
// to the product would be drawn again, without the id to look at.
func drawn() *expr.ParsedExpr {
	ident := &expr.Expr{Id: 1, ExprKind: &expr.Expr_IdentExpr{IdentExpr: &expr.Expr_Ident{Name: "request"}}}
	id := &expr.Expr{Id: 2, ExprKind: &expr.Expr_SelectExpr{SelectExpr: &expr.Expr_Select{Operand: ident, Field: "id"}}}
	form := &expr.Expr{Id: 3, ExprKind: &expr.Expr_ConstExpr{ConstExpr: &expr.Constant{ConstantKind: &expr.Constant_StringValue{StringValue: "^[ -~]{14}9"}}}}
	return &expr.ParsedExpr{Expr: &expr.Expr{Id: 4, ExprKind: &expr.Expr_CallExpr{CallExpr: &expr.Expr_Call{
		Target: id, Function: "matches", Args: []*expr.Expr{form},
	}}}}
}
