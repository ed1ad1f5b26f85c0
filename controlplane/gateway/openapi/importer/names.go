package importer

import (
	"maps"
	"slices"
	"strconv"
)

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// name names routes by operationId, or by method and path where there is none. Of
// two that would have one name, the later has a number; the order is that of paths.
func (im *importer) name() {
	for i := range im.routes {
		r := &im.routes[i]
		base := im.Product + "." + slug(r.id, '-', max(1, 92-len(im.Product)))
		if base == im.Product+"." {
			base += "operation"
		}
		name := base
		for n := 2; im.names[name]; n++ {
			name = base + "-" + strconv.Itoa(n)
		}
		im.names[name] = true
		r.route.Name = name
	}
}
