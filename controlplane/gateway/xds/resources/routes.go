package resources

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	route "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	matcher "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/filters/identityheader"
	"sluice.dev/sluice/filters/limits/ratelimit"
)

const (
	defaultTimeout    = config.DefaultTimeout
	defaultStreamIdle = 5 * time.Minute
	defaultRetries    = 2
	// stalled is how long a request may arrive without a byte. On routes that take
	// longer to answer it is a little more than that.
	stalled = 15 * time.Second
	// defaultIdle is that of routes with the default timeout. Listeners have it, so
	// that it does not stand in thousands of routes.
	defaultIdle        = defaultTimeout + time.Second
	maxDirectBodyBytes = 4096
)

// routeTable returns the routes of one listener.
func (s *Set) routeTable(listener string) *route.RouteConfiguration {
	routes := append(s.ordered(listener), s.ends[listener]...)
	vh := &route.VirtualHost{Name: "all", Domains: []string{"*"}, RetryPolicy: usualRetries, Metadata: s.routeText(listener), Matcher: s.onlySingle(s.lists.readsFirst(listener, routes))}
	return &route.RouteConfiguration{
		Name:                           listener,
		VirtualHosts:                   []*route.VirtualHost{vh},
		MaxDirectResponseBodySizeBytes: u32(maxDirectBodyBytes),
		// Products learn from where a client calls. What clients send under this name has been dropped
		// (dropForged): it is there only if the edge filter has put the address in that a service vouches for.
		RequestHeadersToAdd:    []*core.HeaderValueOption{defaultHeader(identityheader.AddressHeader, "%DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT%")},
		RequestHeadersToRemove: []string{identityheader.VoucherHeader},
		ResponseHeadersToAdd:   []*core.HeaderValueOption{replaceHeader(ratelimit.WindowHeader, ratelimit.WindowValue)},
		// Edges learn of a cluster before the routes to it; should one be
		// missing all the same, the others must not suffer.
		ValidateClusters: wrapperspb.Bool(false),
	}
}

// ordered returns the routes of one listener, the most specific first; among
// equals the order of the document counts.
func (s *Set) ordered(listener string) []branched {
	type entry struct {
		*made
		at int
	}
	var entries []entry
	for i, r := range s.doc.Routes {
		if r.ListenerName() == listener {
			entries = append(entries, entry{s.made[r.Name], i})
		}
	}
	slices.SortFunc(entries, func(a, b entry) int {
		if c := a.pattern.Compare(b.pattern); c != 0 {
			return c
		}
		return cmp.Or(a.from.CompareConditions(b.from), methodsRank(a.from)-methodsRank(b.from), a.at-b.at)
	})
	var routes []branched
	for _, e := range entries {
		routes = append(routes, e.routes...)
	}
	return routes
}

// makeRoute compiles one route: each of its methods is a route of its own, and so
// is what browsers ask before they call it.
func (s *Set) makeRoute(r config.Route) (*made, error) {
	p, err := config.ParsePath(r.Path)
	if err != nil {
		return nil, fmt.Errorf("route %s: path %w", r.Name, err)
	}
	m := &made{from: r, key: s.keys[r.Name], pattern: p}
	if m.table, err = config.RequestTable(r, s.products[r.Product].Schemas); err != nil {
		return nil, err
	}
	add := func(method string, out *route.Route) {
		m.routes = append(m.routes, branched{start: start(p), method: method, route: out, asked: map[string]*route.Route{}})
	}
	if c := s.corsOf(r); c != nil {
		add("OPTIONS", s.preflight(r, p, *c))
	}
	for _, method := range methods(r) {
		if len(r.Split) > 0 {
			m.routes = append(m.routes, s.split(r, p, method)...)
			continue
		}
		for _, out := range s.withOrigins(r, s.route(r, p, method)) {
			add(method, out)
		}
	}
	return m, nil
}

// methodsRank puts a route for all methods behind those that name theirs.
func methodsRank(r config.Route) int {
	if len(r.Methods) == 0 {
		return 1
	}
	return 0
}

// catchAll returns, by listener, the routes for what no other matches. The edge filter
// answers these by their names; the statuses here are what Envoy would say
// should it ever get as far. They stand in every list.
func (o Options) catchAll() map[string][]branched {
	absent, tunnel := o.direct(config.Absent, "/", 404), o.direct(config.Absent, "/", 404)
	tunnel.Match = &route.RouteMatch{PathSpecifier: &route.RouteMatch_ConnectMatcher_{ConnectMatcher: &route.RouteMatch_ConnectMatcher{}}}
	last := []branched{{start: "/", route: absent}, {start: "/", route: tunnel}} // CONNECT has no path to match
	unmapped := branched{start: "/v1/", route: o.direct(config.Unmapped, "/v1/", 403)}
	return map[string][]branched{config.Runtime: last, config.Gateway: append([]branched{unmapped}, last...)}
}

// direct answers everything below path by itself.
func (o Options) direct(name, path string, status uint32) *route.Route {
	return &route.Route{
		Name: name, Metadata: o.named(name),
		Match:  &route.RouteMatch{PathSpecifier: &route.RouteMatch_Prefix{Prefix: path}},
		Action: &route.Route_DirectResponse{DirectResponse: &route.DirectResponseAction{Status: status}},
	}
}

