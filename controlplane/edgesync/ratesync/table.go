// Package ratesync lets the edges of a fleet share rate limits: it takes what each
// has counted and tells it what the others have. Nothing here decides about a
// request, and nothing is kept for longer than a window.
//
// Edges may speak to any replica of the control plane, and to another one each
// time: replicas pass reports on to each other through Postgres (see relay).
package ratesync

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"sluice.dev/sluice/filters/limits/ratelimit"
	"sluice.dev/sluice/filters/limits/sharedlimit"
)

// Limits of a Table.
const (
	maxEdges   = 10_000
	maxWindows = 100_000 // of all edges together: about 60 MB
)

// Times, in milliseconds.
const (
	aliveFor = 3000  // an edge that was silent for longer is not counted as one
	maxSkew  = 5000  // a report from further in the future is not believed
	window   = 60000 // after that nothing counts any more
)

// Table is what all edges have counted in the last minute, as far as they have
// told. Reports may be repeated and come in any order: each says how it is, not
// what was added.
type Table struct {
	mu      sync.Mutex
	edges   map[string]*edge
	totals  map[ratelimit.ID]*ratelimit.Others
	hot     map[ratelimit.ID]int // how many edges have found each hot themselves
	windows int                  // in all edges
	swept   int64                // when what has left was last dropped
	lost    int64                // when a window last found no room
	read    int64                // when what other replicas know was last read; 0: never; or alone
	ghosts  []ghost              // starts of edges that have ended without saying what they counted last
	// ended is called with the last counts of an edge that has ended or started anew, under
	// the lock; nil: nobody wants them.
	ended func(sharedlimit.Report)
	busy  chan struct{} // closed when the first window becomes hot
}

// edge is one edge of the fleet.
type edge struct {
	boot, told uint64
	left       bool                              // it has ended, and said so
	former     uint64                            // the boot before
	seen       int64                             // when it was last heard of, by our clock
	windows    map[ratelimit.ID]ratelimit.Others // counted since its boot
	hot        []ratelimit.ID                    // those that it found hot itself
	strict     strictEdge
}

// NewTable returns an empty table.
func NewTable() *Table {
	return &Table{edges: map[string]*edge{}, totals: map[ratelimit.ID]*ratelimit.Others{}, hot: map[ratelimit.ID]int{}, busy: make(chan struct{}), read: alone}
}

// Take puts in what an edge has reported; now is in unix milliseconds. It
// reports false when it is not news: an old report, or one of an edge whose
// clock is wrong.
func (t *Table) Take(name string, r sharedlimit.Report, now int64) bool {
	return t.TakeOld(name, r, now, now)
}

// TakeOld is Take with a report that came to a replica at seen.
func (t *Table) TakeOld(name string, r sharedlimit.Report, seen, now int64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sweep(now)
	e := t.edges[name]
	switch {
	case int64(r.Told) > now+maxSkew || int64(r.Told) < seen-window:
		return false
	case e == nil && len(t.edges) >= maxEdges:
		return false
	case e == nil:
		e = &edge{windows: map[ratelimit.ID]ratelimit.Others{}}
		t.edges[name] = e
	case r.Told <= e.told && r.Boot != 0 && r.Boot != e.boot && r.Boot != e.former && r.Boot != e.strict.unheard:
		e.strict.unheard = r.Boot
		t.takeEnded(r, max(r.Holders, 1), seen)
		return false
	case r.Told <= e.told, r.Boot != 0 && r.Boot == e.former && r.Boot != e.boot: // of an Envoy that another has taken over from
		return false
	}
	if e.boot != r.Boot && e.boot != 0 && !e.left { // it has ended, or started anew
		e.strict.held = e.untold(now)
		t.addGhost(e.strict.held, seen)
	}
	if e.left = r.Boot == 0; !e.left && e.boot != r.Boot {
		t.end(e)
		e.boot, e.former, e.strict.since = r.Boot, e.boot, now
	}
	e.told, e.seen = r.Told, seen
	if e.strict.holders, e.strict.partial = r.Holders, r.Partial; r.Holders == 0 {
		e.strict.among = t.count()
	}
	t.coolDown(e)
	for i := range r.Entries {
		t.put(e, &r.Entries[i])
	}
	if e.left && e.boot == 0 {
		e.boot = r.Told // a name for the row that queueEnded writes once it has started anew
	}
	return true
}

// end forgets the windows of an edge that has ended, once it is known who else wants
// its last counts.
func (t *Table) end(e *edge) {
	if t.ended != nil && e.boot != 0 {
		last := sharedlimit.Report{Told: e.told, Boot: e.boot, Strict: true, Holders: e.strict.held}
		for id, w := range e.windows {
			if last.Entries = append(last.Entries, sharedlimit.Entry{ID: id, Others: w}); len(last.Entries) == sharedlimit.MaxEntries {
				break
			}
		}
		t.ended(last)
	}
	t.forget(e)
}

