package resources

import (
	accesslog "github.com/envoyproxy/go-control-plane/envoy/config/accesslog/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	cel "github.com/envoyproxy/go-control-plane/envoy/extensions/access_loggers/filters/cel/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/types/known/structpb"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/filters/limits/ratelimit"
)

// replyStatuses are the statuses that Envoy itself answers; decision.OfReply has their codes.
var replyStatuses = []int{400, 403, 404, 405, 408, 413, 426, 429, 431, 500, 501, 502, 503, 504}

// madeByEnvoy is true of answers that Envoy makes itself. The edge filter's own
// answers pass here too, and already have a content type.
const madeByEnvoy = `!("content-type" in response.headers)`

// localReplies gives each answer of Envoy itself the error envelope, the
// request id and the rate-limit headers, like any other answer has.
func (s *Set) localReplies() *hcm.LocalReplyConfig {
	c := &hcm.LocalReplyConfig{Mappers: append(s.grpcReplies(), s.upgradeMapper(), s.browserMapper())}
	for _, status := range replyStatuses {
		c.Mappers = append(c.Mappers, s.replyMapper(uint32(status), decision.OfReply(status)))
	}
	return c
}

func (s *Set) replyMapper(status uint32, code decision.Code) *hcm.ResponseMapper {
	m := &hcm.ResponseMapper{
		Filter:       and(statusIs(status), celFilter(madeByEnvoy)),
		HeadersToAdd: s.replyHeaders(),
		BodyFormatOverride: &core.SubstitutionFormatString{
			ContentType: "application/json",
			Format:      &core.SubstitutionFormatString_JsonFormat{JsonFormat: s.envelope(code)},
		},
	}
	switch status {
	case 503:
		m.HeadersToAdd = append(m.HeadersToAdd, defaultHeader("retry-after", "1"))
	case 429:
		m.HeadersToAdd = append(m.HeadersToAdd, defaultHeader("retry-after", "60"))
	}
	return m
}

// replyHeaders are added where the answer lacks them. The id is the request's
// own if it got one; a request too broken to be given one is known by a new
// id. The body then shows the id that the header has: the operator for a new
// one gives another at each use.
func (s *Set) replyHeaders() []*core.HeaderValueOption {
	all := ratelimit.Result{Policy: "address", Limit: s.settings.anonymous, Remaining: s.settings.anonymous}
	headers := []*core.HeaderValueOption{
		defaultHeader("x-request-id", `%COALESCE({"operators":["STREAM_ID","UNIQUE_ID"]})%`),
	}
	for _, h := range all.Headers(0) {
		if h[0] == ratelimit.ResetHeader {
			h[1] = "%EMIT_TIME(%s)%"
		}
		headers = append(headers, defaultHeader(h[0], h[1]))
	}
	return append(headers, defaultHeader(ratelimit.WindowHeader, ratelimit.WindowValue))
}

func (s *Set) envelope(code decision.Code) *structpb.Struct {
	return &structpb.Struct{Fields: map[string]*structpb.Value{
		"error": structpb.NewStructValue(object(map[string]string{
			"code":              string(code),
			"message":           decision.Lookup(code).Message,
			"request_id":        "%RESP(x-request-id)%",
			"documentation_url": decision.DocsURL(s.opts.DocsBase, code),
		})),
	}}
}

func statusIs(status uint32) *accesslog.AccessLogFilter {
	return compareStatus(accesslog.ComparisonFilter_EQ, status)
}

func compareStatus(op accesslog.ComparisonFilter_Op, status uint32) *accesslog.AccessLogFilter {
	return &accesslog.AccessLogFilter{FilterSpecifier: &accesslog.AccessLogFilter_StatusCodeFilter{StatusCodeFilter: &accesslog.StatusCodeFilter{
		Comparison: &accesslog.ComparisonFilter{Op: op, Value: &core.RuntimeUInt32{DefaultValue: status, RuntimeKey: "sluice.not_set"}},
	}}}
}

func celFilter(expr string) *accesslog.AccessLogFilter {
	return &accesslog.AccessLogFilter{FilterSpecifier: &accesslog.AccessLogFilter_ExtensionFilter{ExtensionFilter: &accesslog.ExtensionFilter{
		Name:       "envoy.access_loggers.extension_filters.cel",
		ConfigType: &accesslog.ExtensionFilter_TypedConfig{TypedConfig: pack(&cel.ExpressionFilter{Expression: expr})},
	}}}
}

func and(filters ...*accesslog.AccessLogFilter) *accesslog.AccessLogFilter {
	return &accesslog.AccessLogFilter{FilterSpecifier: &accesslog.AccessLogFilter_AndFilter{AndFilter: &accesslog.AndFilter{Filters: filters}}}
}
