package resources

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	tree "github.com/cncf/xds/go/xds/type/matcher/v3"
	route "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/proto"
	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/filters/policy"
)

// flat returns every route of a virtual host once; listed in the order in which
// a plain list would have them is not promised. Routes for GET are those for HEAD
// too where the table is in two parts.
func flat(t *testing.T, vh *route.VirtualHost) []*route.Route {
	t.Helper()
	reads, others := partsOf(vh.Matcher.OnNoMatch)
	if reads == nil {
		return flatPart(t, others)
	}
	list := flatPart(t, reads)
	for _, r := range flatPart(t, others) {
		if !slices.ContainsFunc(list, func(other *route.Route) bool { return proto.Equal(r, other) }) {
			list = append(list, r)
		}
	}
	return list
}

// partsOf returns the parts of a table: for GET and HEAD, and for other methods.
// The first is nil when it has one part.
func partsOf(on *tree.Matcher_OnMatch) (reads, others *tree.Matcher_OnMatch) {
	if m := on.GetMatcher().GetMatcherList(); m != nil {
		return m.Matchers[0].OnMatch, on.GetMatcher().OnNoMatch
	}
	return nil, on
}

// partFor returns the part of a table that requests with a method go to.
func partFor(on *tree.Matcher_OnMatch, method string) *tree.Matcher_OnMatch {
	reads, others := partsOf(on)
	if reads != nil && (method == "GET" || method == "HEAD") {
		return reads
	}
	return others
}

func flatPart(t *testing.T, on *tree.Matcher_OnMatch) []*route.Route {
	t.Helper()
	branches := branchesOf(on)
	if branches == nil {
		return routesOf(t, on)
	}
	all := routesOf(t, on.GetMatcher().OnNoMatch)
	for _, m := range branches {
		all = append(all, routesOf(t, m)...)
	}
	return all
}

// branchesOf returns the branches of a tree, and nil of a list.
func branchesOf(on *tree.Matcher_OnMatch) map[string]*tree.Matcher_OnMatch {
	return on.GetMatcher().GetMatcherTree().GetPrefixMatchMap().GetMap()
}

func routesOf(t *testing.T, m *tree.Matcher_OnMatch) []*route.Route {
	t.Helper()
	var l route.RouteList
	if err := m.GetAction().GetTypedConfig().UnmarshalTo(&l); err != nil {
		t.Fatal(err)
	}
	return l.Routes
}

// choose does what Envoy does with a request: the part for its method, the
// longest branch that its path begins with, then that one's list.
func choose(t *testing.T, on *tree.Matcher_OnMatch, method, path string) string {
	t.Helper()
	on = partFor(on, method)
	at, longest := on, ""
	if m := on.GetMatcher(); m != nil {
		at = m.OnNoMatch
	}
	for b, m := range branchesOf(on) {
		if strings.HasPrefix(path, b) && len(b) > len(longest) {
			at, longest = m, b
		}
	}
	return first(routesOf(t, at), method, path)
}

// first is the name of the first route of a list that matches.
func first(list []*route.Route, method, path string) string {
	for _, r := range list {
		m := r.Match
		asked := slices.ContainsFunc(m.Headers, func(h *route.HeaderMatcher) bool {
			return h.Name == ":method" && h.GetStringMatch().GetExact() != method
		})
		switch {
		case asked:
		case m.GetPath() != "" && m.GetPath() == path,
			m.GetPrefix() != "" && strings.HasPrefix(path, m.GetPrefix()),
			m.GetSafeRegex() != nil && regexp.MustCompile(`^(?:`+m.GetSafeRegex().Regex+`)$`).MatchString(path):
			name, _, _ := strings.Cut(r.Name, "@")
			return name
		}
	}
	return ""
}

// bare is a set of d of which the routes alone are compiled; they have no revisions.
func bare(t *testing.T, d config.Document) *Set {
	t.Helper()
	s := &Set{Policy: &policy.Policy{}, doc: d, keys: map[string]string{}, made: map[string]*made{}, lists: routeLists{now: map[string]encodedList{}}, ends: Options{}.catchAll()}
	for _, r := range d.Routes {
		s.keys[r.Name] = r.Name
	}
	if err := s.makeRoutes(nil, nil); err != nil {
		t.Fatal(err)
	}
	return s
}

