package ratelimit

import (
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"
)

// log is the brute-force oracle: it remembers the second of every request.
type log struct {
	seconds []int64
	used    int64 // burst, in sixtieths
	last    int64
}

func (o *log) take(l Limit, now int64) Result {
	if o.last-now >= Seconds { // set back: all that counts is as new
		o.last = now
		for i := range o.seconds {
			o.seconds[i] = now
		}
	}
	if now > o.last {
		if d := now - o.last; len(o.seconds) < int(l.PerMinute) || d >= Seconds {
			o.used = max(0, o.used-d*int64(l.Burst))
		}
		o.last = now
	}
	for len(o.seconds) > 0 && o.seconds[0] <= o.last-Seconds {
		o.seconds = o.seconds[1:]
	}
	r := Result{Limit: l.PerMinute}
	n := len(o.seconds)
	switch {
	case n < int(l.PerMinute):
		r.OK = true
	case o.used+Seconds <= int64(l.Burst)*Seconds:
		o.used += Seconds
		r.OK = true
	default:
		r.RetryAfter = int(o.seconds[n-int(l.PerMinute)] + Seconds - o.last)
	}
	if r.OK {
		o.seconds = append(o.seconds, o.last)
		r.Remaining = uint32(max(0, int(l.PerMinute)-n-1))
	}
	r.Reset = o.seconds[0] + Seconds
	return r
}

// traffic gives the gap before the next request, in seconds.
var traffic = map[string]func(*rand.Rand) int64{
	"flood":           func(*rand.Rand) int64 { return 0 },
	"steady":          func(r *rand.Rand) int64 { return r.Int64N(2) },
	"bursts":          func(r *rand.Rand) int64 { return max(0, r.Int64N(60)-50) * r.Int64N(8) },
	"at the boundary": func(r *rand.Rand) int64 { return []int64{0, 0, 0, 0, 59, 60, 61, 1}[r.IntN(8)] },
	"long silences":   func(r *rand.Rand) int64 { return r.Int64N(200) * r.Int64N(2) },
	"clock back":      func(r *rand.Rand) int64 { return r.Int64N(5) - 2 },
}

func TestWindowAgainstALogOfEveryRequest(t *testing.T) {
	t.Parallel()
	for name, gap := range traffic {
		for _, l := range []Limit{{PerMinute: 1}, {PerMinute: 5}, {PerMinute: 5, Burst: 3}, {PerMinute: 60, Burst: 30}, {PerMinute: 1000}} {
			rng := rand.New(rand.NewPCG(uint64(l.PerMinute), uint64(l.Burst)))
			w, o, now := New(AccountID(1, 2)), &log{}, int64(1_700_000_000)
			for i := range 20_000 {
				now += gap(rng)
				got, want := w.Take(l, now), o.take(l, now)
				if got != want {
					t.Fatalf("%s, %+v, request %d at %d:\n got %+v\nwant %+v", name, l, i, now, got, want)
				}
			}
		}
	}
}

func TestWaitingForRetryAfterGetsThrough(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(3, 4))
	w, l, now := New(ID{}), Limit{PerMinute: 7}, int64(1_700_000_000)
	for range 10_000 {
		now += rng.Int64N(4)
		if r := w.Take(l, now); !r.OK {
			if early := append(Window(nil), w...); r.RetryAfter > 1 && early.Take(l, now+int64(r.RetryAfter)-1).OK {
				t.Fatal("a shorter wait would have been enough")
			}
			now += int64(r.RetryAfter)
			if !w.Take(l, now).OK {
				t.Fatalf("waited %d s in vain", r.RetryAfter)
			}
		}
	}
}

// A clock that was ahead and is set back forgets nothing, and holds a limit up for
// no longer than a window.
func TestClockSetBack(t *testing.T) {
	t.Parallel()
	l, right := Limit{PerMinute: 5}, int64(1_700_000_000)
	for _, ahead := range []int64{1, 30, 59, 60, 61, 300, 86_400} {
		w := New(AccountID(1, 2))
		for range 4 {
			w.Take(l, right+ahead)
		}
		if r := w.Take(l, right); !r.OK || r.Remaining != 0 {
			t.Errorf("%d s ahead: the fifth request: %+v", ahead, r)
		}
		r := w.Take(l, right+1)
		if r.OK || r.RetryAfter > Seconds || r.Reset > right+Seconds+min(ahead, Seconds) {
			t.Errorf("%d s ahead: the sixth request: %+v", ahead, r)
		}
		if w.Take(l, right+Seconds-1).OK {
			t.Errorf("%d s ahead: the limit is forgotten within a window", ahead)
		}
		if r := w.Take(l, right+Seconds+min(ahead, Seconds)); !r.OK || r.Remaining != 4 {
			t.Errorf("%d s ahead: a window later: %+v", ahead, r)
		}
	}
}

