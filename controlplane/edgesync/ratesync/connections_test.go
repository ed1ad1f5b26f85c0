package ratesync

import (
	"math/rand/v2"
	"testing"

	"sluice.dev/sluice/filters/limits/connections"
	"sluice.dev/sluice/filters/limits/ratelimit"
	"sluice.dev/sluice/filters/limits/sharedlimit"
)

// holders is an edge of a fleet whose workers hold open connections of one account.
type holders struct {
	name    string
	records map[sharedlimit.Place]connections.Record
	hot     map[sharedlimit.Place]bool
	state   sharedlimit.State
	part    sharedlimit.Edge
	workers []*connections.Holder
	open    int
	phase   int64
	cut     bool
	now     int64
}

var held = connections.AccountID(1, 0)

func (e *holders) Get(p sharedlimit.Place) (connections.Record, uint32) {
	r := e.records[p]
	if r == nil {
		return nil, 0
	}
	return append(connections.Record(nil), r...), 1
}

func (e *holders) Set(p sharedlimit.Place, r connections.Record, _ uint32) bool {
	e.records[p] = append(connections.Record(nil), r...)
	return true
}

func (e *holders) Hot() (list []sharedlimit.Place) {
	for p := range e.hot {
		list = append(list, p)
	}
	clear(e.hot)
	return list
}

func (e *holders) Share(p sharedlimit.Place, now int64) (entry sharedlimit.Entry, ok bool) {
	r := connections.Get(e, p)
	if r == nil {
		return entry, false
	}
	return sharedlimit.Entry{ID: r.ID(), Others: r.Share(now)}, true
}

func (e *holders) SetOthers(id ratelimit.ID, o ratelimit.Others) sharedlimit.Place {
	return connections.SetOthers(e, id, o, e.now/1000)
}

func (e *holders) SetFleet(s sharedlimit.State) { e.state = s }
func (e *holders) SetShares(sharedlimit.Shares) {}

// fleet is some edges in virtual time, in milliseconds, and the exchange between them.
type fleet struct {
	rng   *rand.Rand
	table *Table
	edges []*holders
	limit uint32
	now   int64
	mail  map[int64][]func()
	most  int // open at once
}

func newFleet(seed uint64, edges int, limit uint32) *fleet {
	f := &fleet{rng: rand.New(rand.NewPCG(seed, 7)), table: NewTable(), limit: limit, now: simStart, mail: map[int64][]func(){}}
	for i := range edges {
		e := &holders{name: string(rune('a' + i)), records: map[sharedlimit.Place]connections.Record{}, hot: map[sharedlimit.Place]bool{},
			part: sharedlimit.Edge{Boot: 1}, phase: f.rng.Int64N(simTick), workers: []*connections.Holder{connections.New(1), connections.New(2)}}
		f.edges = append(f.edges, e)
	}
	return f
}

func (f *fleet) open() (n int) {
	for _, e := range f.edges {
		n += e.open
	}
	return n
}

// take opens one connection at an edge, if it lets it.
func (f *fleet) take(e *holders) bool {
	w := e.workers[f.rng.IntN(2)]
	ok, hot := w.Take(e, held, f.limit, e.state.Fleet(f.now), f.now)
	if hot != nil {
		e.hot[*hot] = true
	}
	if ok {
		e.open++
		f.most = max(f.most, f.open())
	}
	return ok
}

// run lets some milliseconds pass; each is what clients do in each of them.
func (f *fleet) run(millis int64, each func()) {
	for end := f.now + millis; f.now < end; f.now++ {
		for _, deliver := range f.mail[f.now] {
			deliver()
		}
		delete(f.mail, f.now)
		for _, e := range f.edges {
			e.now = f.now
			f.work(e)
		}
		each()
	}
}

