package backup

import (
	"fmt"
	"slices"
	"strings"
)

// ordered returns names so that each comes after those that it refers to. refs
// gives those; a table may refer to itself. It fails when tables refer to each
// other in a circle.
func ordered(names []string, refs map[string][]string) ([]string, error) {
	var out []string
	left := slices.Sorted(slices.Values(names))
	for len(left) > 0 {
		var later []string
		for _, name := range left {
			if slices.ContainsFunc(refs[name], func(to string) bool { return to != name && slices.Contains(left, to) }) {
				later = append(later, name)
				continue
			}
			out = append(out, name)
		}
		if len(later) == len(left) {
			return nil, fmt.Errorf("tables refer to each other in a circle: %s", strings.Join(left, ", "))
		}
		left = later
	}
	return out, nil
}
