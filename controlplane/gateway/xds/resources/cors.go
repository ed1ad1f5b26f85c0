package resources

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	route "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	cors "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/cors/v3"
	hcm "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	matcher "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/filters/limits/ratelimit"
)

// The CORS filter is in the chain twice, and off but where a route turns it on.
// Before the edge filter it lets pages of other origins read what comes back,
// refusals of the edge included. Behind it, on routes of their own, it answers
// the questions that browsers ask beforehand without a credential; so those are
// limited like any other request, and their answers have the headers of all.
const (
	CORSFilter      = "sluice.cors"
	PreflightFilter = "sluice.preflight"
)

const defaultCORSAge = 10 * time.Minute

var (
	defaultCORSHeaders = []string{"authorization", "content-type", "idempotency-key", "if-match", "if-none-match"}
	defaultCORSExpose  = []string{"etag", "location", "retry-after", "x-request-id",
		ratelimit.LimitHeader, ratelimit.RemainingHeader, ratelimit.ResetHeader, ratelimit.WindowHeader}
)

// What pages need besides to pay on routes that have a price. Public payment
// clients send the header of a CORS answer in their request.
var (
	paymentHeaders = []string{"x-payment", "payment-signature", "access-control-expose-headers"}
	paymentExpose  = []string{"x-payment-response", "payment-required", "payment-response"}
)

// corsFilter is one of the two filters.
func corsFilter(name string) *hcm.HttpFilter {
	return &hcm.HttpFilter{Name: name, Disabled: true, ConfigType: &hcm.HttpFilter_TypedConfig{TypedConfig: pack(&cors.Cors{})}}
}

// corsOf is what r, or its product, lets other origins do; nil: nothing.
func (s *Set) corsOf(r config.Route) *config.CORS {
	c := r.CORS
	if c == nil && r.Product != "" {
		c = s.products[r.Product].CORS
	}
	if c == nil || len(c.Origins) == 0 {
		return nil
	}
	return c
}

// turnedOn turns a filter on for one route.
func turnedOn(p *cors.CorsPolicy) *anypb.Any { return pack(&route.FilterConfig{Config: pack(p)}) }

// corsPolicy is c for r; keyHeaders may hold a key too.
func corsPolicy(c config.CORS, r config.Route, keyHeaders []string) *cors.CorsPolicy {
	methods, headers, expose := r.Matches(), or(c.Headers, with(defaultCORSHeaders, keyHeaders)), or(c.Expose, defaultCORSExpose)
	if r.Price != "" {
		headers, expose = slices.Concat(headers, paymentHeaders), slices.Concat(expose, paymentExpose)
	}
	if len(methods) == 0 {
		methods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}
	}
	p := &cors.CorsPolicy{
		AllowMethods:  strings.Join(methods, ", "),
		AllowHeaders:  strings.Join(headers, ", "),
		ExposeHeaders: strings.Join(expose, ", "),
		MaxAge:        strconv.Itoa(int(c.MaxAge.Or(defaultCORSAge).Seconds())),
	}
	if c.Credentials {
		p.AllowCredentials = wrapperspb.Bool(true)
	}
	for _, o := range c.Origins {
		p.AllowOriginStringMatch = append(p.AllowOriginStringMatch, originMatch(o))
	}
	return p
}

func or(list, def []string) []string {
	if len(list) == 0 {
		return def
	}
	return list
}

func originMatch(o string) *matcher.StringMatcher {
	before, after, wild := strings.Cut(o, "*")
	switch {
	case !wild:
		return &matcher.StringMatcher{MatchPattern: &matcher.StringMatcher_Exact{Exact: o}}
	case o == "*":
		return safeRegex(".*")
	default:
		return safeRegex(regexp.QuoteMeta(before) + "[a-z0-9.-]+" + regexp.QuoteMeta(after))
	}
}

func safeRegex(expr string) *matcher.StringMatcher {
	return &matcher.StringMatcher{MatchPattern: &matcher.StringMatcher_SafeRegex{SafeRegex: &matcher.RegexMatcher{Regex: expr}}}
}

