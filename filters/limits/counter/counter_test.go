package counter

import (
	"math/rand/v2"
	"slices"
	"testing"

	"sluice.dev/sluice/filters/limits/ratelimit"
	"sluice.dev/sluice/filters/limits/sharedlimit"
)

// store is one as Envoy's shared data is: one count of versions for all values.
type store struct {
	values    map[sharedlimit.Place]value
	version   uint32
	gets      int
	refused   int
	meanwhile func() // runs once, before the next Set: somebody else is faster
}

type value struct {
	window  []byte
	version uint32
}

func newStore() *store { return &store{values: map[sharedlimit.Place]value{}} }

func (s *store) Get(p sharedlimit.Place) (ratelimit.Window, uint32) {
	s.gets++
	v := s.values[p]
	return slices.Clone(v.window), v.version
}

func (s *store) Set(p sharedlimit.Place, w ratelimit.Window, version uint32) bool {
	if f := s.meanwhile; f != nil {
		s.meanwhile = nil
		f()
	}
	if v, ok := s.values[p]; ok && version != 0 && version != v.version {
		s.refused++
		return false
	}
	if s.version++; s.version == 0 {
		s.version = 1
	}
	s.values[p] = value{slices.Clone(w), s.version}
	return true
}

// log is the truth: when each request of an id was let through.
type log map[ratelimit.ID][]int64

// counted is how many of id count at now.
func (l log) counted(id ratelimit.ID, now int64) (n uint32) {
	for _, at := range l[id] {
		if at > now-ratelimit.Seconds {
			n++
		}
	}
	return n
}

// Whatever several workers do to the same windows, and to each other's guesses,
// each request is let through exactly when the log says so, and told the truth.
func TestWorkersAgainstALog(t *testing.T) {
	t.Parallel()
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 1))
		s, truth, now := newStore(), log{}, int64(1_800_000_000)
		if seed%4 == 0 {
			s.version = ^uint32(0) - 300 // versions come round
		}
		workers := make([]Counter, 1+seed%4)
		limit := ratelimit.Limit{PerMinute: 20 + uint32(seed)*7}
		ids := make([]ratelimit.ID, 1+r.IntN(60))
		for i := range ids {
			ids[i] = ratelimit.AccountID(r.Uint64(), 1)
		}
		take := func(worker int) {
			id := ids[r.IntN(len(ids))]
			calm := s.meanwhile == nil
			look := Look(s, ratelimit.Accounts, id, limit, ratelimit.Fleet{}, now)
			got, _, _ := workers[worker].Take(s, ratelimit.Accounts, id, limit, ratelimit.Fleet{}, now)
			if look != got && calm {
				t.Fatalf("seed %d: a look gave %+v, a request %+v", seed, look, got)
			}
			n := truth.counted(id, now)
			if got.OK != (n < limit.PerMinute) || got.OK && got.Remaining != limit.PerMinute-n-1 {
				t.Fatalf("seed %d: %d of %d counted, got %+v", seed, n, limit.PerMinute, got)
			}
			if got.OK {
				truth[id] = append(truth[id], now)
			}
		}
		for range 4000 {
			switch x := r.IntN(100); {
			case x < 2:
				now += int64(r.IntN(4))
			case x < 4: // somebody writes something else
				s.Set(sharedlimit.Place{'x', 0, 0, byte(r.IntN(3))}, ratelimit.Window("x"), 0)
			case x < 6:
				SetOthers(s, ids[r.IntN(len(ids))], ratelimit.Others{})
			case x < 9:
				id := ids[r.IntN(len(ids))]
				if l := truth[id]; len(l) > 0 && l[len(l)-1] == now {
					workers[r.IntN(len(workers))].GiveBack(s, ratelimit.Accounts, id, now)
					truth[id] = l[:len(l)-1]
				}
			case x < 20 && len(workers) > 1:
				// Another one counts between a worker's look and its write.
				slow, id := r.IntN(len(workers)), ids[r.IntN(len(ids))]
				s.meanwhile = func() { take((slow + 1) % len(workers)) }
				got, _, _ := workers[slow].Take(s, ratelimit.Accounts, id, limit, ratelimit.Fleet{}, now)
				if s.meanwhile = nil; got.OK {
					truth[id] = append(truth[id], now)
				}
				if n := truth.counted(id, now); n > limit.PerMinute {
					t.Fatalf("seed %d: %d of %d were let through", seed, n, limit.PerMinute)
				}
			default:
				take(r.IntN(len(workers)))
			}
		}
	}
}

// A worker that is alone reads each window once, however many there are room for.
func TestAWorkerAloneDoesNotRead(t *testing.T) {
	t.Parallel()
	s, c := newStore(), Counter{}
	limit := ratelimit.Limit{PerMinute: 1 << 30}
	id := ratelimit.AccountID(7, 1)
	for range 1000 {
		c.Take(s, ratelimit.Accounts, id, limit, ratelimit.Fleet{}, 1_800_000_000)
	}
	// The first write of a store tells nobody its version: the second reads again.
	if s.gets > 3 || s.refused > 0 {
		t.Errorf("%d reads, %d refused writes for 1000 requests", s.gets, s.refused)
	}
}

// Among workers that take turns guesses are wrong, and soon nobody guesses: a
// refused write must stay rare.
func TestWorkersThatTakeTurnsStopGuessing(t *testing.T) {
	t.Parallel()
	s, workers := newStore(), make([]Counter, 2)
	limit := ratelimit.Limit{PerMinute: 1 << 30}
	for n := range 1000 {
		id := ratelimit.AccountID(uint64(n%2), 1)
		workers[n%2].Take(s, ratelimit.Accounts, id, limit, ratelimit.Fleet{}, 1_800_000_000)
	}
	if s.refused > 2*maxHitScore {
		t.Errorf("%d refused writes of 1000", s.refused)
	}
	// Alone again, the one who is left learns it.
	before := s.gets
	for range 1000 {
		workers[0].Take(s, ratelimit.Accounts, ratelimit.AccountID(0, 1), limit, ratelimit.Fleet{}, 1_800_000_000)
	}
	if n := s.gets - before; n > 3*maxHitScore {
		t.Errorf("%d reads of 1000, alone", n)
	}
}

// What a VM remembers is used for a window's length, far less than versions take to
// come round.
func TestOldMemoriesAreNotUsed(t *testing.T) {
	t.Parallel()
	s, c, id := newStore(), Counter{}, ratelimit.AccountID(7, 1)
	take := func(now int64) {
		c.Take(s, ratelimit.Accounts, id, ratelimit.Limit{PerMinute: 100}, ratelimit.Fleet{}, now)
	}
	for range 3 {
		take(1000)
	}
	for _, now := range []int64{1000 + ratelimit.Seconds, 1000} { // later, and set back
		before := s.gets
		if take(now); s.gets == before {
			t.Errorf("at %d nothing was read", now)
		}
	}
}
