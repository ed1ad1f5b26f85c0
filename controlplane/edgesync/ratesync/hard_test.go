package ratesync

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"sluice.dev/sluice/filters/limits/ratelimit"
	"sluice.dev/sluice/filters/limits/sharedlimit"
)

// hard is a fleet in virtual time to which anything may happen: several replicas that
// pass reports on through a table, edges and replicas with clocks of their own, messages
// that are late or lost, processes that stop, start anew and freeze. All of it comes from
// a seed.
type hard struct {
	rng      *rand.Rand
	limit    ratelimit.Limit
	strict   bool
	replicas []*hardReplica
	edges    []*hardEdge
	rows     map[string]hardRow
	offered  float64            // requests in a millisecond, at all edges
	spread   func(h *hard) int  // which edge a request goes to
	events   map[int64][]func() // what happens when
	mail     map[int64][]func()
	now      int64
	let      []int64 // when each request was let through
}

// hardRow is what Postgres holds of an edge.
type hardRow struct {
	report sharedlimit.Report
	at     int64
}

type hardReplica struct {
	table    *Table
	down     bool
	apart    bool  // from Postgres
	frozen   int64 // until then
	skew     int64
	fresh    map[string]sharedlimit.Report
	read     int64
	thawed   []func() // what came in while it was frozen
	waiting  []hardCall
	restarts int
}

// hardCall is an idle edge's call that is held back.
type hardCall struct {
	until  int64
	answer func()
}

type hardEdge struct {
	simEdge
	skew     int64
	replica  int
	cut      bool
	deaf     bool // what it sends arrives, no answer does
	dead     bool
	underWay [2]int64 // until when an idle call and a report are under way
	cached   sharedlimit.Shares
	cachedAt int64
	admitted int
}

const hardStart = 1_800_000_000_000

func newHard(seed uint64, edges, replicas int, l ratelimit.Limit, times float64) *hard {
	h := &hard{rng: rand.New(rand.NewPCG(seed, 7)), limit: l, strict: true, rows: map[string]hardRow{}, now: hardStart,
		offered: times * float64(l.PerMinute) / 60_000, events: map[int64][]func(){}, mail: map[int64][]func(){},
		spread: anywhere}
	for range replicas {
		r := &hardReplica{skew: h.skew()}
		h.replicas = append(h.replicas, r)
		h.startReplica(r)
	}
	for range edges {
		h.join()
	}
	return h
}

// anywhere spreads requests over all edges.
func anywhere(h *hard) int { return h.rng.IntN(len(h.edges)) }

// skew is how far a clock is off: any two differ by SkewMillis at most.
func (h *hard) skew() int64 { return h.rng.Int64N(sharedlimit.SkewMillis+1) - sharedlimit.SkewMillis/2 }

// join adds an edge to the fleet.
func (h *hard) join() {
	e := &hardEdge{skew: h.skew(), replica: h.rng.IntN(len(h.replicas))}
	e.name, e.phase, e.part.Boot = fmt.Sprint("edge-", len(h.edges)), h.rng.Int64N(simTick), uint64(len(h.edges)+1)<<32
	e.restart()
	h.edges = append(h.edges, e)
}

// startReplica is a new process: it knows nothing but what is in Postgres.
func (h *hard) startReplica(r *hardReplica) {
	r.restarts++
	r.table, r.fresh, r.read, r.waiting, r.thawed, r.down, r.frozen = NewTable(), map[string]sharedlimit.Report{}, 0, nil, nil, false, 0
	r.table.read = 0
	r.table.ended = func(last sharedlimit.Report) {
		name := fmt.Sprint(endedMark, last.Boot)
		last.Boot = 0
		r.fresh[name] = last
	}
}

// restartEdge is a new Envoy under the same name.
func (h *hard) restartEdge(e *hardEdge) {
	e.restart()
	e.underWay, e.cached, e.cachedAt, e.dead = [2]int64{}, sharedlimit.Shares{}, 0, false
}

func (h *hard) at(millis int64, f func()) { h.events[millis] = append(h.events[millis], f) }

