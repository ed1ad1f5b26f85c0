package importer

import (
	"errors"
	"regexp"
	"strconv"
	"strings"
)

var braces = regexp.MustCompile(`\{[^{}]*\}`)

// template returns the path of a route for a path template of OpenAPI: variables get
// names of a-z, 0-9 and _. A segment in which text stands beside a variable, or two
// variables stand, becomes a variable, and the route is wider than the template.
func template(path string) (out string, widened bool, err error) {
	if strings.ContainsAny(path, "?#") {
		return "", false, errors.New("has a query or a fragment in it")
	}
	steps, names := strings.Split(path, "/"), map[string]bool{}
	for i, step := range steps {
		found := braces.FindAllString(step, -1)
		if len(found) == 0 {
			continue
		}
		widened = widened || found[0] != step
		name := slug(braces.ReplaceAllStringFunc(step, func(v string) string { return "_" + v[1:len(v)-1] + "_" }), '_', 60)
		if name == "" || name[0] >= '0' && name[0] <= '9' {
			name = "p_" + name
		}
		base := name
		for n := 2; names[name]; n++ {
			name = base + "_" + strconv.Itoa(n)
		}
		names[name] = true
		steps[i] = "{" + name + "}"
	}
	return strings.Join(steps, "/"), widened, nil
}

// slug is s in lower case with sep between its words: listPets is list_pets. It has
// a-z, 0-9 and sep only, and at most a number of bytes.
func slug(s string, sep byte, most int) string {
	var b []byte
	lower := false // whether the last one was a lower-case letter or a digit
	for i := range len(s) {
		c := s[i]
		switch {
		case c >= 'a' && c <= 'z' || c >= '0' && c <= '9':
			b, lower = append(b, c), true
			continue
		case c >= 'A' && c <= 'Z':
			next := i+1 < len(s) && s[i+1] >= 'a' && s[i+1] <= 'z'
			if len(b) > 0 && b[len(b)-1] != sep && (lower || next) {
				b = append(b, sep)
			}
			b = append(b, c|0x20)
		case len(b) > 0 && b[len(b)-1] != sep:
			b = append(b, sep)
		}
		lower = false
	}
	b = b[:min(len(b), most)]
	for len(b) > 0 && b[len(b)-1] == sep {
		b = b[:len(b)-1]
	}
	return string(b)
}