// methods returns the methods of r, each of which gets an Envoy route of its
// own: that is cheaper than one with an expression. GET is HEAD too, and "" stands
// for all.
func methods(r config.Route) []string {
	if len(r.Methods) == 0 && r.Retries != nil && !r.Retries.AnyMethod {
		return []string{"GET", "OPTIONS", ""} // those that are safe are sent again for more reasons
	}
	if len(r.Methods) == 0 {
		return []string{""}
	}
	if slices.Contains(r.Methods, "GET") {
		return slices.DeleteFunc(slices.Clone(r.Methods), func(m string) bool { return m == "HEAD" })
	}
	return r.Methods
}

// credentials are the headers that the edge judges and products do not get. A
// payment on a request with a key is among them: it is still good.
var credentials = []string{"authorization", "x-payment", "payment-signature"}

// with is list, and more behind it; list itself when there is no more.
func with(list, more []string) []string {
	if len(more) == 0 {
		return list
	}
	return slices.Concat(list, more)
}

func (s *Set) route(r config.Route, p config.Pattern, method string) *route.Route {
	out := &route.Route{Name: s.keys[r.Name], Match: match(r, p), Metadata: s.opts.named(r.Name)}
	filters := map[string]*anypb.Any{}
	if r.ChecksBody() {
		out.RequestBodyBufferLimit = wrapperspb.UInt64(cmp.Or(r.BodyLimit, config.DefaultChecked))
	}
	if r.Checks() {
		filters[ValidateFilter] = pack(&route.FilterConfig{Config: &anypb.Any{}})
	}
	if r.ChatCaps {
		out.RequestBodyBufferLimit = wrapperspb.UInt64(cmp.Or(r.BodyLimit, config.DefaultHeld))
		filters[ChatCapsFilter] = pack(&route.FilterConfig{Config: &anypb.Any{}})
	}
	if c := s.corsOf(r); c != nil {
		filters[CORSFilter] = turnedOn(s.withGRPCWeb(corsPolicy(*c, r, s.Policy.KeyHeaders), r))
	}
	forCertificates(out, r, filters)
	if r.Compress {
		compress(filters)
	}
	if names := namesOf(r); len(names) > 0 {
		filters[NamesFilter] = pack(notes(names, p))
	}
	if r.Cache != nil {
		filters[CacheFilter] = pack(&route.FilterConfig{Config: &anypb.Any{}})
	}
	switch {
	case r.Respond != nil:
		respond(out, *r.Respond)
	case r.Redirect != nil:
		out.Action = redirect(*r.Redirect, p)
	default:
		s.forward(out, r, p, method, filters)
	}
	if len(filters) > 0 {
		out.TypedPerFilterConfig = filters
	}
	editHeaders(out, r)
	return out
}

// forward makes out go to the product of r.
func (s *Set) forward(out *route.Route, r config.Route, p config.Pattern, method string, filters map[string]*anypb.Any) {
	if !r.ForwardCredentials {
		out.RequestHeadersToRemove = with(with(credentials, s.Policy.KeyHeaders), out.RequestHeadersToRemove)
	}
	a := s.action(r, method)
	if s.products[r.Product].GRPC {
		speakGRPC(a, filters)
	}
	rewrite(a, p, r.Rewrite, s.products[r.Product])
	out.RequestHeadersToAdd = append(keepOriginal(a), out.RequestHeadersToAdd...)
	out.Action = &route.Route_Route{Route: a}
}

// named tells spans the name of a route, without its revision; nil: there are none.
func (o Options) named(name string) *core.Metadata {
	if o.Traces == nil {
		return nil
	}
	return &core.Metadata{FilterMetadata: map[string]*structpb.Struct{"sluice": object(map[string]string{"route": name})}}
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
		out.ResponseHeadersToAdd = []*core.HeaderValueOption{replaceHeader("content-type", contentType)}
	}
	out.Action = &route.Route_DirectResponse{DirectResponse: direct}
}

// match compares hosts and headers, then the path: by bytes where it allows that.
func match(r config.Route, p config.Pattern) *route.RouteMatch {
	m := &route.RouteMatch{}
	prefix, onlyPrefix := p.Prefix()
	switch {
	case p.IsLiteral():
		m.PathSpecifier = &route.RouteMatch_Path{Path: r.Path}
	case onlyPrefix:
		m.PathSpecifier = &route.RouteMatch_Prefix{Prefix: prefix}
	default:
		m.PathSpecifier = &route.RouteMatch_SafeRegex{SafeRegex: &matcher.RegexMatcher{Regex: p.Regexp()}}
	}
	if len(r.Hosts) > 0 {
		m.Headers = append(m.Headers, hostMatch(r))
	}
	for _, h := range r.Headers {
		m.Headers = append(m.Headers, headerMatch(h))
	}
	return m
}

func (s *Set) action(r config.Route, method string) *route.RouteAction {
	timeout := r.Timeout.Or(defaultTimeout)
	a := &route.RouteAction{
		ClusterSpecifier:            &route.RouteAction_Cluster{Cluster: r.Product},
		ClusterNotFoundResponseCode: route.RouteAction_SERVICE_UNAVAILABLE,
		Timeout:                     durationpb.New(timeout),
		RetryPolicy:                 unusual(s.retriesOf(r, method)),
		RequestMirrorPolicies:       s.mirrors(r),
	}
	if idle := max(stalled, timeout+time.Second); idle != defaultIdle {
		a.IdleTimeout = durationpb.New(idle)
	}
	lasting(a, r)
	return a
}
