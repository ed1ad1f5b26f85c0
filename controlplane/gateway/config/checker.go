package config

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"sluice.dev/sluice/filters/decision"
)

// Checker finds the faults of documents. It remembers the routes of the last one
// that had none by themselves: who changes one among thousands has only that one
// looked at, and how all of them go together. The zero value remembers nothing,
// and a nil one never does. It finds what Document.Faults finds.
type Checker struct {
	mu   sync.Mutex
	last verdict
}

// verdict is a document with its faults. It is never altered, but replaced.
type verdict struct {
	document Document
	details  []decision.Detail
	routes   map[string]checked // those without a fault of their own, by name; nil: there was no document
}

// checked is a route that has no fault by itself.
type checked struct {
	route     Route
	matchKeys []string              // see matchKeys
	schemas   map[string]JSONSchema // that its product had
	table     int                   // bytes of what its requests are held against
}

// Faults returns every fault of d, with the path of its field.
func (c *Checker) Faults(d Document) []decision.Detail {
	if c == nil {
		details, _ := d.faults(nil)
		return details
	}
	c.mu.Lock()
	last := c.last
	c.mu.Unlock()
	if last.routes != nil && last.document.Equal(d) {
		return slices.Clone(last.details)
	}
	now := verdict{document: d}
	now.details, now.routes = d.faults(last.routes)
	c.mu.Lock()
	c.last = now
	c.mu.Unlock()
	return slices.Clone(now.details)
}

// checkRoute checks what route i says, apart from other routes, and returns its match keys.
func (v *validator) checkRoute(i int, r Route) []string {
	schemas := v.productSchemas[r.Product]
	if known, ok := v.was[r.Name]; ok && known.route.Equal(r) && (!r.Checks() || maps.Equal(known.schemas, schemas)) {
		v.now[r.Name] = known
		v.tableBytes += known.table
		return known.matchKeys
	}
	before, f := len(v.details), fmt.Sprintf("routes[%d]", i)
	if slices.Contains(reserved, r.Name) {
		v.add(f+".name", "is reserved", "another name")
	}
	v.nameForm(f+".name", r.Name)
	v.route(f, r)
	size := v.request(f, r, schemas)
	v.tableBytes += size
	at := v.matchKeysOf(r)
	if len(v.details) == before {
		v.now[r.Name] = checked{r, at, schemas, size}
	}
	return at
}

// matchKeysOf returns the match keys of r, unless there are too many of them.
func (v *validator) matchKeysOf(r Route) []string {
	if len(r.Hosts) > maxHosts || len(r.Methods) > maxMethods {
		return nil
	}
	before := v.matchKeys
	v.matchKeys += max(1, len(r.Hosts)) * max(1, len(r.Matches()))
	if v.matchKeys <= maxMatchKeys {
		return matchKeys(r)
	}
	if before <= maxMatchKeys {
		v.add("routes", "have too many hosts and methods", fmt.Sprintf("at most %d pairs in all", maxMatchKeys))
	}
	return nil
}

// overlaps finds routes of which one can never be reached, because another
// matches the same requests. Others of the same path are tried in their order:
// named hosts before *. before none, more headers before fewer.
func (v *validator) overlaps(list []Route, matchKeys [][]string) {
	taken := make(map[string]int, 2*len(list))
	for i := range list {
		other := -1
		for _, key := range matchKeys[i] {
			if j, ok := taken[key]; ok && j != i && other < 0 {
				other = j
			}
			taken[key] = i
		}
		if other >= 0 {
			v.add(fmt.Sprintf("routes[%d].path", i), "matches the same requests as route "+list[other].Name, "another path, method, host or header")
		}
	}
}

// matchKeys are texts of which two routes have one in common when some request
// matches both and nothing says which goes first: a pair of host and method with
// the sum of the listener, the shape of the path and the headers. "" stands for hosts and methods that
// no other route names. A path that is none has no key.
func matchKeys(r Route) (all []string) {
	p, err := ParsePath(r.Path)
	if err != nil {
		return nil
	}
	hosts, methods := r.Hosts, r.Matches()
	if len(hosts) == 0 {
		hosts = []string{""}
	}
	if len(methods) == 0 {
		methods = []string{""}
	}
	sum := sha256.Sum256([]byte(strings.Join([]string{r.ListenerName(), p.Regexp(), r.headerText()}, "\x00")))
	rest := string(sum[:])
	for _, h := range hosts {
		for _, m := range methods {
			all = append(all, strings.Join([]string{strings.ToLower(h), m, rest}, "\x00"))
		}
	}
	return all
}
