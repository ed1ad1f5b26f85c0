package kong

import (
	"fmt"
	"regexp"
	"strings"

	"sluice.dev/sluice/controlplane/gateway/config"
)

// matched is what one path of Kong's becomes.
type matched struct {
	path string
	// under is the same with everything below it; "": Kong's path ends there.
	under string
	strip bool // what is matched can be taken away
	wider bool // it also matches what Kong's does not
}

// plainPath is what Kong 2 takes for a prefix rather than an expression.
var plainPath = regexp.MustCompile(`^[a-zA-Z0-9_.~/%-]*$`)

// translatePath makes our paths of one of Kong's: a prefix, or an expression behind ~
// (in format 1 and 2, one that has other signs than a path). why says what cannot be
// expressed.
func translatePath(path string, format int) (m matched, why string) {
	if strings.HasPrefix(path, "~") {
		return translateExpression(strings.TrimPrefix(path, "~"))
	}
	if format < 3 && !plainPath.MatchString(path) {
		return translateExpression(path)
	}
	trimmed := strings.TrimRight(path, "/")
	if trimmed == "" {
		return matched{under: "/*", strip: true}, ""
	}
	m = matched{path: trimmed, under: trimmed + "/*", strip: true}
	if trimmed != path {
		m.path = ""
	}
	if _, err := config.ParsePath(trimmed); err != nil {
		return m, "its path " + err.Error()
	}
	return m, ""
}

var (
	// namedGroup begins a group of an expression.
	namedGroup = regexp.MustCompile(`^\((?:\?P?<([a-zA-Z_][a-zA-Z0-9_]*)>)?(.*)\)$`)
	// segmentExact is an expression for a whole segment, which a variable is too.
	segmentExact = regexp.MustCompile(`^` + noSlash + `\+$`)
	// segmentNarrow are those for some segments.
	segmentNarrow = regexp.MustCompile(`^(?:\\d|\\w|\[(?:\\w|\\d|[a-zA-Z0-9_.-]|\\-)+\]|\.)(?:\+|\{\d+(?:,\d*)?\})(?:\?)?$`)
	variableName  = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)
	escaped       = regexp.MustCompile(`\\([-._~/])`)
)

// noSlash stands for an expression of one character that is not a slash.
const noSlash = "\x00"

// translateExpression makes our path of an expression whose segments are plain text,
// or stand for one segment.
func translateExpression(expr string) (m matched, why string) {
	const no = "its path is a regular expression that a path with variables cannot express"
	expr = strings.TrimPrefix(expr, "^")
	body, ends := strings.CutSuffix(expr, "$")
	if !strings.HasPrefix(body, "/") {
		return m, no
	}
	tail := false
	for _, all := range []string{"/.*", "/(.*)", "/(?:.*)"} {
		if rest, ok := strings.CutSuffix(body, all); ok {
			body, tail = rest, true
			break
		}
	}
	body = strings.NewReplacer(`[^/]`, noSlash, `[^\/]`, noSlash).Replace(body) // so that slashes part segments
	parts := strings.Split(strings.TrimPrefix(body, "/"), "/")
	if len(parts) > 64 {
		return m, no
	}
	number := 0
	for i, part := range parts {
		name := ""
		if g := namedGroup.FindStringSubmatch(part); g != nil {
			name, part = strings.ToLower(g[1]), g[2]
		}
		plain := escaped.ReplaceAllString(part, "$1")
		switch {
		case segmentExact.MatchString(part) || segmentNarrow.MatchString(part):
			m.wider = m.wider || !segmentExact.MatchString(part)
			if number++; name == "" || !variableName.MatchString(name) {
				name = fmt.Sprintf("part%d", number)
			}
			parts[i] = "{" + name + "}"
		case name == "" && plainPath.MatchString(plain):
			parts[i] = plain
		default:
			return m, no
		}
	}
	path := "/" + strings.Join(parts, "/")
	if path != "/" {
		if _, err := config.ParsePath(path); err != nil {
			return m, no
		}
	}
	if !tail {
		m.path = path
	}
	if tail || !ends {
		m.under = strings.TrimSuffix(path, "/") + "/*"
	}
	m.strip = ends && !tail || number == 0
	return m, ""
}

// rewrite is what an upstream whose service has the path base gets, for a request
// that our path matched; nil: what the client sent. ok is false when it cannot be
// expressed.
func (m matched) rewrite(path, base string, strip bool) (r *config.Rewrite, ok bool) {
	base = strings.TrimRight(base, "/")
	if !strip {
		if base == "" {
			return nil, true
		}
		return &config.Rewrite{Path: base + path}, true
	}
	if !m.strip {
		return nil, false
	}
	to := base
	if path == m.under {
		to = base + "/*"
	}
	if to == "" {
		to = "/"
	}
	if to == path {
		return nil, true
	}
	return &config.Rewrite{Path: to}, true
}