// work is what an edge does beside connections.
func (f *fleet) work(e *holders) {
	if f.now%(connections.RenewEvery*1000) == 10*e.phase {
		for _, w := range e.workers {
			w.Renew(e, f.now, func(p sharedlimit.Place) { e.hot[p] = true })
		}
	}
	if f.now%simTick != e.phase || e.cut {
		return
	}
	report := e.part.Report(e, f.now)
	there := f.now + 1 + f.rng.Int64N(50)
	back := there + 1 + f.rng.Int64N(50)
	f.mail[there] = append(f.mail[there], func() { f.table.Take(e.name, report, there) })
	f.mail[back] = append(f.mail[back], func() {
		if !e.cut {
			e.part.ApplyAnswer(e, f.table.Answer(e.name, back), int64(report.Told), back)
		}
	})
}

// bound is how many connections a fleet that hears of itself may have open: the limit, an
// eighth of it that edges need not tell of, and one for each edge.
func (f *fleet) bound() int { return int(f.limit) + int(f.limit)/8 + len(f.edges) }

// However clients go about it, a fleet has no more open than its bound, and all that the
// limit allows can be had.
func TestFleetsHoldTheLimitOfConnections(t *testing.T) {
	t.Parallel()
	worst := 0.0
	for _, size := range []int{2, 3, 8} {
		for _, limit := range []uint32{1, 5, 40, 1000} {
			for seed := range uint64(8) {
				f := newFleet(seed, size, limit)
				f.run(3000, func() {}) // until they know of each other
				spell := 1 + f.rng.Int64N(1500)
				f.run(6000, func() {
					switch {
					case seed < 2: // all at once, everywhere
						for _, e := range f.edges {
							f.take(e)
						}
					case seed < 4: // in bursts at one after the other
						if f.now%spell == 0 {
							for e := f.edges[f.now/spell%int64(size)]; f.take(e); {
							}
						}
					case seed < 6: // in bursts everywhere
						if f.now%spell < 2 {
							for _, e := range f.edges {
								for f.take(e) {
								}
							}
						}
					default: // here and there
						if f.rng.IntN(5) == 0 {
							f.take(f.edges[f.rng.IntN(size)])
						}
					}
				})
				f.run(8000, func() {
					for _, e := range f.edges {
						f.take(e)
					}
				})
				if f.most > f.bound() {
					t.Errorf("%d edges, limit %d, clients of kind %d: %d open, bound %d", size, limit, seed/2, f.most, f.bound())
				}
				if f.most < int(limit) {
					t.Errorf("%d edges, limit %d, clients of kind %d: only %d could be had", size, limit, seed/2, f.most)
				}
				if limit == 1000 {
					worst = max(worst, float64(f.most)/float64(limit))
				}
			}
		}
	}
	t.Logf("worst with a limit of 1000: %.3f of it", worst)
}

// While an edge is cut off it has its share open, and the others what they can have: the
// fleet has at most the limit and what that edge had, or its share if that is more.
func TestAnEdgeThatIsCutOffHasItsShare(t *testing.T) {
	t.Parallel()
	for seed := range uint64(6) {
		f := newFleet(seed, 3, 90)
		f.run(3000, func() {})
		f.run(10_000, func() { f.take(f.edges[f.rng.IntN(3)]) })
		had := f.edges[0].open
		f.edges[0].cut = true
		f.run(20_000, func() {
			for _, e := range f.edges {
				f.take(e)
			}
		})
		if bound := f.bound() + max(had, 30); f.most > bound {
			t.Errorf("%d open, bound %d", f.most, bound)
		}
		if f.edges[0].open > max(had, 30) {
			t.Errorf("cut off, it went from %d to %d", had, f.edges[0].open)
		}
	}
}

// An edge that dies gives back what it had: the others have it as soon as it is not heard.
func TestPlacesOfADeadEdgeComeBack(t *testing.T) {
	t.Parallel()
	f := newFleet(1, 3, 90)
	f.run(3000, func() {})
	f.run(10_000, func() { f.take(f.edges[f.rng.IntN(3)]) })
	f.edges[0].cut, f.edges[0].open = true, 0
	f.run(6000, func() {
		for _, e := range f.edges[1:] {
			f.take(e)
		}
	})
	if n := f.open(); n < 90 {
		t.Errorf("%d of 90 are open", n)
	}
}