func (h *hard) run(millis int64) {
	due := 0.0
	for end := h.now + millis; h.now < end; h.now++ {
		for _, f := range h.events[h.now-hardStart] {
			f()
		}
		for _, f := range h.mail[h.now] {
			f()
		}
		delete(h.mail, h.now)
		for i, r := range h.replicas {
			h.workReplica(r, int64(i))
		}
		for _, e := range h.edges {
			if h.now%simTick == e.phase && !e.dead {
				h.tick(e)
			}
		}
		for due += h.offered * h.rng.Float64() * 2; due >= 1; due-- {
			if e := h.edges[h.spread(h)]; !e.dead && h.request(e) {
				h.let = append(h.let, h.now)
				e.admitted++
			}
		}
	}
}

// request offers a request to e; its workers read what strict limits go by every 100 ms.
func (h *hard) request(e *hardEdge) bool {
	clock := h.now + e.skew
	l, f := h.limit, sharedlimit.State{Edges: e.state.Edges, Heard: e.state.Heard}.Fleet(clock)
	if h.strict {
		if clock-e.cachedAt >= sharedlimit.ReadMillis {
			e.cached, e.cachedAt = e.shares, clock
		}
		l, f.Cut = e.cached.Among(l, clock), false
	}
	id := ratelimit.AccountID(1, 0)
	w := e.window(id)
	r := w.TakeAmong(l, f, clock/1000)
	if r.OK && w.Hot(l, f, clock/1000) {
		e.hot[ratelimit.Place(ratelimit.Accounts, id, 0)] = true
	}
	return r.OK
}

// delay is how long a message takes: seldom long.
func (h *hard) delay() int64 {
	if h.rng.IntN(200) == 0 {
		return 1 + h.rng.Int64N(300)
	}
	return 1 + h.rng.Int64N(6)
}

func (h *hard) later(f func()) { at := h.now + h.delay(); h.mail[at] = append(h.mail[at], f) }

// tick is keysync's.
func (h *hard) tick(e *hardEdge) {
	clock := h.now + e.skew
	report := e.part.Report(e, clock)
	kind := 1
	if report.Idle() {
		kind = 0
	}
	if h.now < e.underWay[1] || h.now < e.underWay[kind] {
		return
	}
	e.underWay[kind] = h.now + 3000
	boot, r := e.part.Boot, h.replicas[e.replica]
	raw := report.Append(nil)
	fail := func() { e.underWay[kind] = h.now; e.replica = h.rng.IntN(len(h.replicas)) }
	if e.cut {
		return // until the timeout
	}
	h.later(func() { h.deliver(r, r.restarts, e, boot, raw, kind, fail) })
}

// deliver hands a report to a replica, when that is not frozen.
func (h *hard) deliver(r *hardReplica, process int, e *hardEdge, boot uint64, raw []byte, kind int, fail func()) {
	if r.down || r.restarts != process {
		fail()
		return
	}
	if h.now < r.frozen {
		r.thawed = append(r.thawed, func() { h.deliver(r, process, e, boot, raw, kind, fail) })
		return
	}
	report, ok := sharedlimit.ParseReport(raw)
	if !ok {
		panic("a report cannot be read")
	}
	if r.table.Take(e.name, report, h.now+r.skew) {
		r.fresh[e.name] = report
	}
	answer := func() {
		b := r.table.Answer(e.name, h.now+r.skew).Append(nil)
		h.later(func() {
			if e.cut || e.deaf || e.dead || e.part.Boot != boot {
				return
			}
			a, ok := sharedlimit.ParseAnswer(b)
			if !ok {
				panic("an answer cannot be read")
			}
			e.underWay[kind] = 0
			e.part.ApplyAnswer(e, a, int64(report.Told), h.now+e.skew)
		})
	}
	if !report.Idle() {
		answer()
		return
	}
	r.waiting = append(r.waiting, hardCall{h.now + 1000, answer})
}

