package rehearsal

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"

	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/filters/recording"
)

// answer is what is known of a condition.
type answer uint8

const (
	unknown answer = iota
	yes
	no
)

// headers is what is known of the headers of a request. None is recorded: it follows
// from the route that the request had, of which it has all that it asks for, and from
// those that would have been tried before it, of which it lacks something.
type headers struct {
	exact   map[string]string // values, by names in small letters
	absent  map[string]bool
	present map[string]bool
	holds   map[string]answer // conditions, by their texts
	none    [][]config.HeaderMatch
}

// headersOf is what the document that was in force says of a request's headers; nil: no
// route in it that the request could have had asks for any.
func (m *matcher) headersOf(r *recording.Request) *headers {
	h := &headers{exact: map[string]string{}, absent: map[string]bool{}, present: map[string]bool{}, holds: map[string]answer{}}
	if own, ok := m.routes[r.Route]; ok {
		for _, c := range own.Headers {
			h.learn(c)
		}
	}
	n, path := m.listeners[cmp.Or(r.Listener, config.Gateway)], recording.Segments(r.Path)
	if n == nil || path == nil {
		return h
	}
	n.walk(path, func(list []entry) bool {
		for _, e := range list {
			switch {
			case e.preflight || !e.takesBesideHeaders(r):
			case e.route.Name == r.Route:
				return true
			case len(e.route.Headers) > 0:
				h.none = append(h.none, e.route.Headers)
			}
		}
		return false
	})
	for _, list := range h.none { // all but one of which hold: that one does not
		var open []config.HeaderMatch
		for _, c := range list {
			if h.one(c) != yes {
				open = append(open, c)
			}
		}
		if len(open) == 1 {
			h.holds[textOf(open[0])] = no
			h.learnNot(open[0])
		}
	}
	return h
}

// takesBesideHeaders reports whether e would take r if its headers were right.
func (e entry) takesBesideHeaders(r *recording.Request) bool {
	return (e.method == "" || e.method == r.Method || e.method == "GET" && r.Method == "HEAD") && (e.hosts == nil || e.hosts.MatchString(r.Host))
}

// learn notes that a condition holds.
func (h *headers) learn(c config.HeaderMatch) {
	name := strings.ToLower(c.Name)
	h.holds[textOf(c)] = yes
	switch {
	case c.Absent:
		h.absent[name] = true
	case c.Value != "":
		h.exact[name] = c.Value
		h.present[name] = true
	default:
		h.present[name] = true
	}
}

// learnNot notes that a condition does not hold.
func (h *headers) learnNot(c config.HeaderMatch) {
	name := strings.ToLower(c.Name)
	switch {
	case c.Absent:
		h.present[name] = true
	case c.Value == "" && c.Prefix == "" && c.Regex == "":
		h.absent[name] = true
	}
}

// all says whether a request meets all conditions, and if that is not known names a
// header that would have to be.
func (h *headers) all(list []config.HeaderMatch) (name string, a answer) {
	a = yes
	for _, c := range list {
		switch h.one(c) {
		case no:
			return "", no
		case unknown:
			name, a = c.Name, unknown
		}
	}
	if a == unknown && h != nil {
		for _, none := range h.none {
			if subset(none, list) {
				return "", no
			}
		}
	}
	return name, a
}

// subset reports whether list has all conditions of part.
func subset(part, list []config.HeaderMatch) bool {
	there := map[string]bool{}
	for _, c := range list {
		there[textOf(c)] = true
	}
	for _, c := range part {
		if !there[textOf(c)] {
			return false
		}
	}
	return true
}

// one says whether a request meets a condition.
func (h *headers) one(c config.HeaderMatch) answer {
	if h == nil {
		return unknown
	}
	name := strings.ToLower(c.Name)
	if a := h.holds[textOf(c)]; a != unknown {
		return a
	}
	value, known := h.exact[name]
	switch {
	case known:
		return is(meets(c, value))
	case h.absent[name]:
		return is(c.Absent)
	case h.present[name] && c.Absent:
		return no
	case h.present[name] && c.Value == "" && c.Prefix == "" && c.Regex == "":
		return yes
	}
	return unknown
}

func is(b bool) answer {
	if b {
		return yes
	}
	return no
}

// meets reports whether a header with a value meets a condition.
func meets(c config.HeaderMatch, value string) bool {
	switch {
	case c.Absent:
		return false
	case c.Value != "":
		return value == c.Value
	case c.Prefix != "":
		return strings.HasPrefix(value, c.Prefix)
	case c.Regex != "":
		e, err := regexp.Compile(`^(?:` + c.Regex + `)$`)
		return err == nil && e.MatchString(value)
	}
	return true
}

// textOf tells conditions apart.
func textOf(c config.HeaderMatch) string {
	return fmt.Sprintf("%q %q %q %q %v", strings.ToLower(c.Name), c.Value, c.Prefix, c.Regex, c.Absent)
}
