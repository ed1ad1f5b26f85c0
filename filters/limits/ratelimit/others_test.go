package ratelimit

import (
	"math/rand/v2"
	"testing"
)

// What other edges have counted counts like this edge's own: a window with a
// tail answers as one would in which all were counted.
func TestATailCountsLikeOwnRequests(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(5, 6))
	for round := range 300 {
		began := int64(1_800_000_000 + rng.IntN(1000))
		all, others := New(ID{1}), Others{Newest: began}
		for s := began - Seconds + 1; s <= began; s++ {
			n := rng.IntN(3) * rng.IntN(3)
			others.Slots[s%Seconds] = uint32(n)
			for range n {
				all.Take(Limit{PerMinute: 1 << 30}, s)
			}
		}
		own := New(ID{1}).WithOthers(others)
		l := Limit{PerMinute: uint32(1 + rng.IntN(100))}
		for i, now := 0, began; i < 300; i++ {
			now += rng.Int64N(3) * rng.Int64N(2)
			got, want := own.Take(l, now), all.Take(l, now)
			if got != want {
				t.Fatalf("round %d, request %d, %d s after the others' last, %+v:\n got %+v\nwant %+v", round, i, now-began, l, got, want)
			}
		}
	}
}

func TestTheOthersPaceIsBelievedForASecond(t *testing.T) {
	t.Parallel()
	const now = 1_800_000_000
	w := New(ID{}).WithOthers(Others{Newest: now, Pace: 20_000, Millis: 1<<32 - 100}) // 20 a second; the clock's low bits wrap
	for _, c := range []struct {
		millis uint32
		left   uint32
	}{{1<<32 - 100, 99}, {1<<32 - 101, 99}, {0, 97}, {400, 89}, {900, 79}, {5000, 79}} {
		early := append(Window(nil), w...)
		if r := early.TakeAmong(Limit{PerMinute: 100}, Fleet{Edges: 2, Millis: c.millis}, now); r.Remaining != c.left {
			t.Errorf("at %d ms: %d left, want %d", c.millis, r.Remaining, c.left)
		}
	}
	if r := w.TakeAmong(Limit{PerMinute: 100}, Fleet{Edges: 4, Cut: true}, now); r.Remaining != 24 || r.Limit != 100 {
		t.Errorf("cut off: %+v", r)
	}
}

func TestWhenAWindowIsHot(t *testing.T) {
	t.Parallel()
	w, l, f := New(ID{}), Limit{PerMinute: 60}, Fleet{Edges: 3}
	for i := range 12 {
		w.Take(l, 1000)
		if got, want := w.Hot(l, f, 1000), i == 9; got != want { // a half of a third; and once in a second
			t.Errorf("after %d requests: %v", i+1, got)
		}
	}
	if !w.Hot(l, f, 1001) || w.Hot(l, Fleet{}, 1002) || w.Hot(l, Fleet{Edges: 1}, 1002) {
		t.Error("in the next second it is again, and alone it never is")
	}
}
