package resources

import (
	"maps"
	"slices"
	"strings"

	core "github.com/cncf/xds/go/xds/core/v3"
	tree "github.com/cncf/xds/go/xds/type/matcher/v3"
	route "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	matcher "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/proto"
	"sluice.dev/sluice/controlplane/gateway/config"
)

const (
	// treeSegments is how much of a path a branch of the tree tells apart:
	// /v1/streams, not /v1.
	treeSegments = 2
	// treeFrom is how many routes a table must have before a tree pays: Envoy
	// tries routes one after the other, and each costs 20 to 100 ns.
	treeFrom = 12
	// treeCopies bounds how often routes may stand in several branches, as a
	// multiple of their number. Beyond that the list stays a list.
	treeCopies = 4
)

// branched is a route with the text that every path it matches begins with, and
// the method that it is for: GET is HEAD too, and none is all. The route itself
// does not ask for the method.
type branched struct {
	start, method string
	route         *route.Route
	asked         map[string]*route.Route // what asking has made of it; nil: that is not kept
	share         config.Share            // of callers who stick to what they have met; zero: all
}

// ofMethods returns the routes, in their order, that ask for their methods.
func ofMethods(routes []branched) []branched {
	var out []branched
	for _, r := range routes {
		switch r.method {
		case "":
			out = append(out, r)
		case "GET":
			out = append(out, r.asking("GET"), r.asking("HEAD"))
		default:
			out = append(out, r.asking(r.method))
		}
	}
	return out
}

// asking returns a copy of r that asks for a method before all else.
func (r branched) asking(method string) branched {
	if known := r.asked[method]; known != nil {
		r.route = known
		return r
	}
	r.route = proto.CloneOf(r.route)
	if r.asked != nil {
		r.asked[method] = r.route
	}
	r.route.Match.Headers = slices.Insert(r.route.Match.Headers, 0, headerMatch(config.HeaderMatch{Name: ":method", Value: method}))
	return r
}

// readsFirst parts a table in two, for requests that read and for all others,
// where most routes are for one of them. In the first no route asks for GET or
// HEAD; otherwise each that is for GET would be there twice.
func (l *routeLists) readsFirst(table string, routes []branched) *tree.Matcher_OnMatch {
	var reads, others []branched
	for _, r := range routes {
		switch r.method {
		case "GET":
			reads = append(reads, r)
		case "HEAD":
			reads = append(reads, r.asking("HEAD"))
		case "":
			reads, others = append(reads, r), append(others, r)
		default:
			others = append(others, r.asking(r.method))
		}
	}
	if len(reads)+len(others) > len(routes)+len(routes)/2 {
		return l.buildMatcher(table, ofMethods(routes))
	}
	return &tree.Matcher_OnMatch{OnMatch: &tree.Matcher_OnMatch_Matcher{Matcher: &tree.Matcher{
		MatcherType: &tree.Matcher_MatcherList_{MatcherList: &tree.Matcher_MatcherList{Matchers: []*tree.Matcher_MatcherList_FieldMatcher{
			{Predicate: anyOf(equals(":method", "GET"), equals(":method", "HEAD")), OnMatch: l.buildMatcher(table+" reads", reads)},
		}}},
		OnNoMatch: l.buildMatcher(table+" others", others),
	}}}
}

// start returns the text that all paths of p begin with.
func start(p config.Pattern) string {
	i := slices.IndexFunc(p, func(s config.Segment) bool { return s.Kind != config.Literal })
	if i < 0 {
		return strings.TrimSuffix(literal(p), "/")
	}
	return literal(p[:i])
}

func literal(p config.Pattern) string {
	var b strings.Builder
	b.WriteByte('/')
	for _, s := range p {
		b.WriteString(s.Text)
		b.WriteByte('/')
	}
	return b.String()
}

