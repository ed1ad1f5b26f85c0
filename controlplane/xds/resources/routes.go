package resources

import (
	"fmt"
	"slices"
	"strings"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	route "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	matcher "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	"sluice.dev/sluice/controlplane/config"
)

const (
	defaultTimeout     = 30 * time.Second
	defaultStreamIdle  = 5 * time.Minute
	defaultRetries     = 2
	maxDirectBodyBytes = 4096
)

// routeTable returns the routes of one listener, the most specific first, and
// last what is answered when none matches.
func (s *Set) routeTable(listener string) (*route.RouteConfiguration, error) {
	type entry struct {
		route   config.Route
		pattern config.Pattern
	}
	var entries []entry
	for _, r := range s.doc.Routes {
		if r.ListenerName() != listener {
			continue
		}
		p, err := config.ParsePath(r.Path)
		if err != nil {
			return nil, fmt.Errorf("route %s: path %w", r.Name, err)
		}
		entries = append(entries, entry{r, p})
	}
	slices.SortStableFunc(entries, func(a, b entry) int {
		if c := a.pattern.Compare(b.pattern); c != 0 {
			return c
		}
		return methodsRank(a.route) - methodsRank(b.route)
	})
	vh := &route.VirtualHost{Name: "all", Domains: []string{"*"}}
	for _, e := range entries {
		vh.Routes = append(vh.Routes, s.route(e.route, e.pattern))
	}
	vh.Routes = append(vh.Routes, catchAll(listener)...)
	return &route.RouteConfiguration{
		Name:                           listener,
		VirtualHosts:                   []*route.VirtualHost{vh},
		MaxDirectResponseBodySizeBytes: u32(maxDirectBodyBytes),
		// Edges learn of a cluster before the routes to it; should one be
		// missing all the same, the others must not suffer.
		ValidateClusters: wrapperspb.Bool(false),
	}, nil
}

// methodsRank puts a route for all methods behind those that name theirs.
func methodsRank(r config.Route) int {
	if len(r.Methods) == 0 {
		return 1
	}
	return 0
}

// catchAll returns the routes for what no other matches. The edge filter
// answers these by their names; the statuses here are what Envoy would say
// should it ever get as far.
func catchAll(listener string) []*route.Route {
	prefix := func(name, path string, status uint32) *route.Route {
		return &route.Route{
			Name:   name,
			Match:  &route.RouteMatch{PathSpecifier: &route.RouteMatch_Prefix{Prefix: path}},
			Action: &route.Route_DirectResponse{DirectResponse: &route.DirectResponseAction{Status: status}},
		}
	}
	routes := []*route.Route{prefix(config.Absent, "/", 404)}
	if listener == config.Gateway {
		unmapped := prefix(config.Unmapped, "/v1/", 403)
		routes = append([]*route.Route{unmapped}, routes...)
	}
	return routes
}

func (s *Set) route(r config.Route, p config.Pattern) *route.Route {
	out := &route.Route{Name: r.Name, Match: match(r, p)}
	if r.BodyLimit > 0 {
		out.RequestBodyBufferLimit = wrapperspb.UInt64(r.BodyLimit)
	}
	if r.ChatCaps {
		out.TypedPerFilterConfig = map[string]*anypb.Any{ChatCapsFilter: pack(&route.FilterConfig{Config: &anypb.Any{}})}
	}
	if r.Respond != nil {
		respond(out, *r.Respond)
		return out
	}
	if !r.ForwardCredentials {
		out.RequestHeadersToRemove = []string{"authorization"}
	}
	out.Action = &route.Route_Route{Route: s.action(r)}
	return out
}

// respond makes out answer at the edge.
func respond(out *route.Route, r config.Respond) {
	contentType := r.ContentType
	if contentType == "" {
		contentType = "application/json"
	}
	direct := &route.DirectResponseAction{Status: r.Status}
	if r.Body != "" {
		direct.Body = &core.DataSource{Specifier: &core.DataSource_InlineString{InlineString: r.Body}}
		out.ResponseHeadersToAdd = []*core.HeaderValueOption{{
			Header:       &core.HeaderValue{Key: "content-type", Value: contentType},
			AppendAction: core.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD,
		}}
	}
	out.Action = &route.Route_DirectResponse{DirectResponse: direct}
}

// match tries the methods first, as that is the cheaper test, then the path: by
// comparing bytes where the path allows it.
func match(r config.Route, p config.Pattern) *route.RouteMatch {
	m := &route.RouteMatch{}
	prefix, onlyPrefix := p.Prefix()
	switch {
	case p.IsLiteral():
		m.PathSpecifier = &route.RouteMatch_Path{Path: r.Path}
	case onlyPrefix:
		m.PathSpecifier = &route.RouteMatch_Prefix{Prefix: prefix}
	default:
		m.PathSpecifier = &route.RouteMatch_SafeRegex{SafeRegex: regex(p.Regexp())}
	}
	if len(r.Methods) > 0 {
		m.Headers = []*route.HeaderMatcher{{
			Name:                 ":method",
			HeaderMatchSpecifier: &route.HeaderMatcher_StringMatch{StringMatch: oneOf(r.Methods)},
		}}
	}
	return m
}

func oneOf(texts []string) *matcher.StringMatcher {
	if len(texts) == 1 {
		return &matcher.StringMatcher{MatchPattern: &matcher.StringMatcher_Exact{Exact: texts[0]}}
	}
	return &matcher.StringMatcher{MatchPattern: &matcher.StringMatcher_SafeRegex{SafeRegex: regex(strings.Join(texts, "|"))}}
}

func regex(expr string) *matcher.RegexMatcher { return &matcher.RegexMatcher{Regex: expr} }

func (s *Set) action(r config.Route) *route.RouteAction {
	a := &route.RouteAction{
		ClusterSpecifier:            &route.RouteAction_Cluster{Cluster: r.Product},
		ClusterNotFoundResponseCode: route.RouteAction_SERVICE_UNAVAILABLE,
		Timeout:                     durationpb.New(r.Timeout.Or(defaultTimeout)),
		RetryPolicy:                 retries(s.product(r.Product), r.Methods),
	}
	if r.Streaming {
		a.Timeout = durationpb.New(0)
		a.IdleTimeout = durationpb.New(r.Timeout.Or(defaultStreamIdle))
	}
	return a
}

func (s *Set) product(name string) config.Product {
	i := slices.IndexFunc(s.doc.Products, func(p config.Product) bool { return p.Name == name })
	return s.doc.Products[i]
}

// retries lets a request be sent again when the product cannot have seen it;
// also after a reset when doing it twice does no harm.
func retries(p config.Product, methods []string) *route.RetryPolicy {
	n := uint32(defaultRetries)
	if p.Retries != nil {
		n = *p.Retries
	}
	if n == 0 {
		return nil
	}
	on := "connect-failure,refused-stream,reset-before-request"
	if len(methods) > 0 && !slices.ContainsFunc(methods, unsafeMethod) {
		on += ",reset"
	}
	return &route.RetryPolicy{
		RetryOn: on, NumRetries: u32(n),
		RetryBackOff: &route.RetryPolicy_RetryBackOff{
			BaseInterval: durationpb.New(25 * time.Millisecond), MaxInterval: durationpb.New(250 * time.Millisecond),
		},
	}
}

func unsafeMethod(m string) bool { return m != "GET" && m != "HEAD" && m != "OPTIONS" }
