package ratesync

import (
	"fmt"
	"testing"

	"sluice.dev/sluice/filters/limits/ratelimit"
	"sluice.dev/sluice/filters/limits/sharedlimit"
)

// Whatever is cut, dies, starts anew, freezes, joins or loses its clock, a strict limit
// lets no more through than was promised. 2,000 schedules let at most 0.86 of the 3
// seconds through that are promised beside the limit; two of the first 400, 57 and 118, once
// let more.
func TestStrictUnderAnySchedule(t *testing.T) {
	t.Parallel()
	worst := 0.0
	seeds := []uint64{57, 118}
	for seed := range uint64(46) {
		seeds = append(seeds, seed)
	}
	for _, seed := range seeds {
		edges, times := []int{2, 3, 5, 8}[seed%4], []float64{1.5, 3, 10}[seed%3]
		h := newHard(seed, edges, 1+int(seed/3%3), ratelimit.Limit{PerMinute: 600}, times)
		h.anything(5000, 300_000)
		h.run(320_000)
		h.holds(t, fmt.Sprintf("seed %d, %d edges, %g times the limit", seed, edges, times))
		worst = max(worst, (float64(h.most(0, 320_000))-600)/(h.offered*1000))
	}
	t.Logf("most beside the limit: what is offered in %.2f s", worst)
}

// cutting lets a fleet use up a limit at the edges that stay connected, cuts others off
// and has requests come to all.
func cutting(strict bool, edges, cut int, l ratelimit.Limit) *hard {
	h := newHard(1, edges, 2, l, 4)
	h.strict = strict
	connected := func(h *hard) int { return cut + h.rng.IntN(edges-cut) }
	if cut == edges {
		connected = func(*hard) int { return 0 }
	}
	h.spread = connected
	h.at(25_000, func() {
		h.spread = anywhere
		for _, e := range h.edges[:cut] {
			e.cut = true
		}
	})
	h.run(190_000)
	return h
}

// While some edges are cut off, an available limit lets through what these may have by
// their shares besides all of it; a strict one does not. The figures are those of
// docs/fleet.md.
func TestEdgesAreCutOff(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		edges, cut       int
		perMinute        uint32
		available        [2]float64 // the most that it lets through, from and to
		strict, leastOfs float64    // the most and, once all know, the least of a strict one
	}{
		{1, 1, 600, [2]float64{0.98, 1.05}, 1.05, 0.95},
		{2, 1, 600, [2]float64{1.40, 1.55}, 1.05, 0.95},
		{3, 1, 600, [2]float64{1.28, 1.40}, 1.05, 0.95},
		{3, 2, 600, [2]float64{1.60, 1.72}, 1.05, 0.95},
		{3, 3, 600, [2]float64{1.60, 1.72}, 1.05, 0.95},
		{128, 32, 12_800, [2]float64{1.20, 1.32}, 1.08, 0.95},
		{128, 128, 12_800, [2]float64{1.90, 2.02}, 1.08, 0.90},
	} {
		t.Run(fmt.Sprintf("%d of %d", c.cut, c.edges), func(t *testing.T) {
			t.Parallel()
			l := ratelimit.Limit{PerMinute: c.perMinute}
			per := float64(c.perMinute)
			open := cutting(false, c.edges, c.cut, l)
			shut := cutting(true, c.edges, c.cut, l)
			a, s := float64(open.most(20_000, 190_000))/per, float64(shut.most(20_000, 190_000))/per
			least, least2 := float64(shut.least(187_000, 190_000))/per, float64(shut.least(60_000, 190_000))/per
			t.Logf("available: %.3f; strict: %.3f, from two minutes after the cut on no less than %.3f, before than %.3f", a, s, least, least2)
			if a < c.available[0] || a > c.available[1] {
				t.Errorf("available lets %.3f through", a)
			}
			if s > c.strict || least < c.leastOfs {
				t.Errorf("strict lets %.3f to %.3f through", least, s)
			}
		})
	}
}

