package config

import (
	"cmp"
	"slices"
	"strings"
)

// Matcher finds the route that takes requests for a path template on one listener.
type Matcher struct {
	list    []matchable
	byShape map[string][]int // routes of the same path but for the names of variables
}

type matchable struct {
	pattern Pattern
	route   Route
}

// NewMatcher returns a matcher of d's routes on a listener.
func NewMatcher(d Document, listener string) Matcher {
	m := Matcher{byShape: map[string][]int{}}
	for _, r := range d.Routes {
		if p, err := ParsePath(r.Path); err == nil && r.ListenerName() == listener {
			m.list = append(m.list, matchable{p, r})
		}
	}
	slices.SortStableFunc(m.list, func(a, b matchable) int {
		return cmp.Or(a.pattern.Compare(b.pattern), a.rank()-b.rank())
	})
	for i, c := range m.list {
		shape := c.pattern.Regexp()
		m.byShape[shape] = append(m.byShape[shape], i)
	}
	return m
}

// Find returns the route that takes requests of a method for a path template, such
// as /v1/streams/{id}. It takes time linear in the number of routes, and less where a
// route has the template as its path.
func (m Matcher) Find(method, template string) (Route, bool) {
	steps := strings.Split(template, "/")[1:]
	for _, i := range m.byShape[shape(steps)] { // nothing more specific matches all of the template
		if m.list[i].takes(method) {
			return m.list[i].route, true
		}
	}
	for _, c := range m.list {
		if c.takes(method) && c.pattern.Covers(steps) {
			return c.route, true
		}
	}
	return Route{}, false
}

// shape is the expression of the route that has a template as its path.
func shape(steps []string) string {
	p := make(Pattern, len(steps))
	for i, s := range steps {
		p[i] = Segment{Literal, s}
		if strings.HasPrefix(s, "{") && strings.IndexByte(s, '}') == len(s)-1 {
			p[i].Kind = Variable
		}
	}
	return p.Regexp()
}

// rank puts a route for all methods behind those of its path that name theirs.
func (c matchable) rank() int {
	if len(c.route.Methods) == 0 {
		return 1
	}
	return 0
}

func (c matchable) takes(method string) bool {
	return len(c.route.Methods) == 0 || slices.Contains(c.route.Matches(), method)
}

// Covers reports whether p matches every path of a template, given in steps.
func (p Pattern) Covers(steps []string) bool {
	for i, s := range p {
		if s.Kind == Tail {
			return i <= len(steps)
		}
		if i >= len(steps) {
			return false
		}
		variable := strings.HasPrefix(steps[i], "{")
		if s.Kind == Literal && (variable || s.Text != steps[i]) || s.Kind == Variable && steps[i] == "" {
			return false
		}
	}
	return len(p) == len(steps)
}
