package config

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Limits of what a route may ask of a request besides its path.
const (
	maxHosts      = 100
	maxHeaders    = 10
	maxValueBytes = 256
)

var (
	hostPattern = regexp.MustCompile(`^(\*\.)?[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$`)
	valueForm   = regexp.MustCompile(`^[ -~]*$`)
)

// condition checks what a route asks of hosts and headers.
func (v *validator) condition(f string, r Route) {
	for i, h := range v.within(f+".hosts", r.Hosts, maxHosts) {
		if !hostPattern.MatchString(h) || slices.Contains(r.Hosts[:i], h) {
			v.add(fmt.Sprintf("%s.hosts[%d]", f, i), "is not a host, or is given twice", "such as api.example.com or *.example.com, in small letters and without a port")
		}
	}
	if !v.atMost(f+".headers", len(r.Headers), maxHeaders) {
		return
	}
	for i, h := range r.Headers {
		v.headerMatch(fmt.Sprintf("%s.headers[%d]", f, i), h)
	}
}

func (v *validator) headerMatch(f string, h HeaderMatch) {
	if !headerForm.MatchString(h.Name) {
		v.add(f+".name", "is not the name of a header", "letters, digits and dashes")
	}
	said := 0
	for field, s := range map[string]string{"value": h.Value, "prefix": h.Prefix, "regex": h.Regex} {
		if s == "" {
			continue
		}
		said++
		if len(s) > maxValueBytes || !valueForm.MatchString(s) {
			v.add(f+"."+field, "is too long, or not plain text", fmt.Sprintf("at most %d characters of ASCII", maxValueBytes))
		}
	}
	if h.Absent {
		said++
	}
	if said > 1 {
		v.add(f+".value", "does not stand alone", "one of value, prefix, regex and absent")
	}
	if len(h.Regex) > maxValueBytes {
		return
	}
	if _, err := regexp.Compile(h.Regex); err != nil {
		v.add(f+".regex", "is not a regular expression", "RE2")
	}
}

// headerText tells apart what routes ask of headers.
func (r Route) headerText() string {
	parts := make([]string, len(r.Headers))
	for i, h := range r.Headers {
		parts[i] = fmt.Sprintf("%q %q %q %q %v", strings.ToLower(h.Name), h.Value, h.Prefix, h.Regex, h.Absent)
	}
	slices.Sort(parts)
	return strings.Join(parts, " ")
}

// CompareConditions orders routes of one path and method from the more to the
// less specific: those with named hosts, then those with *. hosts, longest
// first, then those for all; among them, more headers before fewer. Otherwise
// the order of the document counts.
func (r Route) CompareConditions(other Route) int {
	return cmp.Or(
		cmp.Compare(hostRank(r), hostRank(other)),
		cmp.Compare(len(other.Headers), len(r.Headers)),
	)
}

// HostsRegexp is an RE2 expression that the whole host of a request must match, with its
// port if it names one, where r has hosts.
func (r Route) HostsRegexp() string {
	any := make([]string, len(r.Hosts))
	for i, h := range r.Hosts {
		name, below := strings.CutPrefix(h, "*.")
		any[i] = regexp.QuoteMeta(name)
		if below {
			any[i] = `[^:]+\.` + any[i]
		}
	}
	return `(?i:` + strings.Join(any, "|") + `)(:[0-9]+)?`
}

// hostRank is smaller the fewer hosts a route is for.
func hostRank(r Route) int {
	if len(r.Hosts) == 0 {
		return 1 << 20
	}
	rank := 0
	for _, h := range r.Hosts {
		if strings.HasPrefix(h, "*.") {
			rank = max(rank, 1<<10-len(h))
		}
	}
	return rank
}

// rewrite checks what a product gets in place of the path and host.
func (v *validator) rewrite(f string, r Route) {
	w := r.Rewrite
	if w == nil {
		return
	}
	v.host(f+".host", w.Host)
	if r.Product == "" {
		v.add(f, "stands on a route without a product", "a product")
	}
	v.newPath(f, r, w.Path, w.Prefix)
}

// newPath checks what stands in place of a route's path: a template of its variables,
// or a text in place of its beginning.
func (v *validator) newPath(f string, r Route, path, prefix string) {
	if path != "" && prefix != "" {
		v.add(f+".prefix", "stands beside path", "one of the two")
	}
	if prefix != "" && (!strings.HasPrefix(prefix, "/") || !plainPath(prefix)) {
		v.add(f+".prefix", "is not the beginning of a path", "such as / or /internal")
	}
	from, err := ParsePath(r.Path)
	if path == "" || err != nil {
		return
	}
	to, err := ParsePath(path)
	if err != nil {
		v.add(f+".path", err.Error(), "such as /internal/{id} or /internal/*")
		return
	}
	if name, ok := from.lacks(to); !ok {
		v.add(f+".path", "has "+name+", which the route's path has not", "its variables, and a last * where it has one")
	}
}

// plainPath reports whether s is a path without variables, which may end in /.
func plainPath(s string) bool {
	p, err := ParsePath(s)
	if err != nil && strings.HasSuffix(s, "/") {
		p, err = ParsePath(strings.TrimSuffix(s, "/"))
	}
	return err == nil && p.IsLiteral()
}

// lacks names a variable, or the tail, of template q that p does not have; ok
// when there is none.
func (p Pattern) lacks(q Pattern) (name string, ok bool) {
	for _, s := range q {
		if s.Kind != Literal && !slices.ContainsFunc(p, func(own Segment) bool { return own.Kind == s.Kind && own.Text == s.Text }) {
			if s.Kind == Tail {
				return "*", false
			}
			return "{" + s.Text + "}", false
		}
	}
	return "", true
}

// Substitution returns an RE2 expression for paths of p, and what stands for
// them by template q: what \1, \2 … of the expression have caught.
func (p Pattern) Substitution(q Pattern) (regex, replacement string) {
	var from, to strings.Builder
	number := map[string]int{}
	for _, s := range p {
		from.WriteByte('/')
		switch s.Kind {
		case Literal:
			from.WriteString(regexp.QuoteMeta(s.Text))
		case Variable:
			number[s.Text] = len(number) + 1
			from.WriteString(`([^/]+)`)
		case Tail:
			number[""] = len(number) + 1
			from.WriteString(`(.*)`)
		}
	}
	for _, s := range q {
		to.WriteByte('/')
		if s.Kind == Literal {
			to.WriteString(s.Text)
		} else {
			fmt.Fprintf(&to, `\%d`, number[s.Text])
		}
	}
	return "^" + from.String() + "$", to.String()
}

// PrefixSubstitution is Substitution for a text that stands in place of what
// is before p's first variable or tail.
func (p Pattern) PrefixSubstitution(prefix string) (regex, replacement string) {
	i := slices.IndexFunc(p, func(s Segment) bool { return s.Kind != Literal })
	if i < 0 {
		return "^" + p.Regexp() + "$", prefix
	}
	return "^" + p[:i].Regexp() + "/", strings.TrimSuffix(prefix, "/") + "/"
}
