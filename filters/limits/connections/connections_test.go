package connections

import (
	"fmt"
	"testing"

	"sluice.dev/sluice/filters/limits/ratelimit"
	"sluice.dev/sluice/filters/limits/sharedlimit"
	"sluice.dev/sluice/platform/limits/growth"
)

// memory is a Store. It gives versions as Envoy does.
type memory struct {
	records  map[sharedlimit.Place]Record
	versions map[sharedlimit.Place]uint32
	last     uint32
	before   func() // called before each write
}

func newMemory() *memory {
	return &memory{records: map[sharedlimit.Place]Record{}, versions: map[sharedlimit.Place]uint32{}}
}

func (m *memory) Get(p sharedlimit.Place) (Record, uint32) {
	return append(Record(nil), m.records[p]...), m.versions[p]
}

func (m *memory) Set(p sharedlimit.Place, r Record, version uint32) bool {
	if before := m.before; before != nil {
		m.before = nil
		before()
	}
	if v := m.versions[p]; v != 0 && v != version {
		return false
	}
	m.last++
	m.records[p], m.versions[p] = append(Record(nil), r...), m.last
	return true
}

const millis = 1_800_000_000_000

var alone = ratelimit.Fleet{}

// takes takes places until there are none.
func takes(s Store, h *Holder, id ratelimit.ID, limit uint32, at int64) (n int) {
	for ok, _ := h.Take(s, id, limit, alone, at); ok; ok, _ = h.Take(s, id, limit, alone, at) {
		n++
	}
	return n
}

func TestWorkersShareALimit(t *testing.T) {
	t.Parallel()
	s, a, b := newMemory(), New(1), New(2)
	id := AccountID(7, 1)
	for range 2 {
		if ok, _ := a.Take(s, id, 5, alone, millis); !ok {
			t.Fatal("no place")
		}
	}
	if n := takes(s, b, id, 5, millis); n != 3 {
		t.Fatalf("%d of 3 places", n)
	}
	if n := takes(s, a, id, 5, millis); n != 0 {
		t.Fatalf("%d places too many", n)
	}
	a.Release(s, id, millis)
	if n := takes(s, b, id, 5, millis); n != 1 {
		t.Fatalf("%d of the 1 given back", n)
	}
	if n := takes(s, a, AccountID(8, 1), 5, millis) + takes(s, a, AccountID(7, 2), 5, millis) + takes(s, a, KeyID(7, 1), 5, millis); n != 15 {
		t.Fatalf("others have %d of 15", n)
	}
}

// Two workers that see the same place free do not both get it.
func TestALastPlaceIsTakenOnce(t *testing.T) {
	t.Parallel()
	s, a, b := newMemory(), New(1), New(2)
	id, other := AccountID(7, 1), false
	s.before = func() { other, _ = b.Take(s, id, 1, alone, millis) }
	if ok, _ := a.Take(s, id, 1, alone, millis); ok || !other {
		t.Fatalf("%v and %v", ok, other)
	}
}

// A worker that ends without a word holds its places for Lease and no longer; one that
// lives holds them for as long as it says so.
func TestPlacesOfTheDeadComeBack(t *testing.T) {
	t.Parallel()
	s, dead, alive := newMemory(), New(1), New(2)
	id := AccountID(7, 1)
	for range 3 {
		dead.Take(s, id, 5, alone, millis)
	}
	takes(s, alive, id, 5, millis)
	at := int64(millis)
	for range 10 {
		at += RenewEvery * 1000
		alive.Renew(s, at, func(sharedlimit.Place) {})
	}
	next := New(3) // in the place of the dead one
	if n := takes(s, next, id, 5, at); n != 3 {
		t.Fatalf("%d of the 3 places of the dead", n)
	}
	s2, h := newMemory(), New(1)
	takes(s2, h, id, 2, millis)
	if n := takes(s2, New(2), id, 2, millis+Lease*1000-1); n != 0 {
		t.Fatalf("%d before the lease ends", n)
	}
	if n := takes(s2, New(2), id, 2, millis+Lease*1000); n != 2 {
		t.Fatalf("%d when it has ended", n)
	}
}

