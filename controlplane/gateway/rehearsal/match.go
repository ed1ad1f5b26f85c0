package rehearsal

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/filters/recording"
)

// matcher finds the route that a recorded request gets under a document, as Envoy does
// by what package resources makes of it: the most specific path first, literals before
// variables before tails, from the left; among routes of one path those for named hosts,
// then those that ask for more headers, then those that name their methods, then the
// order of the document. A route that answers browsers' questions for another stands
// before it.
//
// To find one takes time linear in the segments of the path, where few routes share
// their beginnings; at worst linear in the routes.
type matcher struct {
	listeners map[string]*node
	routes    map[string]config.Route
	summer    *recording.Summer
	hosts     map[string]*regexp.Regexp
}

// node is what follows a part of a path.
type node struct {
	literals map[recording.Sum]*node
	variable *node
	whole    []entry // of routes that end here
	tails    []entry // of routes that have everything below here
}

// entry is one route of Envoy's: a method, or all, of one of the document's.
type entry struct {
	route     *config.Route
	method    string // GET is HEAD too; empty: all
	preflight bool
	hosts     *regexp.Regexp // nil: all
}

// newMatcher returns the matcher of d. summer has made the sums of the records.
func newMatcher(d config.Document, summer *recording.Summer) *matcher {
	m := &matcher{listeners: map[string]*node{config.Gateway: {}, config.Runtime: {}}, routes: map[string]config.Route{}, summer: summer, hosts: map[string]*regexp.Regexp{}}
	products := map[string]config.Product{}
	for _, p := range d.Products {
		products[p.Name] = p
	}
	for _, i := range order(d.Routes) {
		r := d.Routes[i]
		m.routes[r.Name] = r
		if p, err := config.ParsePath(r.Path); err == nil && m.listeners[r.ListenerName()] != nil {
			m.add(m.listeners[r.ListenerName()], p, entriesOf(r, products[r.Product], m.hostsOf(r)))
		}
	}
	return m
}

// order is the order of routes that have the same path.
func order(routes []config.Route) []int {
	list := make([]int, len(routes))
	for i := range list {
		list[i] = i
	}
	slices.SortStableFunc(list, func(a, b int) int {
		return cmp.Or(routes[a].CompareConditions(routes[b]), min(1, len(routes[b].Methods))-min(1, len(routes[a].Methods)))
	})
	return list
}

// entriesOf are the routes of Envoy's that r becomes.
func entriesOf(r config.Route, p config.Product, hosts *regexp.Regexp) (list []entry) {
	cors := r.CORS
	if cors == nil && r.Product != "" {
		cors = p.CORS
	}
	if cors != nil && len(cors.Origins) > 0 {
		list = append(list, entry{&r, "OPTIONS", true, hosts})
	}
	if len(r.Methods) == 0 {
		return append(list, entry{&r, "", false, hosts})
	}
	for _, method := range r.Methods {
		if method != "HEAD" || !slices.Contains(r.Methods, "GET") {
			list = append(list, entry{&r, method, false, hosts})
		}
	}
	return list
}

func (m *matcher) add(n *node, p config.Pattern, list []entry) {
	for i, s := range p {
		switch s.Kind {
		case config.Tail:
			n.tails = append(n.tails, list...)
			return
		case config.Variable:
			if n.variable == nil {
				n.variable = &node{}
			}
			n = n.variable
		default:
			sum := m.summer.Segment(p[i].Text)
			if n.literals == nil {
				n.literals = map[recording.Sum]*node{}
			}
			if n.literals[sum] == nil {
				n.literals[sum] = &node{}
			}
			n = n.literals[sum]
		}
	}
	n.whole = append(n.whole, list...)
}

// hostsOf is the expression that Envoy matches the host of a request with; nil: any.
func (m *matcher) hostsOf(r config.Route) *regexp.Regexp {
	if len(r.Hosts) == 0 {
		return nil
	}
	key := strings.Join(r.Hosts, " ")
	if m.hosts[key] == nil {
		m.hosts[key] = regexp.MustCompile(`^(?:` + r.HostsRegexp() + `)$`)
	}
	return m.hosts[key]
}

// found is the route of a request.
type found struct {
	name  string
	route *config.Route // nil: one that every listener has
	// unknown says what is not recorded that would have to be, to tell; empty: nothing.
	unknown string
}

// find returns the route of a request. seen says what is known of its headers; nil: it
// is not asked, and no header matches.
func (m *matcher) find(r *recording.Request, seen *headers) found {
	if r.Route == config.Repeated {
		return found{name: config.Repeated}
	}
	if r.Method == "CONNECT" {
		return found{name: config.Absent}
	}
	segments := recording.Segments(r.Path)
	if segments == nil {
		return m.withoutPath(r)
	}
	listener := cmp.Or(r.Listener, config.Gateway)
	var out found
	if n := m.listeners[listener]; n != nil && n.walk(segments, func(list []entry) bool { return choose(list, r, seen, &out) }) {
		return out
	}
	if listener == config.Gateway && len(segments) > 1 && segments[0] == m.summer.Segment("v1") {
		return found{name: config.Unmapped}
	}
	return found{name: config.Absent}
}

// withoutPath is the route of a request whose path is not recorded: it had the same
// route, and gets it again as long as that asks for the same.
func (m *matcher) withoutPath(r *recording.Request) found {
	if route, ok := m.routes[r.Route]; ok {
		return found{name: r.Route, route: &route}
	}
	if r.Route == config.Unmapped || r.Route == config.Absent || r.Route == config.Preflight {
		return found{name: r.Route, unknown: "the path, which is not recorded"}
	}
	return found{name: r.Route, unknown: "the path, which is not recorded, and its route is gone"}
}

// walk calls try with the entries that match the path, in their order, until it is true.
func (n *node) walk(path []recording.Sum, try func([]entry) bool) bool {
	if len(path) == 0 {
		return try(n.whole)
	}
	if next := n.literals[path[0]]; next != nil && next.walk(path[1:], try) {
		return true
	}
	if n.variable != nil && path[0] != (recording.Sum{}) && n.variable.walk(path[1:], try) {
		return true
	}
	return try(n.tails)
}

// choose puts the first of list that takes r into out.
func choose(list []entry, r *recording.Request, seen *headers, out *found) bool {
	for _, e := range list {
		switch {
		case !e.takesBesideHeaders(r), e.preflight && r.Route != config.Preflight:
			continue
		}
		switch name, answer := seen.all(e.route.Headers); answer {
		case no:
			continue
		case unknown:
			out.unknown = "the header " + name + ", which is not recorded"
		}
		out.name, out.route = e.route.Name, e.route
		if e.preflight {
			out.name, out.route = config.Preflight, nil
		}
		return true
	}
	return false
}
