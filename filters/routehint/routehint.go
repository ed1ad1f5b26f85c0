// Package routehint says what of the routes comes near a request that none of them takes:
// the methods that its path has, or the route that was probably meant.
//
// The control plane writes down the routes of a listener as a text, a line for each; an
// edge reads it only while it refuses such a request, so that it costs others nothing.
package routehint

import "strings"

// MaxBytes bounds the text of a listener's routes. What does not fit is left out: no
// request is refused or let through for it.
const MaxBytes = 256 << 10

// Bounds of the requests that are looked at.
const (
	maxPath     = 512 // bytes
	maxSegments = 24
)

// Route is what a text says of one.
type Route struct {
	Path     string   // as in the document: literal, with {variables}, with a last *
	Methods  []string // HEAD beside GET; none: all
	Hosts    []string // names, or *.example.com; none: all
	Listener string   // if it is another than that of the text
}

// Append appends the line of a route to dst, unless the text would be too long.
func Append(dst []byte, r Route) []byte {
	before := len(dst)
	for i, field := range []string{r.Path, listed(r.Methods), listed(r.Hosts), r.Listener} {
		if i > 0 {
			dst = append(dst, ' ')
		}
		dst = append(dst, field...)
	}
	if dst = append(dst, '\n'); len(dst) > MaxBytes {
		return dst[:before]
	}
	return dst
}

func listed(names []string) string {
	if len(names) == 0 {
		return "*"
	}
	return strings.Join(names, ",")
}

// Hint is what was found. The zero Hint says that nothing comes near.
type Hint struct {
	// Methods are those that the path has, as in an Allow header; empty: no route has the
	// path, or only such that the caller does not see.
	Methods string
	// Path is that of the nearest route, which takes Takes; empty: none is near.
	Path, Takes string
	Why         Why
	Listener    string // of the nearest route; empty: the request's own
}

// Why is how a path differs from the nearest route's.
type Why uint8

// The ways, nearest first.
const (
	_            Why = iota
	Elsewhere        // it does not: another listener has it
	SlashTooMany     // a slash at its end
	SlashMissing     // none at its end
	Case             // capital letters
	Prefix           // /v2 in place of /v1, or a first segment that one of the two lacks
	Spelling         // a letter or two of one segment
)

// Find says what of a text's routes comes near a request of method for path, which may
// have a query, at host. It looks at routes that are for that host alone.
//
// It takes time linear in text, and the memory of what it returns: of path it looks at
// 512 bytes at most, of which no line of text takes more than a fixed number of steps.
func Find(text, host, path string) Hint {
	path, _, _ = strings.Cut(path, "?")
	var room, pattern [maxSegments]string
	asked, ok := segments(room[:0], path)
	if !ok || len(path) > maxPath {
		return Hint{}
	}
	host = withoutPort(host)
	var best Hint
	var methods methodList
	least := uint8(255)
	for line := ""; text != ""; {
		line, text, _ = strings.Cut(text, "\n")
		r := parse(line)
		if !shown(r.hosts, host) {
			continue
		}
		p, ok := segments(pattern[:0], r.path)
		if !ok {
			continue
		}
		if matches(p, asked) {
			if r.listener == "" {
				methods.add(r.methods)
			} else if least > 0 {
				least, best = 0, Hint{Path: r.path, Takes: joined("", r.methods), Why: Elsewhere, Listener: r.listener}
			}
			continue
		}
		if why, far := near(p, asked); why != 0 && r.listener == "" && far < least {
			least, best = far, Hint{Path: r.path, Takes: joined("", r.methods), Why: why}
		} else if why != 0 && best.Path == r.path && best.Listener == r.listener {
			best.Takes = joined(best.Takes, r.methods)
		}
	}
	if methods.text != "" {
		return Hint{Methods: methods.text}
	}
	return best
}

// row is a line of a text.
type row struct{ path, methods, hosts, listener string }

func parse(line string) (r row) {
	r.path, line, _ = strings.Cut(line, " ")
	r.methods, line, _ = strings.Cut(line, " ")
	r.hosts, r.listener, _ = strings.Cut(line, " ")
	return r
}

// methodList is a list of methods, each of them once.
type methodList struct{ text string }

func (l *methodList) add(methods string) {
	if methods != "*" { // a route for all would have taken the request
		l.text = joined(l.text, methods)
	}
}

// joined is list with those of methods that it has not.
func joined(list, methods string) string {
	for m := ""; methods != ""; {
		m, methods, _ = strings.Cut(methods, ",")
		if has(list, m) {
			continue
		}
		if list != "" {
			list += ", "
		}
		list += m
	}
	return list
}

// has reports whether a list such as "GET, HEAD" or "GET,HEAD" has a method.
func has(list, method string) bool {
	for one := ""; list != ""; {
		one, list, _ = strings.Cut(list, ",")
		if strings.TrimPrefix(one, " ") == method {
			return true
		}
	}
	return false
}

// withoutPort is the host of an authority.
func withoutPort(authority string) string {
	if i := strings.LastIndexByte(authority, ':'); i >= 0 && strings.IndexByte(authority[i:], ']') < 0 {
		return authority[:i]
	}
	return authority
}

// shown reports whether a route that is for some hosts is for this one.
func shown(hosts, host string) bool {
	if hosts == "*" {
		return true
	}
	for h := ""; hosts != ""; {
		h, hosts, _ = strings.Cut(hosts, ",")
		below, wild := strings.CutPrefix(h, "*")
		if !wild && strings.EqualFold(h, host) || wild && len(host) > len(below) && strings.EqualFold(host[len(host)-len(below):], below) {
			return true
		}
	}
	return false
}
