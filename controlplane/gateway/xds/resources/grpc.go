package resources

import (
	"strconv"
	"time"

	accesslog "github.com/envoyproxy/go-control-plane/envoy/config/accesslog/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	route "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	cors "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/cors/v3"
	grpcweb "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/grpc_web/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/filters/decision"
)

// GRPCWebFilter makes gRPC of what browsers send. It stands in the chain of documents
// that have a product which speaks gRPC, off but on that product's routes, and before
// the edge filter: that sees gRPC alone.
const GRPCWebFilter = "sluice.grpcweb"

// grpcWebFilters are the filters that a listener has for gRPC.
func (s *Set) grpcWebFilters() []*hcm.HttpFilter {
	if !s.settings.grpc {
		return nil
	}
	return []*hcm.HttpFilter{{Name: GRPCWebFilter, Disabled: true, ConfigType: &hcm.HttpFilter_TypedConfig{TypedConfig: pack(&grpcweb.GrpcWeb{})}}}
}

// firstBy is how much sooner than the product the edge ends a call whose deadline both know:
// a product that is first resets the stream, which clients would take for UNAVAILABLE.
const firstBy = 5 * time.Millisecond

// speakGRPC makes a the action of a route whose product speaks gRPC; filters are those
// that the route turns on. A call ends when its grpc-timeout has gone by, or the
// route's own timeout, whichever is first. Envoy has one clock for both, and then
// heeds no other of the route; the product gets grpc-timeout, cut to the route's.
func speakGRPC(a *route.RouteAction, filters map[string]*anypb.Any) {
	filters[GRPCWebFilter] = pack(&route.FilterConfig{Config: &anypb.Any{}})
	longest := a.GetMaxStreamDuration().GetMaxStreamDuration()
	if longest == nil {
		longest = a.Timeout // 0 when streaming: as long as the client asks
	}
	a.MaxStreamDuration = &route.RouteAction_MaxStreamDuration{MaxStreamDuration: longest, GrpcTimeoutHeaderMax: longest, GrpcTimeoutHeaderOffset: durationpb.New(firstBy)}
}

// What pages send and read besides to call by gRPC-web.
const (
	grpcWebHeaders = ", x-grpc-web, x-user-agent, grpc-timeout"
	grpcWebExpose  = ", grpc-status, grpc-message, grpc-status-details-bin, " + decision.GRPCCodeHeader + ", " + decision.GRPCDocsHeader
)

// withGRPCWeb lets pages call r by gRPC-web where its product speaks gRPC.
func (s *Set) withGRPCWeb(p *cors.CorsPolicy, r config.Route) *cors.CorsPolicy {
	if s.products[r.Product].GRPC {
		p.AllowHeaders += grpcWebHeaders
		p.ExposeHeaders += grpcWebExpose
	}
	return p
}

// calledByGRPC is true of requests of gRPC, and of gRPC-web behind GRPCWebFilter.
const calledByGRPC = `"content-type" in request.headers && request.headers["content-type"].startsWith("application/grpc")`

// grpcReplies give answers that Envoy itself makes to calls by gRPC the status that our
// code for them has, and its message: what clients of gRPC read. They go before those
// with an envelope.
func (s *Set) grpcReplies() (mappers []*hcm.ResponseMapper) {
	if !s.settings.grpc {
		return nil
	}
	for _, status := range replyStatuses {
		code := decision.OfReply(status)
		if status == 408 { // the call's deadline; a request that is slow to arrive has one too
			code = decision.GatewayTimeout
		}
		m := s.replyMapper(uint32(status), code)
		m.Filter = and(statusIs(uint32(status)), celFilter(madeByEnvoy+" && "+calledByGRPC))
		m.HeadersToAdd = append(m.HeadersToAdd,
			defaultHeader("grpc-status", strconv.Itoa(decision.GRPCStatus(code))),
			defaultHeader(decision.GRPCCodeHeader, string(code)),
			defaultHeader(decision.GRPCDocsHeader, decision.DocsURL(s.opts.DocsBase, code)))
		m.BodyFormatOverride = &core.SubstitutionFormatString{Format: &core.SubstitutionFormatString_TextFormatSource{
			TextFormatSource: &core.DataSource{Specifier: &core.DataSource_InlineString{InlineString: decision.Lookup(code).Message}},
		}}
		mappers = append(mappers, m)
	}
	return mappers
}

// failedRPC is true of calls by gRPC that failed, though their HTTP status is 200.
const failedRPC = `"grpc-status" in response.trailers && response.trailers["grpc-status"] != "0" || ` +
	`"grpc-status" in response.headers && response.headers["grpc-status"] != "0"`

// failures are the requests that failed: by HTTP status and, where a product speaks it,
// by that of gRPC.
func failures(grpc bool) *accesslog.AccessLogFilter {
	failed := compareStatus(accesslog.ComparisonFilter_GE, 400)
	if !grpc {
		return failed
	}
	return eitherOf(failed, celFilter(failedRPC))
}

// grpcHealth asks for the health of a service, or of the whole server.
func grpcHealth(h config.Health) *core.HealthCheck_GrpcHealthCheck_ {
	return &core.HealthCheck_GrpcHealthCheck_{GrpcHealthCheck: &core.HealthCheck_GrpcHealthCheck{ServiceName: *h.GRPC, Authority: h.Host}}
}