// The tree chooses the route that trying all of them in order would.
func TestTreeChoosesAsAListWould(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	words := []string{"v1", "a", "ab", "abc", "{x}", "b", "c"}
	pick := func() string {
		var b strings.Builder
		for range 1 + random.IntN(4) {
			b.WriteString("/" + words[random.IntN(len(words))])
		}
		return b.String()
	}
	methods := [][]string{nil, nil, {"GET"}, {"GET"}, {"GET", "HEAD"}, {"HEAD"}, {"POST"}, {"POST", "GET"}}
	trees, parts := 0, 0
	for range 200 {
		d := config.Document{Products: []config.Product{{Name: "p"}}}
		for i := range 3 + random.IntN(20) {
			path := pick()
			if random.IntN(5) == 0 {
				path += "/*"
			}
			d.Routes = append(d.Routes, config.Route{Name: fmt.Sprintf("r%d", i), Path: path, Product: "p", Methods: methods[random.IntN(len(methods))]})
		}
		s := bare(t, d)
		sorted := append(s.ordered(config.Gateway), s.ends[config.Gateway]...)
		on, list := s.lists.readsFirst("table", sorted), []*route.Route{}
		for _, b := range ofMethods(sorted) {
			list = append(list, b.route)
		}
		reads, others := partsOf(on)
		if reads != nil {
			parts++
		}
		if branchesOf(others) != nil || branchesOf(reads) != nil {
			trees++
		}
		for range 50 {
			path := strings.ReplaceAll(pick(), "{x}", "z") + []string{"", "", "/", "d"}[random.IntN(4)]
			method := []string{"GET", "HEAD", "POST", "PUT"}[random.IntN(4)]
			if got, want := choose(t, on, method, path), first(list, method, path); got != want {
				t.Fatalf("%s %s goes to %q, want %q, of %+v", method, path, got, want, d.Routes)
			}
		}
	}
	if trees < 50 || parts < 50 {
		t.Errorf("only %d of the tables were trees, and %d had two parts", trees, parts)
	}
}

func TestDefaultTablesAreTreesOfShortLists(t *testing.T) {
	t.Parallel()
	s := build(t, defaults(t), Options{Addresses: addresses})
	on := s.Routes[config.Gateway].VirtualHosts[0].Matcher.OnNoMatch
	reads, others := partsOf(on)
	for _, part := range []*tree.Matcher_OnMatch{reads, others} {
		if len(branchesOf(part)) < 10 {
			t.Errorf("a part has %d branches", len(branchesOf(part)))
		}
		for b, m := range branchesOf(part) {
			if n := len(routesOf(t, m)); n > 20 {
				t.Errorf("%s has %d routes", b, n)
			}
		}
	}
	for path, want := range map[string]string{
		"/health": "health", "/v1/streams": "streams.list", "/v1/streams/a": "streams.get", "/v1/streams/a/embed": "streams.embed",
		"/v1/streamsx": config.Unmapped, "/v1/": config.Unmapped, "/v1": config.Absent, "/": config.Absent, "/healthz": config.Absent,
		"/v1/webhooks/wh_1/test": "webhooks.read", "/docs/errors/x": "docs", "/v1/nothing/here": config.Unmapped,
	} {
		if got := choose(t, on, "GET", path); got != want {
			t.Errorf("%s goes to %s, want %s", path, got, want)
		}
	}
}

// A table in which most routes would stand in most branches stays a list.
func TestTableOfVariablesStaysAList(t *testing.T) {
	t.Parallel()
	d := config.Document{Products: []config.Product{{Name: "p"}}}
	for i := range 40 {
		d.Routes = append(d.Routes,
			config.Route{Name: fmt.Sprintf("v%d", i), Path: fmt.Sprintf("/{x}/v%d", i), Product: "p"},
			config.Route{Name: fmt.Sprintf("l%d", i), Path: fmt.Sprintf("/l%d", i), Product: "p"})
	}
	on := bare(t, d).routeTable(config.Gateway).VirtualHosts[0].Matcher.OnNoMatch
	if on.GetMatcher() != nil || len(routesOf(t, on)) != 83 {
		t.Errorf("%v", on)
	}
	if !slices.ContainsFunc(routesOf(t, on), func(r *route.Route) bool { return r.Name == "l7" }) {
		t.Error("a route is missing")
	}
}
