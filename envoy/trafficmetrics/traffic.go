// Package trafficmetrics sums up what the workers of an edge's Envoy have counted, and shows it to
// Prometheus. It lives in the edge's agent, so its counters outlive hot restarts and crashes of
// Envoy, and start from zero with the agent alone.
package trafficmetrics

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"sluice.dev/sluice/filters/limits/meter"
	"sluice.dev/sluice/filters/limits/traffic"
)

// Bounds of what is kept.
const (
	// maxRoutes bounds the routes; those of further ones count as Overflow. A configuration has
	// fewer, so that it only holds while many of them are replaced.
	maxRoutes = 20_000
	// keepGone is for how long the counters of a route that is gone are shown after its last
	// request, so that a scraper sees them.
	keepGone = 5 * time.Minute
	// keptBoots is of how many programs the last parcel is known: two Envoys, while one takes over.
	keptBoots = 4
)

// The labels of requests that belong to no route of the configuration.
const (
	// Refused is the route of requests that Envoy answers before it looks for a route, because
	// they are malformed or too large, or it is overloaded.
	Refused = "(refused)"
	// Overflow is the route of what there was no room to count by itself.
	Overflow = "(overflow)"
)

// Totals are the sums. Make them with New.
type Totals struct {
	now     func() time.Time
	present func() map[meter.Route]string

	mu      sync.Mutex
	routes  map[meter.Route]*route
	taken   []source              // programs and the last parcel of each
	started map[string]*histogram // time to the beginning of an answer, by product
}

type source struct {
	boot     string
	sequence uint64
}

// route is what was counted of one.
type route struct {
	lastAt  time.Time
	in, out uint64
	open    uint64 // milliseconds
	kinds   map[kind]*counts
	refused map[string]uint64 // by reason
	would   map[string]uint64 // those that passed, by the reason in the shadow
}

// kind tells apart the requests of one route.
type kind struct {
	method string
	class  uint8
}

// counts are those of one kind.
type counts struct {
	requests uint64
	took     histogram // of those that the edge passed on
}

// histogram is a traffic.Histogram whose counts do not overflow.
type histogram struct {
	micros  uint64
	buckets [traffic.Buckets]uint64
}

func (h *histogram) add(o traffic.Histogram) {
	h.micros += o.Micros
	for i, n := range o.Buckets {
		h.buckets[i] += uint64(n)
	}
}

// New returns sums of nothing. present returns the routes that Envoy has at present, each with its
// method if it has but one: their counters are kept however long they have had no request. When it
// returns nil they are not known, and all are kept.
func New(now func() time.Time, present func() map[meter.Route]string) *Totals {
	return &Totals{now: now, present: present, routes: map[meter.Route]*route{}, started: map[string]*histogram{}}
}

// Take adds a parcel, unless it was added before; ok is false for one that does not parse, of
// which nothing is added.
func (t *Totals) Take(raw []byte) (ok bool) {
	p, cells, ok := traffic.ParseParcel(raw)
	if !ok {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.isNew(p.Boot, p.Sequence) {
		return true
	}
	at := t.now()
	for i := range cells {
		t.add(&cells[i], at)
	}
	return true
}

// isNew reports whether a parcel has not been added, and notes that it is.
func (t *Totals) isNew(boot string, sequence uint64) bool {
	i := slices.IndexFunc(t.taken, func(s source) bool { return s.boot == boot })
	if i < 0 {
		t.taken = append(t.taken, source{boot, sequence})
		t.taken = t.taken[max(0, len(t.taken)-keptBoots):]
		return true
	}
	if sequence <= t.taken[i].sequence {
		return false
	}
	t.taken[i].sequence = sequence
	return true
}

func (t *Totals) add(c *traffic.Cell, at time.Time) {
	r := t.route(labels(c))
	r.lastAt = at
	r.in, r.out, r.open = r.in+c.In, r.out+c.Out, r.open+c.Open
	r.begin(c.Method)
	k := r.kinds[kind{c.Method, c.Class}]
	if k == nil {
		k = &counts{}
		r.kinds[kind{c.Method, c.Class}] = k
	}
	k.requests += c.Requests
	if c.Passed {
		k.took.add(c.Took)
	}
	if c.Reason != "" {
		r.refused[c.Reason] += c.Requests
	}
	if c.Would != "" {
		r.would[c.Would] += c.Requests
	}
	if c.Route.Product == "" || c.Upstream.Count() == 0 {
		return
	}
	if t.started[c.Route.Product] == nil {
		t.started[c.Route.Product] = &histogram{}
	}
	t.started[c.Route.Product].add(c.Upstream)
}

// labels are the route and product that a cell counts under.
func labels(c *traffic.Cell) meter.Route {
	switch {
	case c.Route.Name != "":
		return c.Route
	case c.Passed:
		return meter.Route{Name: Overflow}
	}
	return meter.Route{Name: Refused}
}

func (t *Totals) route(name meter.Route) *route {
	if t.routes[name] == nil && len(t.routes) >= maxRoutes {
		name = meter.Route{Name: Overflow}
	}
	r := t.routes[name]
	if r == nil {
		r = &route{kinds: map[kind]*counts{}, refused: map[string]uint64{}, would: map[string]uint64{}}
		t.routes[name] = r
	}
	return r
}

// usual are the classes that each method of a route is shown with from the beginning.
var usual = []uint8{2, 4, 5}

// begin shows a method with zeros: a counter that begins with its first error hides that error from
// rate(), which compares with what was before.
func (r *route) begin(method string) {
	for _, class := range usual {
		if k := (kind{method, class}); r.kinds[k] == nil {
			r.kinds[k] = &counts{}
		}
	}
}

// follow shows the routes that there are, and forgets those that are gone and the products of which
// there is none left.
func (t *Totals) follow() {
	present := t.present()
	if present == nil {
		return
	}
	for name, method := range present {
		if method != "" {
			t.route(name).begin(method)
		}
	}
	at := t.now()
	products := map[string]bool{}
	for name, r := range t.routes {
		if _, is := present[name]; !is && name.Name != Refused && name.Name != Overflow && at.Sub(r.lastAt) > keepGone {
			delete(t.routes, name)
			continue
		}
		products[name.Product] = true
	}
	maps.DeleteFunc(t.started, func(product string, _ *histogram) bool { return !products[product] })
}

// sorted returns the names of routes in order.
func sorted(routes map[meter.Route]*route) []meter.Route {
	return slices.SortedFunc(maps.Keys(routes), func(a, b meter.Route) int {
		return cmp.Or(cmp.Compare(a.Product, b.Product), cmp.Compare(a.Name, b.Name))
	})
}
