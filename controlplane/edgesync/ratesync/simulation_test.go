package ratesync

import (
	"math/rand/v2"
	"testing"

	"sluice.dev/sluice/filters/limits/ratelimit"
	"sluice.dev/sluice/filters/limits/sharedlimit"
)

// simulation is a fleet in virtual time, in milliseconds: edges that take
// requests of one account, and the exchange between them, each message of which
// takes a while.
type simulation struct {
	rng      *rand.Rand
	table    *Table
	edges    []*simEdge
	limit    ratelimit.Limit
	perMilli float64 // requests offered in a millisecond, to all edges
	now      int64
	mail     map[int64][]func()
	let      []int64                     // when each request was let through
	refused  int                         // requests that were not
	spread   func(*simulation) int       // which edge a request goes to
	events   map[int64]func(*simulation) // what happens when
}

const (
	simStart = 1_800_000_000_000
	simTick  = 100
)

// simEdge is one edge: what its workers share, and its part of the exchange.
type simEdge struct {
	name    string
	windows map[ratelimit.ID]ratelimit.Window
	places  map[sharedlimit.Place]ratelimit.ID
	hot     map[sharedlimit.Place]bool
	state   sharedlimit.State // as the exchange has set it
	known   sharedlimit.State // as the workers have last read it
	shares  sharedlimit.Shares
	part    sharedlimit.Edge
	phase   int64
	cut     bool
}

func (e *simEdge) Hot() (list []sharedlimit.Place) {
	for p := range e.hot {
		list = append(list, p)
	}
	clear(e.hot)
	return list
}

func (e *simEdge) Share(p sharedlimit.Place, _ int64) (entry sharedlimit.Entry, ok bool) {
	if w := e.windows[e.places[p]]; w != nil {
		return sharedlimit.Entry{ID: w.ID(), Others: w.Share()}, true
	}
	return entry, false
}

func (e *simEdge) SetOthers(id ratelimit.ID, o ratelimit.Others) sharedlimit.Place {
	e.windows[id] = e.window(id).WithOthers(o)
	return ratelimit.Place(ratelimit.Accounts, id, 0)
}

func (e *simEdge) SetShares(s sharedlimit.Shares) { e.shares = s }

func (e *simEdge) SetFleet(s sharedlimit.State) { e.state = s }

func (e *simEdge) window(id ratelimit.ID) ratelimit.Window {
	if e.windows[id] == nil {
		e.windows[id] = ratelimit.New(id)
		e.places[ratelimit.Place(ratelimit.Accounts, id, 0)] = id
	}
	return e.windows[id]
}

// restart is a new Envoy under the same name.
func (e *simEdge) restart() {
	e.windows, e.places, e.hot = map[ratelimit.ID]ratelimit.Window{}, map[sharedlimit.Place]ratelimit.ID{}, map[sharedlimit.Place]bool{}
	e.state, e.known, e.shares = sharedlimit.State{}, sharedlimit.State{}, sharedlimit.Shares{}
	e.part = sharedlimit.Edge{Boot: e.part.Boot + 1}
}

// request offers one request to e.
func (e *simEdge) request(l ratelimit.Limit, now int64) bool {
	id := ratelimit.AccountID(1, 0)
	w, f := e.window(id), e.known.Fleet(now)
	r := w.TakeAmong(l, f, now/1000)
	if r.OK && w.Hot(l, f, now/1000) {
		e.hot[ratelimit.Place(ratelimit.Accounts, id, 0)] = true
	}
	return r.OK
}

func newSimulation(seed uint64, edges int, l ratelimit.Limit, times float64) *simulation {
	s := &simulation{rng: rand.New(rand.NewPCG(seed, 1)), table: NewTable(), limit: l, now: simStart,
		perMilli: times * float64(l.PerMinute) / 60_000, mail: map[int64][]func(){}, events: map[int64]func(*simulation){},
		spread: func(s *simulation) int { return s.rng.IntN(len(s.edges)) }}
	for i := range edges {
		e := &simEdge{name: string(rune('a' + i)), phase: s.rng.Int64N(simTick), part: sharedlimit.Edge{Boot: 1}}
		e.restart()
		s.edges = append(s.edges, e)
	}
	return s
}

// run lets some seconds pass.
func (s *simulation) run(seconds int64) {
	due := 0.0
	for end := s.now + seconds*1000; s.now < end; s.now++ {
		if f := s.events[s.now-simStart]; f != nil {
			f(s)
		}
		for _, f := range s.mail[s.now] {
			f()
		}
		delete(s.mail, s.now)
		for _, e := range s.edges {
			s.work(e)
		}
		for due += s.perMilli * s.rng.Float64() * 2; due >= 1; due-- {
			if s.edges[s.spread(s)].request(s.limit, s.now) {
				s.let = append(s.let, s.now)
			} else {
				s.refused++
			}
		}
	}
}

// work is what an edge does beside requests.
func (s *simulation) work(e *simEdge) {
	if s.now%1000 == e.phase {
		e.known = e.state
	}
	if s.now%simTick != e.phase || e.cut {
		return
	}
	report := e.part.Report(e, s.now)
	there, back := s.now+1+s.rng.Int64N(5), int64(0)
	back = there + 1 + s.rng.Int64N(5)
	s.mail[there] = append(s.mail[there], func() {
		s.table.Take(e.name, report, there)
		a := s.table.Answer(e.name, there)
		s.mail[back] = append(s.mail[back], func() { e.part.ApplyAnswer(e, a, int64(report.Told), back) })
	})
}