// coolDown takes away what e has found hot.
func (t *Table) coolDown(e *edge) {
	for _, id := range e.hot {
		if t.hot[id]--; t.hot[id] == 0 {
			delete(t.hot, id)
		}
	}
	e.hot = e.hot[:0]
}

// put replaces what e has counted in one window. An edge may lose a window to
// another one in its place, and start again: what it had counted still counts.
func (t *Table) put(e *edge, entry *sharedlimit.Entry) {
	before, known := e.windows[entry.ID]
	if !known {
		if t.windows >= maxWindows {
			t.lost = e.seen
			return
		}
		t.windows++
	}
	after := entry.Others
	if known {
		after = most(before, after)
	}
	e.windows[entry.ID] = after
	if entry.Hot && !e.left {
		e.hot = append(e.hot, entry.ID)
		t.hot[entry.ID]++
	}
	total := t.totals[entry.ID]
	if total == nil {
		total = &ratelimit.Others{Newest: after.Newest}
		t.totals[entry.ID] = total
		if len(t.totals) == 1 {
			close(t.busy)
		}
	}
	add(total, after, before)
}

// forget drops what e has counted. In the totals it stays until it has left.
func (t *Table) forget(e *edge) {
	for id, w := range e.windows {
		t.totals[id].Burst -= w.Burst
	}
	t.windows -= len(e.windows)
	clear(e.windows)
}

// most is the larger of two rings, second by second.
func most(before, after ratelimit.Others) ratelimit.Others {
	after.Newest = max(after.Newest, before.Newest)
	out := ratelimit.Others{Newest: after.Newest, Burst: after.Burst}
	for s := out.Newest - ratelimit.Seconds + 1; s <= out.Newest; s++ {
		out.Slots[s%ratelimit.Seconds] = max(after.At(s), before.At(s))
	}
	return out
}

// add adds plus and takes minus away.
func add(total *ratelimit.Others, plus, minus ratelimit.Others) {
	newest := max(total.Newest, plus.Newest)
	for s := newest - ratelimit.Seconds + 1; s <= newest; s++ {
		total.Slots[s%ratelimit.Seconds] = total.At(s) + plus.At(s) - minus.At(s)
	}
	total.Newest = newest
	total.Burst += plus.Burst - minus.Burst
}

// Answer is what the edge with the given name is to hear at now, in unix
// milliseconds: the windows in which others have counted most, and how many
// edges there are.
func (t *Table) Answer(name string, now int64) sharedlimit.Answer {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sweep(now)
	var a sharedlimit.Answer
	for other, e := range t.edges {
		if other == name || now-e.seen < aliveFor && !e.left {
			a.Edges++
		}
	}
	var own map[ratelimit.ID]ratelimit.Others
	if e := t.edges[name]; e != nil {
		own = e.windows
	}
	mine := map[ratelimit.ID]int{}
	if e := t.edges[name]; e != nil {
		for _, id := range e.hot {
			mine[id] = 1
		}
	}
	for id, total := range t.totals {
		others := *total
		add(&others, ratelimit.Others{}, own[id])
		if sum(&others) > 0 {
			a.Entries = append(a.Entries, sharedlimit.Entry{ID: id, Others: others, Hot: t.hot[id] > mine[id]})
		}
	}
	a.Members = t.members(name, now)
	if len(a.Entries) > sharedlimit.MaxEntries {
		slices.SortFunc(a.Entries, func(x, y sharedlimit.Entry) int { return cmp.Compare(sum(&y.Others), sum(&x.Others)) })
		a.Entries = a.Entries[:sharedlimit.MaxEntries]
		a.Members.Whole = false
	}
	return a
}

func sum(o *ratelimit.Others) (n uint64) {
	for _, c := range o.Slots {
		n += uint64(c)
	}
	return n
}

// Busy returns a channel that is closed as soon as anything is counted.
func (t *Table) Busy() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.busy
}

// sweep drops, once in a second, what has left every window.
func (t *Table) sweep(now int64) {
	if now-t.swept < 1000 {
		return
	}
	t.swept = now
	left := func(o *ratelimit.Others) bool { return (o.Newest+ratelimit.Seconds)*1000 <= now }
	for name, e := range t.edges {
		for id, w := range e.windows {
			if left(&w) {
				t.totals[id].Burst -= w.Burst
				delete(e.windows, id)
				t.windows--
			}
		}
		if e.seen < now-sharedlimit.DeadMillis || e.left && e.seen < now-window {
			t.forget(e)
			t.coolDown(e)
			delete(t.edges, name)
		}
	}
	t.ghosts = slices.DeleteFunc(t.ghosts, func(g ghost) bool { return g.until < now })
	had := len(t.totals) > 0
	maps.DeleteFunc(t.totals, func(_ ratelimit.ID, o *ratelimit.Others) bool { return left(o) })
	if had && len(t.totals) == 0 {
		t.busy = make(chan struct{})
	}
}
