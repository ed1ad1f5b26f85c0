package rehearsal

import (
	"cmp"
	"container/heap"
	"fmt"
	"slices"
	"time"

	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/controlplane/gateway/requestlog"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/filters/limits/ratelimit"
	"sluice.dev/sluice/filters/recording"
)

// request is a recorded request with how many it stands for.
type request struct {
	recording.Request
	weight float64
}

// id is its X-Request-ID; empty: not known.
func (r *request) id() string {
	if r.ID == ([16]byte{}) {
		return ""
	}
	x := r.ID
	return fmt.Sprintf("%x-%x-%x-%x-%x", x[:4], x[4:6], x[6:8], x[8:10], x[10:])
}

// queue has requests in the order of their times.
type queue []*request

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].Time < q[j].Time }
func (q queue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)        { *q = append(*q, x.(*request)) }
func (q *queue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}

// run tries requests on two documents at once.
type run struct {
	records  *records
	inForce  *world
	proposed *world
	from     time.Time // before it requests only fill windows
	examples int

	waiting queue
	rest    float64 // of weights that are not whole
	edges   map[string]bool
	record  Record

	refused, allowed, moved, otherwise, undetermined part
	bites                                            map[Bite]int64
}

// settled is after how long no edge has an earlier request to tell of: it tells of one
// when it has ended.
const settled = 45 * time.Second

// add takes a block, and tries what is settled.
func (x *run) add(b requestlog.RecordedBlock) error {
	if err := x.records.load(b.Recording.Requests); err != nil {
		return err
	}
	kept := [2]uint64{}
	for i := range b.Recording.Requests {
		kept[kindOf(&b.Recording.Requests[i])]++
	}
	x.edges[b.Edge] = true
	x.record.Lost += int64(b.Recording.Lost)
	for i := range b.Recording.Requests {
		r := &request{b.Recording.Requests[i], 1}
		if k := kindOf(&r.Request); b.Recording.Seen[k] > kept[k] {
			r.weight = float64(b.Recording.Seen[k]) / float64(kept[k])
		}
		heap.Push(&x.waiting, r)
	}
	x.tryUntil(b.EndedAt.Add(-settled).UnixMilli())
	return x.records.err
}

func kindOf(r *recording.Request) int {
	if r.Failed() {
		return 1
	}
	return 0
}

// tryUntil tries the waiting requests that began before a time.
func (x *run) tryUntil(millis int64) {
	for len(x.waiting) > 0 && x.waiting[0].Time < millis {
		x.try(heap.Pop(&x.waiting).(*request))
	}
}

// try tries one request on both documents and notes the difference.
func (x *run) try(r *request) {
	x.rest += r.weight
	n := int(x.rest)
	x.rest -= float64(n)
	seen := x.inForce.matcher.headersOf(&r.Request)
	var was *config.Route
	if route, ok := x.inForce.matcher.routes[r.Route]; ok {
		was = &route
	}
	c := x.records.callerOf(&r.Request, was, x.inForce.policy)
	now, then := x.inForce.decide(&r.Request, seen, c, n), x.proposed.decide(&r.Request, seen, c, n)
	if r.Time < x.from.UnixMilli() {
		return
	}
	x.record.Recorded++
	x.record.Requests += int64(n)
	x.record.Complete = x.record.Complete && r.weight == 1
	if x.agrees(&r.Request, now) {
		x.record.Agreeing++
	}
	if c.paid && then.code == "" && then.price != now.price && now.price > 0 {
		then.code = decision.PaymentRequired
	}
	x.compare(r, int64(n), now, then)
}

// agrees reports whether an outcome is what became of a request.
func (x *run) agrees(r *recording.Request, o outcome) bool {
	switch {
	case o.unknown != "":
		return false
	case o.code == decision.TooLarge:
		return r.Status == 413
	case o.code == decision.PaymentRequired:
		return r.Status == 402
	}
	return string(o.code) == r.Code && o.route == r.Route
}

