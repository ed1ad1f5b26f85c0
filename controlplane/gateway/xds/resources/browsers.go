package resources

import (
	"slices"
	"strings"

	accesslog "github.com/envoyproxy/go-control-plane/envoy/config/accesslog/v3"
	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	route "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	matcher "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/platform/http/webpage"
)

// noRoute is true of requests that no route of the document takes.
const noRoute = `xds.route_name in ["` + config.Unmapped + `", "` + config.Absent + `"]`

// browserMapper gives people who open an address that no route takes, such as /, a page
// in place of the error envelope. Status, headers and what is counted stay. Envoy asks it for answers that it or a filter
// makes, and for no others, so that requests which are let through cost nothing more.
func (s *Set) browserMapper() *hcm.ResponseMapper {
	headers := append(s.replyHeaders(), defaultHeader("vary", "accept"))
	for _, h := range [][2]string{{"content-security-policy", webpage.Allow{Styles: []string{browserStyle}}.Policy()}, {"x-content-type-options", "nosniff"}, {"referrer-policy", "no-referrer"}} {
		headers = append(headers, defaultHeader(h[0], escapedFormat(h[1])))
	}
	return &hcm.ResponseMapper{
		Filter:       and(acceptsHTML(), celFilter(noRoute)),
		HeadersToAdd: headers,
		BodyFormatOverride: &core.SubstitutionFormatString{
			ContentType: "text/html; charset=utf-8",
			Format: &core.SubstitutionFormatString_TextFormatSource{TextFormatSource: &core.DataSource{
				Specifier: &core.DataSource_InlineString{InlineString: browserPage(s.settings.docs)},
			}},
		},
	}
}

// acceptsHTML is true of what browsers send when somebody opens an address. Clients of APIs
// send */*, or nothing.
func acceptsHTML() *accesslog.AccessLogFilter {
	return &accesslog.AccessLogFilter{FilterSpecifier: &accesslog.AccessLogFilter_HeaderFilter{HeaderFilter: &accesslog.HeaderFilter{Header: &route.HeaderMatcher{
		Name: "accept", HeaderMatchSpecifier: header("accept", &matcher.StringMatcher{MatchPattern: &matcher.StringMatcher_Contains{Contains: "text/html"}}).HeaderMatchSpecifier,
	}}}}
}

// servesDocs reports whether a document leads to the documentation, as the routes that are
// built in do.
func servesDocs(d config.Document) bool {
	return slices.ContainsFunc(d.Routes, func(r config.Route) bool {
		return r.Path == "/docs/*" && r.Listener != config.Runtime && slices.Contains(r.Auth, "none")
	})
}

// escapedFormat is a text that Envoy takes as it stands, where % begins an operator.
func escapedFormat(s string) string { return strings.ReplaceAll(s, "%", "%%") }

// The page, which has what app.css of webpage says of such pages.
const browserStyle = `:root{color-scheme:light dark}body{margin:0;display:grid;place-items:center;min-height:100vh;font:16px/1.6 system-ui,sans-serif;background:#f4f5f2;color:#1c2024}` +
	`main{max-width:420px;margin:16px;padding:32px;border:1px solid #dcdfd8;border-radius:16px;background:#fff}h1{margin:0 0 12px;font-size:24px;line-height:1.25}` +
	`ul{padding-left:20px}a{color:#0b6b58}code{font-size:14px;overflow-wrap:anywhere}.dim{color:#565e65;font-size:14px}` +
	`@media(prefers-color-scheme:dark){body{background:#101413;color:#e8ecea}main{background:#181f1d;border-color:#2c3734}a{color:#5cd3b4}.dim{color:#a3adaa}}`

// browserPage is the page; links lead to what the gateway serves.
func browserPage(docs bool) string {
	links := `<p>Whoever runs it knows which addresses there are.</p>`
	if docs {
		links = `<ul><li><a href="/docs">Documentation</a></li><li><a href="/docs/reference">API reference</a></li>` +
			`<li><a href="/docs/troubleshooting#403-route-not-mapped">Why there is nothing here</a></li></ul>`
	}
	return escapedFormat(`<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>API gateway: no route here</title><style>`+
		browserStyle+`</style></head><body><main><h1>This is an API gateway</h1><p>No route takes this address.</p>`+links+`<p class="dim">Request <code>`) +
		`%RESP(x-request-id)%` + escapedFormat(`</code></p></main></body></html>`) + "\n"
}