// What could not be written down is right again with the next word.
func TestALostReleaseIsMadeGood(t *testing.T) {
	t.Parallel()
	s, h := newMemory(), New(1)
	id := AccountID(7, 1)
	takes(s, h, id, 3, millis)
	was := newMemory()
	for p, r := range s.records {
		was.records[p], was.versions[p] = r, 1
	}
	h.Release(newMemory(), id, millis) // it goes nowhere
	h.Renew(was, millis, func(sharedlimit.Place) {})
	if n := takes(was, New(2), id, 3, millis); n != 1 {
		t.Fatalf("%d of 1", n)
	}
}

func TestOtherEdgesCount(t *testing.T) {
	t.Parallel()
	s, h := newMemory(), New(1)
	id, fleet := AccountID(7, 1), ratelimit.Fleet{Edges: 2}
	o := ratelimit.Others{Newest: millis / 1000}
	o.Slots[(o.Newest-1)%ratelimit.Seconds], o.Slots[o.Newest%ratelimit.Seconds] = 4, 2 // not all have spoken in this second
	o.Slots[(o.Newest-5)%ratelimit.Seconds] = 100                                       // long closed
	SetOthers(s, id, o, millis/1000)
	for at, want := range []bool{true, false, false, true, false} { // a half, rounded up, of the free within a spell
		if ok, _ := h.Take(s, id, 6, fleet, millis+int64(at)*900); ok != want {
			t.Errorf("try %d: %v", at, ok)
		}
	}
	cut := ratelimit.Fleet{Edges: 3, Cut: true}
	h2 := New(2)
	for _, want := range []bool{true, true, false} {
		if ok, _ := h2.Take(s, AccountID(9, 1), 6, cut, millis); ok != want {
			t.Errorf("cut off: %v", ok)
		}
	}
}

func TestPlacesHaveABound(t *testing.T) {
	t.Parallel()
	s, h := newMemory(), New(1)
	for n := range uint64(3 * ratelimit.Places) {
		if ok, _ := h.Take(s, AccountID(n*0x9e3779b97f4a7c15, 1), 1, alone, millis); !ok {
			t.Fatal("no place for an account that has none")
		}
	}
	if len(s.records) > ratelimit.Places {
		t.Fatalf("%d records", len(s.records))
	}
	r := newRecord(AccountID(1, 1))
	for worker := range uint32(2 * MaxWorkers) {
		r = r.hold(worker, 1, millis/1000)
	}
	if !r.whole() || r.open(millis/1000) != MaxWorkers {
		t.Fatalf("%d bytes, %d open", len(r), r.open(millis/1000))
	}
}

// What another release or a bug has left in a place is no record, or one that says nothing
// that breaks anything.
func FuzzRecord(f *testing.F) {
	s, h := newMemory(), New(1)
	takes(s, h, AccountID(7, 1), 3, millis)
	for _, r := range s.records {
		f.Add([]byte(r), int64(millis))
	}
	f.Add([]byte("short"), int64(0))
	f.Fuzz(func(t *testing.T, b []byte, at int64) {
		at &= 1<<42 - 1
		id := AccountID(7, 1)
		s := newMemory()
		for n := range ratelimit.Probes {
			s.Set(ratelimit.Place(Kind, id, n), b, Absent)
		}
		growth.Linear(t, len(b), 64, 16<<10, func() {
			h := New(1)
			if ok, _ := h.Take(s, id, 10, ratelimit.Fleet{Edges: 3}, at); ok {
				h.Release(s, id, at)
			}
		})
		for _, r := range s.records {
			if r.whole() && r.open(at/1000) > 0 {
				_ = fmt.Sprint(r.Share(at / 1000))
			}
		}
	})
}