// An edge that is cut off for longer than its lease has no share any more; the others
// have it once that is certain, and it has it again after it has come back.
func TestALeaseEnds(t *testing.T) {
	t.Parallel()
	h := newHard(3, 3, 2, ratelimit.Limit{PerMinute: 600}, 5)
	c := h.edges[0]
	h.at(100_000, func() { c.cut = true })
	var served, leased int
	h.at(100_000+sharedlimit.LeaseMillis-70_000, func() { served = c.admitted })
	h.at(100_000+sharedlimit.LeaseMillis+sharedlimit.SkewMillis, func() { leased = c.admitted })
	h.at(100_000+sharedlimit.DeadMillis+90_000, func() { c.cut = false })
	h.run(100_000 + sharedlimit.DeadMillis + 89_000)
	if c.admitted != leased || leased == served || served == 0 {
		t.Errorf("%d until near the end of the lease, %d at it, %d after", served, leased, c.admitted)
	}
	held, free := h.most(280_000, 90_000+sharedlimit.LeaseMillis), h.least(100_000+sharedlimit.DeadMillis+80_000, 100_000+sharedlimit.DeadMillis+89_000)
	if held > 630 || free < 580 {
		t.Errorf("with a share held back %d, without %d", held, free)
	}
	h.run(300_000)
	h.holds(t, "after all")
	if now := c.admitted - leased; now < 100 {
		t.Errorf("after it came back the edge let %d through", now)
	}
}

// An edge that is dead holds its share back for as long as it might live; one that said
// that it ends does not.
func TestAnEdgeDiesOrLeaves(t *testing.T) {
	t.Parallel()
	for _, says := range []bool{false, true} {
		h := newHard(5, 3, 2, ratelimit.Limit{PerMinute: 600}, 5)
		h.at(100_000, func() {
			e := h.edges[0]
			e.dead = true
			h.spread = func(h *hard) int { return 1 + h.rng.IntN(2) }
			if says {
				last := e.part.Report(e, h.now+e.skew)
				last.Boot = 0
				h.deliver(h.replicas[0], h.replicas[0].restarts, e, 0, last.Append(nil), 0, func() {})
			}
		})
		h.run(300_000)
		h.holds(t, fmt.Sprint("it says so: ", says))
		least, most := h.least(200_000, 300_000), h.most(200_000, 300_000)
		t.Logf("it says so: %v: %d to %d of 600", says, least, most)
		if says && least < 585 || !says && (most > 420 || least < 390) {
			t.Errorf("it says so: %v: the others let %d to %d through", says, least, most)
		}
	}
}

// A fleet that grows shares anew without letting too much through, also while an edge is
// cut off that knows nothing of it.
func TestAFleetGrows(t *testing.T) {
	t.Parallel()
	for _, cut := range []bool{false, true} {
		h := newHard(9, 1, 2, ratelimit.Limit{PerMinute: 600}, 10)
		for at := int64(60_000); at < 200_000; at += 20_000 {
			h.at(at, h.join)
		}
		h.at(90_000, func() { h.edges[0].cut = cut })
		h.run(300_000)
		for i, e := range h.edges {
			if want := uint32(len(h.edges)); !cut && (e.shares.Holders != want) {
				t.Errorf("edge %d holds 1 of %d, want of %d", i, e.shares.Holders, want)
			}
		}
		h.at(300_000, func() { h.edges[0].cut = false })
		h.run(60_000)
		h.holds(t, fmt.Sprint("one is cut off: ", cut))
	}
}

// Seldom few edges have most of the requests, each less than it would tell of by itself:
// those that the others have told of are told too.
func TestOneEdgeHasMostRequests(t *testing.T) {
	t.Parallel()
	for _, strict := range []bool{false, true} {
		h := newHard(4, 3, 1, ratelimit.Limit{PerMinute: 600}, 10)
		h.strict = strict
		h.spread = func(h *hard) int {
			if h.rng.IntN(100) < 2 {
				return 1 + h.rng.IntN(2)
			}
			return 0
		}
		h.run(200_000)
		if most := h.most(60_000, 200_000); most > 620 {
			t.Errorf("strict %v: %d of 600", strict, most)
		}
	}
}