// most returns how many requests were let through in the fullest window of 60
// seconds that ended between two times, and in the emptiest.
func (s *simulation) extremes(from, to int64) (most, least int) {
	least = 1 << 30
	for end := from; end <= to; end += 100 {
		n := 0
		for _, at := range s.let {
			if at -= simStart; at > end-60_000 && at <= end {
				n++
			}
		}
		most, least = max(most, n), min(least, n)
	}
	return most, least
}

// within fails the test unless every full window between two times, in seconds
// from the start, held between low and high of the limit.
func (s *simulation) within(t *testing.T, from, to int64, low, high float64) {
	t.Helper()
	most, least := s.extremes(from*1000, to*1000)
	per := float64(s.limit.PerMinute)
	t.Logf("windows that end from %d s to %d s: %.3f to %.3f of the limit", from, to, float64(least)/per, float64(most)/per)
	if float64(most) > high*per+1 || float64(least) < low*per-1 {
		t.Errorf("windows from %d s to %d s hold %d to %d, want %.0f to %.0f", from, to, least, most, low*per, high*per)
	}
}

func TestThreeEdgesUnderTenTimesTheLimit(t *testing.T) {
	t.Parallel()
	for _, perMinute := range []uint32{60, 600, 6000} {
		for seed := range uint64(3) {
			s := newSimulation(seed, 3, ratelimit.Limit{PerMinute: perMinute}, 10)
			s.run(3) // the edges find each other
			s.let = nil
			s.run(240)
			s.within(t, 63, 243, 0.98, 1.05)
		}
	}
}

// An account whose requests all go to one edge has its whole limit there; when
// they move to another one, that knows what has been used.
func TestAllTrafficAtOneEdgeThenAtAnother(t *testing.T) {
	t.Parallel()
	s := newSimulation(7, 3, ratelimit.Limit{PerMinute: 600}, 10)
	s.spread = func(s *simulation) int {
		if s.now < simStart+100_000 {
			return 0
		}
		return 1
	}
	s.run(200)
	s.within(t, 60, 200, 0.98, 1.05)
}

// Edges that are cut off keep to a fair share; the others go on with what they
// know of them. After all are together again no request counts twice.
func TestAnEdgeIsCutOffAndRejoins(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3) {
		s := newSimulation(seed, 3, ratelimit.Limit{PerMinute: 600}, 10)
		var cutLet int
		s.events[100_000] = func(s *simulation) { s.edges[0].cut = true }
		s.events[250_000] = func(s *simulation) {
			s.edges[0].cut = false
			cutLet = int(s.edges[0].window(ratelimit.AccountID(1, 0)).Total())
		}
		s.run(400)
		s.within(t, 60, 100, 0.98, 1.05)
		s.within(t, 100, 250, 0.94, 1.05+1.0/3)
		s.within(t, 315, 400, 0.98, 1.05)
		if cutLet > 600/3 || cutLet < 600/3*98/100 {
			t.Errorf("alone it let %d through in a window, want 200", cutLet)
		}
	}
}

// With the control plane gone every edge is alone with its share, and the fleet
// keeps the limit.
func TestTheControlPlaneIsGone(t *testing.T) {
	t.Parallel()
	s := newSimulation(5, 3, ratelimit.Limit{PerMinute: 600}, 10)
	s.events[100_000] = func(s *simulation) {
		for _, e := range s.edges {
			e.cut = true
		}
	}
	s.run(300)
	s.within(t, 60, 300, 0.90, 1.05)
	s.within(t, 170, 300, 0.95, 1.05) // each by itself, to the second
}

// An edge that starts anew has forgotten what it let through; the fleet has not.
func TestAnEdgeIsRestarted(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3) {
		s := newSimulation(seed, 3, ratelimit.Limit{PerMinute: 600}, 10)
		for _, at := range []int64{90_000, 100_000, 130_500} {
			s.events[at] = func(s *simulation) { s.edges[0].restart() }
		}
		s.run(250)
		s.within(t, 60, 250, 0.98, 1.05)
	}
}

// A replica of the control plane that starts anew knows nothing until the edges
// have told it again, which they do whole.
func TestTheControlPlaneIsRestarted(t *testing.T) {
	t.Parallel()
	s := newSimulation(9, 3, ratelimit.Limit{PerMinute: 600}, 10)
	s.events[100_000] = func(s *simulation) { s.table = NewTable() }
	s.run(200)
	s.within(t, 60, 200, 0.98, 1.05)
}

// The burst of a plan is the fleet's, not each edge's.
func TestABurstIsSharedToo(t *testing.T) {
	t.Parallel()
	for n := range 3 {
		s := newSimulation(3, n+1, ratelimit.Limit{PerMinute: 600, Burst: 300}, 10)
		s.run(300)
		s.within(t, 60, 65, 0.98, 1.5*1.05) // the burst
		s.within(t, 125, 300, 0.98, 1.05)   // throttled to the rate
	}
}
