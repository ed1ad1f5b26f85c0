package resources

import (
	accesslog "github.com/envoyproxy/go-control-plane/envoy/config/accesslog/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	stream "github.com/envoyproxy/go-control-plane/envoy/extensions/access_loggers/stream/v3"
	cel "github.com/envoyproxy/go-control-plane/envoy/extensions/formatter/cel/v3"
	percent "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/structpb"
	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/filters/edgeapi"
	"sluice.dev/sluice/filters/identityheader"
)

// nameOfRoute is the name of the route without its revision. Metadata of each route
// would say it too, but those of 2,000 cost an edge 6 ms of each change of one.
const nameOfRoute = "%CEL(xds.route_name.split('@')[0])%"

// nameOfCaller is what the edge filter says of the caller, without the signature,
// which would let whoever reads it call a product.
const nameOfCaller = "%CEL(request.headers['" + identityheader.Header + "'].split(';m=')[0])%"

// The headers in which a route that rewrites keeps what the client asked for: lines are
// written at the end, when the request has what its product got. Envoy knows the names.
const (
	originalHost = "x-envoy-original-host"
	originalPath = "x-envoy-original-path"
)

// accessLog writes one JSON line a request to standard output, where the agent reads
// it: printed says which of them it prints, and recorded whether it keeps what
// happened for the request log. A line never has a query, a header of the caller's
// but the user agent, or a credential in it. traced adds the id of the trace.
//
// Both are one line, so that a request that is printed and recorded is written down
// once. Envoy writes what is printed, and of the rest a sample, whose size the agent
// sets by the runtime keys.
func accessLog(listener string, set settings, traced bool) []*accesslog.AccessLog {
	printed, recorded := set.accessLog, set.requestLog
	filter := lines(printed, recorded, failures(set.grpc))
	if filter == nil && printed != "all" {
		return nil
	}
	return []*accesslog.AccessLog{{
		Name:   "envoy.access_loggers.stdout",
		Filter: filter,
		ConfigType: &accesslog.AccessLog_TypedConfig{TypedConfig: pack(&stream.StdoutAccessLog{
			AccessLogFormat: &stream.StdoutAccessLog_LogFormat{LogFormat: &core.SubstitutionFormatString{
				OmitEmptyValues: true,
				Formatters:      []*core.TypedExtensionConfig{extension("envoy.formatter.cel", &cel.Cel{CelConfig: &core.CelExpressionConfig{EnableStringFunctions: true}})},
				Format:          &core.SubstitutionFormatString_JsonFormat{JsonFormat: lineFormat(listener, set, traced)},
			}},
		})},
	}}
}

// lines chooses the requests of which Envoy writes a line; nil: all, or none. failed are those that failed.
func lines(printed, recorded string, failed *accesslog.AccessLogFilter) *accesslog.AccessLogFilter {
	switch {
	case printed == "all":
		return nil
	case recorded == "off" && printed == "off":
		return nil
	case recorded == "off":
		return failed
	case printed == "off":
		return eitherOf(and(failed, sampled(edgeapi.FailureSample)), sampled(edgeapi.SuccessSample))
	}
	return eitherOf(failed, sampled(edgeapi.SuccessSample))
}

// lineFormat is a line: what people read, in front of it the mark by which the agent
// knows it, which it takes off.
func lineFormat(listener string, set settings, traced bool) *structpb.Struct {
	fields := map[string]string{
		edgeapi.LineMark: mark(set.accessLog, "all", "failures") + mark(set.requestLog, "full", "no_path"),
		"time":           "%START_TIME%",
		"method":         "%REQ(:METHOD)%",
		"host":           "%REQ(" + originalHost + "?:AUTHORITY):255%",
		"path":           "%PATH(NQ:ORIG_OR_PATH):1024%",
		"protocol":       "%PROTOCOL%",
		"status":         "%RESPONSE_CODE%",
		"flags":          "%RESPONSE_FLAGS%",
		"detail":         "%RESPONSE_CODE_DETAILS%",
		"failure":        "%UPSTREAM_TRANSPORT_FAILURE_REASON%",
		"route":          nameOfRoute,
		"caller":         nameOfCaller,
		"product":        "%UPSTREAM_CLUSTER%",
		"upstream":       "%UPSTREAM_HOST%",
		"attempts":       "%UPSTREAM_REQUEST_ATTEMPT_COUNT%",
		"client":         "%DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT%",
		"user_agent":     "%REQ(USER-AGENT):255%",
		"bytes_in":       "%BYTES_RECEIVED%",
		"bytes_out":      "%BYTES_SENT%",
		"duration_ms":    "%DURATION%",
		// When what had happened, in microseconds from the request's first byte on.
		"received_us":   "%COMMON_DURATION(DS_RX_BEG:DS_RX_END:us)%",
		"forwarded_us":  "%COMMON_DURATION(DS_RX_BEG:US_TX_BEG:us)%",
		"first_byte_us": "%COMMON_DURATION(DS_RX_BEG:US_RX_BEG:us)%",
		"answered_us":   "%COMMON_DURATION(DS_RX_BEG:US_RX_END:us)%",
		"total_us":      "%COMMON_DURATION(DS_RX_BEG:DS_TX_END:us)%",
	}
	if listener != config.Gateway { // which most are for
		fields["listener"] = listener
	}
	if set.grpc {
		fields["grpc_status"] = "%GRPC_STATUS_NUMBER%"
	}
	if traced {
		fields["trace_id"] = "%TRACE_ID%"
	}
	if set.shadows {
		fields["would_refuse"] = "%FILTER_STATE(wasm." + edgeapi.WouldState + ":PLAIN)%"
	}
	format := object(fields)
	// A request too broken to be given an id is known by the one that its answer has.
	format.Fields["request_id"] = structpb.NewStringValue(`%COALESCE({"operators":["STREAM_ID",{"command":"RESP","param":"x-request-id"}]})%`)
	return format
}

// mark is the letter of a setting: empty is the first of them that is said below.
func mark(setting, all, some string) string {
	switch {
	case setting == "off":
		return edgeapi.MarkNone
	case setting == all, setting == "" && all == "full":
		return edgeapi.MarkAll
	case setting == some, setting == "":
		return edgeapi.MarkSome
	}
	return edgeapi.MarkNone
}

// sampled lets a share of requests through: those out of a million that the agent
// has last set, and all of them until it has.
func sampled(runtimeKey string) *accesslog.AccessLogFilter {
	return &accesslog.AccessLogFilter{FilterSpecifier: &accesslog.AccessLogFilter_RuntimeFilter{RuntimeFilter: &accesslog.RuntimeFilter{
		RuntimeKey: runtimeKey, PercentSampled: &percent.FractionalPercent{Numerator: edgeapi.WholeSample, Denominator: percent.FractionalPercent_MILLION},
	}}}
}

func eitherOf(filters ...*accesslog.AccessLogFilter) *accesslog.AccessLogFilter {
	return &accesslog.AccessLogFilter{FilterSpecifier: &accesslog.AccessLogFilter_OrFilter{OrFilter: &accesslog.OrFilter{Filters: filters}}}
}