// buildMatcher puts routes, in their order, into a tree that leads to short lists by
// the start of the path, or into one list.
//
// The longest branch that the path begins with is taken, and none other. So
// each branch has, besides its own routes, those with a shorter start: they
// too could match a path under it. Which one does is decided in the list.
func (l *routeLists) buildMatcher(part string, routes []branched) *tree.Matcher_OnMatch {
	branches := map[string]*route.RouteList{}
	for _, r := range routes {
		if b := branchOf(r.start); b != "/" {
			branches[b] = &route.RouteList{}
		}
	}
	names := slices.Sorted(maps.Keys(branches))
	all, copies := &route.RouteList{}, 0
	for _, r := range routes {
		if r.share.To > 0 {
			l.shares[r.route] = r.share
		}
		all.Routes = append(all.Routes, r.route)
		for _, b := range under(names, r.start) {
			branches[b].Routes = append(branches[b].Routes, r.route)
			copies++
		}
	}
	if len(routes) < treeFrom || copies > treeCopies*len(routes) {
		return l.encoded(part, all)
	}
	return &tree.Matcher_OnMatch{OnMatch: &tree.Matcher_OnMatch_Matcher{Matcher: l.byPath(part, branches, rest(routes))}}
}

// under returns the branches, of a sorted list, in which a route with the given
// start stands: its own, and those that begin with it.
func under(names []string, start string) []string {
	own := branchOf(start)
	from, _ := slices.BinarySearch(names, start)
	to := from
	for to < len(names) && strings.HasPrefix(names[to], start) {
		to++
	}
	if i, ok := slices.BinarySearch(names, own); ok && (i < from || i >= to) {
		return append([]string{own}, names[from:to]...)
	}
	return names[from:to]
}

// rest is the list for paths that are under no branch: only routes whose start
// is shorter than a branch match them.
func rest(routes []branched) *route.RouteList {
	list := &route.RouteList{}
	for _, r := range routes {
		if branchOf(r.start) == "/" {
			list.Routes = append(list.Routes, r.route)
		}
	}
	return list
}

// branchOf cuts a start after treeSegments segments.
func branchOf(start string) string {
	at := 0
	for range treeSegments {
		i := strings.IndexByte(start[at+1:], '/')
		if i < 0 {
			return start
		}
		at += 1 + i
	}
	return start[:at]
}

func (l *routeLists) byPath(part string, branches map[string]*route.RouteList, rest *route.RouteList) *tree.Matcher {
	m := &tree.Matcher_MatcherTree_MatchMap{Map: map[string]*tree.Matcher_OnMatch{}}
	for _, b := range slices.Sorted(maps.Keys(branches)) {
		m.Map[b] = l.encoded(part+" "+b, branches[b])
	}
	return &tree.Matcher{
		MatcherType: &tree.Matcher_MatcherTree_{MatcherTree: &tree.Matcher_MatcherTree{
			Input:    headerInput(":path"),
			TreeType: &tree.Matcher_MatcherTree_PrefixMatchMap{PrefixMatchMap: m},
		}},
		OnNoMatch: l.encoded(part, rest),
	}
}

// routeLists are the lists of routes of a set, by their places in it, encoded.
type routeLists struct {
	was, now    map[string]encodedList
	shares      map[*route.Route]config.Share // of routes whose callers stick
	credentials []string                      // headers that callers are known by
}

// encodedList is a list of routes with what it was encoded as.
type encodedList struct {
	routes []*route.Route
	on     *tree.Matcher_OnMatch
}

// encoded is the list at some place, encoded. One that has the same routes as before is
// not encoded again.
func (l *routeLists) encoded(place string, list *route.RouteList) *tree.Matcher_OnMatch {
	p, ok := l.was[place]
	if !ok || !slices.Equal(p.routes, list.Routes) {
		p = encodedList{list.Routes, l.bucketed(list)}
	}
	l.now[place] = p
	return p.on
}

func encode(list *route.RouteList) *tree.Matcher_OnMatch {
	return &tree.Matcher_OnMatch{OnMatch: &tree.Matcher_OnMatch_Action{Action: typed("routes", list)}}
}

// headerInput is the value of a request's header, several of one name joined by commas.
func headerInput(name string) *core.TypedExtensionConfig {
	return typed(strings.TrimPrefix(name, ":"), &matcher.HttpRequestHeaderMatchInput{HeaderName: name})
}

func typed(name string, m proto.Message) *core.TypedExtensionConfig {
	return &core.TypedExtensionConfig{Name: name, TypedConfig: pack(m)}
}