// compare notes in which way two outcomes differ.
func (x *run) compare(r *request, n int64, now, then outcome) {
	key := findingKey{method: r.Method, path: x.pathOf(now, then), route: then.route, product: then.product}
	if now.route != then.route {
		key.was = now.route
	}
	switch {
	case then.unknown != "" || now.unknown != "":
		key.reason = cmp.Or(then.unknown, now.unknown) + " is not known"
		if then.unknown != now.unknown { // what is unknown under both is no difference of theirs
			x.undetermined.add(key, r, n, x.examples)
		}
	case now.code == "" && then.code != "":
		key.code, key.reason = string(then.code), x.reason(then)
		x.refused.add(key, r, n, x.examples)
		x.noteLimit(r, n, then)
	case now.code != "" && then.code == "":
		key.code, key.reason = string(now.code), x.reason(now)
		x.allowed.add(key, r, n, x.examples)
	case now.code != then.code:
		key.code, key.reason = string(then.code), x.reason(then)+" instead of "+x.reason(now)
		x.otherwise.add(key, r, n, x.examples)
	case now.code == "" && (now.product != then.product || now.route != then.route || now.class != then.class):
		key.class = then.class
		key.reason = difference(now, then)
		if now.product != then.product {
			key.before = now.product
		}
		x.moved.add(key, r, n, x.examples)
	}
}

// difference says in words where a request would go instead.
func difference(now, then outcome) string {
	switch {
	case now.product != then.product:
		return "product " + cmp.Or(then.product, "(answered at the edge)") + " instead of " + cmp.Or(now.product, "(answered at the edge)")
	case now.route != then.route:
		return "route " + then.route + " instead of " + now.route
	}
	return "class " + then.class + " instead of " + now.class
}

// pathOf is the template of the route that tells most of a request.
func (x *run) pathOf(now, then outcome) string {
	if r, ok := x.proposed.matcher.routes[then.route]; ok {
		return r.Path
	}
	return x.inForce.matcher.routes[now.route].Path
}

// reason says in words why a request is refused.
func (x *run) reason(o outcome) string {
	switch {
	case o.code == decision.RateLimited:
		return fmt.Sprintf("the limit %s of %d a minute is reached", o.limit.Policy, o.limit.Limit)
	case o.code == decision.PaymentRequired:
		return "a payment is asked for"
	case o.detail.Field != "" && o.detail.Expected != "":
		return o.detail.Field + " " + o.detail.Expected + ": " + o.detail.Issue
	case o.detail.Field != "":
		return o.detail.Field + " " + o.detail.Issue
	}
	return decision.Lookup(o.code).Message
}

// noteLimit notes when a limit would have refused whose requests.
func (x *run) noteLimit(r *request, n int64, o outcome) {
	if o.code != decision.RateLimited {
		return
	}
	b := Bite{Minute: time.UnixMilli(r.Time).UTC().Truncate(ratelimit.Seconds * time.Second), Account: r.Account, Limit: o.limit.Policy, PerMinute: o.limit.Limit}
	if b.Limit == "key" {
		b.Key = r.Credential
	}
	if _, known := x.bites[b]; known || len(x.bites) < maxTold {
		x.bites[b] += n
	}
}

// report ends the run.
func (x *run) report() (out Report) {
	x.tryUntil(1 << 62)
	out.Record = x.record
	out.Record.Edges = len(x.edges)
	out.Refused, out.Allowed, out.Moved, out.Otherwise, out.Undetermined = x.refused.told(), x.allowed.told(), x.moved.told(), x.otherwise.told(), x.undetermined.told()
	out.Limits = []Bite{}
	for b, n := range x.bites {
		b.Refused = n
		out.Limits = append(out.Limits, b)
	}
	slices.SortFunc(out.Limits, func(a, b Bite) int {
		return cmp.Or(a.Minute.Compare(b.Minute), cmp.Compare(a.Account, b.Account), cmp.Compare(a.Key, b.Key), cmp.Compare(a.Limit, b.Limit), cmp.Compare(a.PerMinute, b.PerMinute))
	})
	if out.MoreLimits = max(0, len(out.Limits)-maxBites); out.MoreLimits > 0 {
		out.Limits = out.Limits[:maxBites]
	}
	return out
}