func TestLimitOfNothing(t *testing.T) {
	t.Parallel()
	r := New(ID{}).Take(Limit{}, 1000)
	if r.OK || r.RetryAfter < 1 || r.Reset <= 1000 {
		t.Fatalf("%+v", r)
	}
}

func TestOwnership(t *testing.T) {
	t.Parallel()
	a, b := AccountID(1, 0), AccountID(1, 1)
	w := New(a)
	if !w.Is(a) || w.Is(b) || Window(nil).Is(a) || KeyID(1) == a {
		t.Error("Is")
	}
	w.Take(Limit{PerMinute: 5}, 1000)
	if w.Free(1059) || !w.Free(1060) || !Window("short").Free(0) || w.Total() != 1 {
		t.Error("Free")
	}
}

func TestPlacesAreSpreadAndKindsApart(t *testing.T) {
	t.Parallel()
	seen := map[[PlaceKeyLen]byte]int{}
	for i := range uint64(Places) {
		seen[Place(Accounts, AccountID(i, 0), 0)]++
	}
	if len(seen) < Places*6/10 { // 1-1/e of the places for random spreading
		t.Errorf("%d accounts share %d places", Places, len(seen))
	}
	if Place(Accounts, ID{}, 0) == Place(Addresses, ID{}, 0) {
		t.Error("an account and an address share a place")
	}
	id := AccountID(77, 3)
	if Place(Accounts, id, 0) == Place(Accounts, id, 1) || Place(Accounts, id, 1) == Place(Accounts, id, 2) {
		t.Error("two places of an ID are one")
	}
}

// However many accounts, keys and addresses there are, their windows have no
// more than Places of each kind.
func TestMemoryIsBounded(t *testing.T) {
	t.Parallel()
	seen := map[[PlaceKeyLen]byte]bool{}
	for i := range uint64(300_000) {
		address := AddressID(netip.AddrPortFrom(netip.AddrFrom4([4]byte{byte(i >> 16), byte(i >> 8), byte(i), 1}), 1).String())
		for _, id := range []ID{AccountID(i, byte(i)), KeyID(i), address} {
			for n := range Probes {
				seen[Place(KindOf(id), id, n)] = true
			}
		}
	}
	if len(seen) > 2*Places {
		t.Errorf("%d places", len(seen))
	}
	if KindOf(KeyID(1)) != Accounts || KindOf(AccountID(1, 1)) != Accounts || KindOf(AddressID("192.0.2.1:1")) != Addresses {
		t.Error("a window is of the wrong kind")
	}
}

func TestAddresses(t *testing.T) {
	t.Parallel()
	same := func(a, b string) {
		t.Helper()
		if AddressID(a) != AddressID(b) {
			t.Errorf("%s and %s are limited apart", a, b)
		}
	}
	apart := func(a, b string) {
		t.Helper()
		if AddressID(a) == AddressID(b) {
			t.Errorf("%s and %s are limited together", a, b)
		}
	}
	same("192.0.2.1:1", "192.0.2.1:2")
	same("192.0.2.1:1", "[::ffff:192.0.2.1]:1")
	same("[2001:db8::1]:1", "[2001:db8::ffff:1]:9")
	same("junk", "")
	same("junk", strings.Repeat("192.0.2.1:1", 100))
	apart("192.0.2.1:1", "192.0.2.2:1")
	apart("[2001:db8::1]:1", "[2001:db8:0:1::1]:1")
	apart("192.0.2.1:1", "junk")
	apart("0.0.0.0:1", "[::]:1")
}

func BenchmarkTake(b *testing.B) {
	w, now := New(ID{}), int64(1_700_000_000)
	for i := 0; b.Loop(); i++ {
		w.Take(Limit{PerMinute: 1 << 30}, now+int64(i/10_000))
	}
}
