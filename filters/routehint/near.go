package routehint

import "strings"

// segments appends what stands between the slashes of a path to dst; ok is false if that
// has no room for them.
func segments(dst []string, path string) (list []string, ok bool) {
	if path == "" || path[0] != '/' {
		return nil, false
	}
	for path = path[1:]; len(dst) < cap(dst); {
		segment, rest, more := strings.Cut(path, "/")
		dst = append(dst, segment)
		if !more {
			return dst, true
		}
		path = rest
	}
	return nil, false
}

func isVariable(segment string) bool { return strings.HasPrefix(segment, "{") }

// matches reports whether a route with the pattern takes a path.
func matches(pattern, path []string) bool {
	for i, p := range pattern {
		switch {
		case i >= len(path):
			return false
		case p == "*" && i == len(pattern)-1:
			return true
		case isVariable(p) && path[i] != "", p == path[i]:
		default:
			return false
		}
	}
	return len(pattern) == len(path)
}

// near says how a path differs from the pattern of a route, and how far it is from that;
// 0: in more than one way.
func near(pattern, path []string) (Why, uint8) {
	last := len(pattern) - 1
	if pattern[last] != "*" {
		return nearWhole(pattern, path)
	}
	start := pattern[:last] // and whatever follows
	if len(path) == last && matches(start, path) {
		return SlashMissing, 1
	}
	for _, n := range [...]int{last, last - 1, last + 1} {
		if n < 1 || n >= len(path) || last == 0 {
			continue
		}
		if why, far := nearWhole(start, path[:n]); why > SlashMissing {
			return why, far + 1 // behind those that say more of the path
		}
	}
	return 0, 0
}

// nearWhole is near for a pattern without a last *.
func nearWhole(pattern, path []string) (Why, uint8) {
	from, folded := 0, false
	for from < min(len(pattern), len(path)) && alike(pattern[from], path[from], &folded) {
		from++
	}
	p, q := pattern[from:], path[from:]
	for len(p) > 0 && len(q) > 0 && alike(p[len(p)-1], q[len(q)-1], &folded) {
		p, q = p[:len(p)-1], q[:len(q)-1]
	}
	if len(p) > 1 || len(q) > 1 {
		return 0, 0
	}
	why, far := differ(p, q, from)
	if folded && why != 0 {
		return why, far + 1
	}
	if folded && len(p)+len(q) == 0 {
		return Case, 1
	}
	return why, far
}

// alike reports whether a segment of a pattern takes one of a path, but for capitals,
// which it notes.
func alike(pattern, segment string, folded *bool) bool {
	if isVariable(pattern) {
		return segment != ""
	}
	if pattern == segment {
		return true
	}
	if segment == "" || !strings.EqualFold(pattern, segment) {
		return false
	}
	*folded = true
	return true
}

// differ says what a pattern and a path have in place of each other, at a place in them:
// one segment at most.
func differ(pattern, path []string, at int) (Why, uint8) {
	switch {
	case len(pattern) == 0 && len(path) == 0:
		return 0, 0
	case len(pattern) == 0 && path[0] == "":
		return SlashTooMany, 1
	case len(pattern) == 0 && (at == 0 || isVersion(path[0])):
		return Prefix, 2
	case len(pattern) == 0:
		return 0, 0
	case len(path) == 0 && pattern[0] == "":
		return SlashMissing, 1
	case len(path) == 0 && !isVariable(pattern[0]) && (at == 0 || isVersion(pattern[0])):
		return Prefix, 2
	case len(path) == 0 || isVariable(pattern[0]):
		return 0, 0
	case isVersion(pattern[0]) && isVersion(path[0]):
		return Prefix, 2
	}
	if edits := distance(pattern[0], path[0]); edits > 0 && 3*edits <= len(pattern[0]) {
		return Spelling, 2 + uint8(edits)
	}
	return 0, 0
}

// isVersion reports whether a segment is a version, such as v1.
func isVersion(s string) bool {
	if len(s) < 2 || len(s) > 4 || s[0] != 'v' {
		return false
	}
	for i := 1; i < len(s); i++ {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}

const (
	maxEdits = 2
	maxWord  = 64 // bytes of a segment whose spelling is looked at
)

// distance is how many letters must be added, removed, replaced or swapped with the next
// to make b of a; 0: more than maxEdits. It takes at most 5 steps for each letter.
func distance(a, b string) int {
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	if len(a) > maxWord || len(b) > maxWord || len(a)-len(b) > maxEdits || len(b)-len(a) > maxEdits {
		return 0
	}
	const far = maxEdits + 1
	var rows [3][maxWord + 1]uint8 // the last two, and the next
	for j := 0; j <= min(len(b), maxEdits); j++ {
		rows[0][j] = uint8(j)
	}
	for i := 1; i <= len(a); i++ {
		old, was, now := &rows[(i+1)%3], &rows[(i+2)%3], &rows[i%3]
		from, to, least := max(0, i-maxEdits), min(len(b), i+maxEdits), uint8(far)
		for j := from; j <= to; j++ {
			d := uint8(far)
			if j > 0 {
				d = was[j-1] + cost(a[i-1], b[j-1])
			}
			if j < i+maxEdits { // the row before has this column
				d = min(d, was[j]+1)
			}
			if j > from {
				d = min(d, now[j-1]+1)
			}
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d = min(d, old[j-2]+1)
			}
			now[j] = min(d, far)
			least = min(least, now[j])
		}
		if least == far {
			return 0
		}
	}
	if d := rows[len(a)%3][len(b)]; d < far {
		return int(d)
	}
	return 0
}

func cost(a, b byte) uint8 {
	if a == b {
		return 0
	}
	return 1
}
