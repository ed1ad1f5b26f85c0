package resources

import (
	accesslog "github.com/envoyproxy/go-control-plane/envoy/config/accesslog/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	stream "github.com/envoyproxy/go-control-plane/envoy/extensions/access_loggers/stream/v3"
	cel "github.com/envoyproxy/go-control-plane/envoy/extensions/formatter/cel/v3"
)

// nameOfRoute is the name of the route without its revision. Metadata of each route
// would say it too, but those of 2,000 cost an edge 6 ms of each change of one.
const nameOfRoute = "%CEL(xds.route_name.split('@')[0])%"

// accessLog writes one JSON line a request to standard output: all, none, or
// the failed ones. A line never has a query, a header of the caller's or a
// credential in it. traced adds the id of the trace.
func accessLog(which string, traced bool) []*accesslog.AccessLog {
	if which == "off" {
		return nil
	}
	fields := map[string]string{
		"time":        "%START_TIME%",
		"request_id":  "%STREAM_ID%",
		"method":      "%REQ(:METHOD)%",
		"path":        "%PATH(NQ:ORIG_OR_PATH)%",
		"status":      "%RESPONSE_CODE%",
		"flags":       "%RESPONSE_FLAGS%",
		"detail":      "%RESPONSE_CODE_DETAILS%",
		"duration_ms": "%DURATION%",
		"route":       nameOfRoute,
		"product":     "%UPSTREAM_CLUSTER%",
		"upstream":    "%UPSTREAM_HOST%",
		"client":      "%DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT%",
		"bytes_in":    "%BYTES_RECEIVED%",
		"bytes_out":   "%BYTES_SENT%",
	}
	if traced {
		fields["trace_id"] = "%TRACE_ID%"
	}
	l := &accesslog.AccessLog{
		Name: "envoy.access_loggers.stdout",
		ConfigType: &accesslog.AccessLog_TypedConfig{TypedConfig: pack(&stream.StdoutAccessLog{
			AccessLogFormat: &stream.StdoutAccessLog_LogFormat{LogFormat: &core.SubstitutionFormatString{
				OmitEmptyValues: true,
				Formatters:      []*core.TypedExtensionConfig{extension("envoy.formatter.cel", &cel.Cel{CelConfig: &core.CelExpressionConfig{EnableStringFunctions: true}})},
				Format:          &core.SubstitutionFormatString_JsonFormat{JsonFormat: object(fields)},
			}},
		})},
	}
	if which != "all" {
		l.Filter = compareStatus(accesslog.ComparisonFilter_GE, 400)
	}
	return []*accesslog.AccessLog{l}
}