// preflight is the route for what browsers ask before they call r. An origin
// that may not gets an answer without the headers that would allow it. The
// filter answers all: it wants a route to somewhere, and nothing goes there.
func (s *Set) preflight(r config.Route, p config.Pattern, c config.CORS) *route.Route {
	m := match(r, p)
	m.Headers = append(m.Headers, header("origin", nil))
	var asked *matcher.StringMatcher
	if methods := r.Matches(); len(methods) > 0 {
		asked = safeRegex(strings.Join(methods, "|"))
	}
	m.Headers = append(m.Headers, header("access-control-request-method", asked))
	policy := s.withGRPCWeb(corsPolicy(c, r, s.Policy.KeyHeaders), r)
	policy.ForwardNotMatchingPreflights = wrapperspb.Bool(false)
	return &route.Route{
		Name: config.Preflight, Match: m, Metadata: s.opts.named(config.Preflight),
		Action: &route.Route_Route{Route: &route.RouteAction{
			ClusterSpecifier:            &route.RouteAction_Cluster{Cluster: PreflightFilter},
			ClusterNotFoundResponseCode: route.RouteAction_NOT_FOUND,
		}},
		TypedPerFilterConfig: map[string]*anypb.Any{PreflightFilter: turnedOn(policy)},
	}
}

// header asks for a header; value nil: that it is there.
func header(name string, value *matcher.StringMatcher) *route.HeaderMatcher {
	h := &route.HeaderMatcher{Name: name, HeaderMatchSpecifier: &route.HeaderMatcher_PresentMatch{PresentMatch: true}}
	if value != nil {
		h.HeaderMatchSpecifier = &route.HeaderMatcher_StringMatch{StringMatch: value}
	}
	return h
}

// headerMatch asks for what m says.
func headerMatch(m config.HeaderMatch) *route.HeaderMatcher {
	exact := func(s string) *matcher.StringMatcher {
		return &matcher.StringMatcher{MatchPattern: &matcher.StringMatcher_Exact{Exact: s}}
	}
	switch {
	case m.Absent:
		return &route.HeaderMatcher{Name: m.Name, HeaderMatchSpecifier: &route.HeaderMatcher_PresentMatch{PresentMatch: false}}
	case m.Value != "":
		return header(m.Name, exact(m.Value))
	case m.Prefix != "":
		return header(m.Name, &matcher.StringMatcher{MatchPattern: &matcher.StringMatcher_Prefix{Prefix: m.Prefix}})
	case m.Regex != "":
		return header(m.Name, safeRegex(m.Regex))
	default:
		return header(m.Name, nil)
	}
}

// hostMatch asks for one of a route's hosts, whatever the port. Envoy has hosts as groups
// of routes, each of which would need a copy of the routes for all hosts.
func hostMatch(r config.Route) *route.HeaderMatcher {
	return header(":authority", safeRegex(r.HostsRegexp()))
}

// keepOriginal keeps what a rewrites of a request for the access log; Envoy adds headers
// before it rewrites.
func keepOriginal(a *route.RouteAction) (list []*core.HeaderValueOption) {
	if a.GetHostRewriteLiteral() != "" {
		list = append(list, replaceHeader(originalHost, "%REQ(:AUTHORITY)%"))
	}
	if a.RegexRewrite != nil {
		list = append(list, replaceHeader(originalPath, "%REQ(:PATH)%"))
	}
	return list
}

// rewrite makes a send what w says in place of the path and host asked for.
func rewrite(a *route.RouteAction, p config.Pattern, w *config.Rewrite, product config.Product) {
	host := product.Host
	if w != nil {
		host = cmp.Or(w.Host, host)
	}
	if host != "" {
		a.HostRewriteSpecifier = &route.RouteAction_HostRewriteLiteral{HostRewriteLiteral: host}
	}
	if w == nil {
		return
	}
	from, to, ok := pathRewrite(p, w.Path, w.Prefix)
	if !ok {
		return
	}
	a.RegexRewrite = &matcher.RegexMatchAndSubstitute{Pattern: &matcher.RegexMatcher{Regex: from}, Substitution: to}
}