// workReplica answers who has waited, and passes reports on.
func (h *hard) workReplica(r *hardReplica, i int64) {
	if r.down || h.now < r.frozen {
		return
	}
	thawed := r.thawed
	r.thawed = nil
	for _, f := range thawed {
		f()
	}
	if len(r.waiting) > 0 {
		busy := len(r.table.totals) > 0
		r.waiting = slices.DeleteFunc(r.waiting, func(c hardCall) bool {
			if busy || h.now >= c.until {
				c.answer()
				return true
			}
			return false
		})
	}
	if (h.now+i*37)%100 == 0 && !r.apart {
		h.exchange(r)
	}
}

// exchange is what relay does with Postgres.
func (h *hard) exchange(r *hardReplica) {
	names := slices.Sorted(maps.Keys(h.rows))
	h.rng.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	for _, name := range names {
		row := h.rows[name]
		switch {
		case row.at <= max(r.read-1000, h.now-sharedlimit.DeadMillis):
		case !isEnded(name):
			r.table.TakeOld(name, row.report, row.at+r.skew, h.now+r.skew)
		case r.table.read == 0:
			r.table.TakeEnded(row.report, row.at+r.skew)
		}
	}
	for name, report := range r.fresh {
		if row, there := h.rows[name]; !there || row.report.Told < report.Told {
			h.rows[name] = hardRow{report, h.now}
		}
	}
	clear(r.fresh)
	r.table.read, r.read = h.now+r.skew, h.now
}

// most is how many requests were let through in the fullest 60 seconds that ended
// between two times after the start.
func (h *hard) most(from, to int64) (most int) {
	first := 0
	for i, at := range h.let {
		for at-h.let[first] >= 60_000 {
			first++
		}
		if at >= hardStart+from && at < hardStart+to {
			most = max(most, i-first+1)
		}
	}
	return most
}

// least is how many were in the emptiest.
func (h *hard) least(from, to int64) int {
	least := 1 << 30
	for end := hardStart + from; end <= hardStart+to; end += 500 {
		i, _ := slices.BinarySearch(h.let, end-60_000)
		j, _ := slices.BinarySearch(h.let, end)
		least = min(least, j-i)
	}
	return least
}

// bound is what a strict limit lets through at most: itself, and what is offered in
// BoundSeconds.
func (h *hard) bound() float64 {
	return float64(h.limit.PerMinute) + h.offered*1000*sharedlimit.BoundSeconds + 1
}

// holds fails the test if any 60 seconds hold more than the bound.
func (h *hard) holds(t *testing.T, what string) {
	t.Helper()
	got, want := h.most(0, h.now-hardStart), h.bound()
	if float64(got) > want {
		t.Errorf("%s: 60 seconds hold %d, at most %.0f of a limit of %d were promised", what, got, want, h.limit.PerMinute)
	}
}

// anything has something happen every now and then, until an end.
func (h *hard) anything(from, to int64) {
	for at := from; at < to; at += 1 + h.rng.Int64N(6000) {
		e, r := h.rng.IntN(len(h.edges)), h.replicas[h.rng.IntN(len(h.replicas))]
		long := 100 + h.rng.Int64N([]int64{1000, 10_000, 90_000}[h.rng.IntN(3)])
		switch h.rng.IntN(11) {
		case 0, 1, 2:
			h.at(at, func() { h.edges[e].cut = true })
			h.at(at+long, func() { h.edges[e].cut = false })
		case 3:
			h.at(at, func() { h.edges[e].deaf = true })
			h.at(at+long, func() { h.edges[e].deaf = false })
		case 4:
			h.at(at, func() { h.edges[e].dead = true })
			h.at(at+long, func() { h.restartEdge(h.edges[e]) })
		case 5:
			h.at(at, func() { h.restartEdge(h.edges[e]) })
		case 6:
			h.at(at, func() { r.down = true })
			h.at(at+long, func() { h.startReplica(r) })
		case 7:
			h.at(at, func() { r.apart = true })
			h.at(at+long, func() { r.apart = false })
		case 8:
			h.at(at, func() { r.frozen = h.now + long })
		case 9:
			e2 := h.rng.IntN(len(h.edges)) // traffic moves to one edge, or is spread
			h.at(at, func() { h.spread = func(*hard) int { return e2 } })
			h.at(at+long, func() { h.spread = anywhere })
		case 10:
			if h.rng.IntN(4) == 0 {
				h.at(at, h.join)
			}
		}
	}
}
