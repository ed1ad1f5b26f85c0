package meter

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"
)

func TestBuckets(t *testing.T) {
	t.Parallel()
	for took, want := range map[time.Duration]int{
		-time.Second: 0, 0: 0, time.Microsecond: 0, time.Millisecond: 0, time.Millisecond + 1: 1, 2 * time.Millisecond: 1,
		2*time.Millisecond + 1: 2, 1024 * time.Millisecond: 10, 1024*time.Millisecond + 1: 11, 262144 * time.Millisecond: 18,
		262144*time.Millisecond + 1: 19, 24 * time.Hour: 19,
	} {
		if got := Bucket(took); got != want {
			t.Errorf("%v is in bucket %d, want %d", took, got, want)
		}
	}
}

func TestClasses(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]uint8{-1: 0, 0: 0, 99: 0, 101: 1, 200: 2, 304: 3, 404: 4, 599: 5, 600: 0} {
		if got := Class(status); got != want {
			t.Errorf("%d is of class %d, want %d", status, got, want)
		}
	}
}

// tally is what a table should hold, counted without one.
type tally map[string]Counts

func (y tally) add(k Count) {
	name := fmt.Sprint(k.Account, k.Key, k.Route, k.Class)
	sum := y[name]
	sum.Add(k.Counts)
	y[name] = sum
}

func (y tally) total() (c Counts) {
	for _, n := range y {
		c.Add(n)
	}
	return c
}

// request draws a request of a few accounts and routes, or of very many.
func request(r *rand.Rand, accounts int, names *Names) (Key, Request, Route) {
	route := Route{}
	if n := r.IntN(5); n > 0 {
		route = Route{Name: fmt.Sprint("route", n), Product: "p"}
	}
	k := Key{Account: uint64(r.IntN(accounts)), Key: uint64(r.IntN(2)), Route: names.Number(route), Class: uint8(r.IntN(Classes))}
	return k, Request{Refused: r.IntN(3) == 0, In: uint64(r.IntN(1000)), Out: r.Uint64() >> 40, Took: time.Duration(r.Int64N(int64(time.Minute)))}, route
}

func (y tally) note(k Key, route Route, q Request) {
	var c Counts
	c.add(q)
	y.add(Count{Account: k.Account, Key: k.Key, Route: route, Class: k.Class, Counts: c})
}

// What goes into a table comes out of its batch, whole.
func TestABatchHoldsWhatWasCounted(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	table, names, uses := NewTable(), &Names{}, &Uses{}
	for round := range 5 {
		want, got := tally{}, tally{}
		if !table.Empty() {
			t.Fatal("a table that was reset is not empty")
		}
		for range 2000 {
			k, q, route := request(r, 6, names)
			if table.Add(k, q) {
				t.Fatal("240 keys fill it")
			}
			want.note(k, route, q)
		}
		uses.Note(Use{Key: 7, At: 60, Address: "192.0.2.1:99"})
		b, ok := Parse(Append(nil, table, names, uses, int64(1000+round)))
		if !ok || b.At != int64(1000+round) || !reflect.DeepEqual(b.Uses, []Use{{7, 60, "192.0.2.1:99"}}) {
			t.Fatalf("%v %+v", ok, b)
		}
		for _, c := range b.Counts {
			got.add(c)
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatal("the batch differs from what was counted")
		}
		table.Reset()
		uses.Reset()
	}
}

// A table that is never emptied takes any number of keys, loses no request, and
// says that it is full.
func TestAFullTableKeepsTheTotals(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	table, names := NewTable(), &Names{}
	want, full := tally{}, false
	for range 50_000 {
		k, q, route := request(r, 1<<30, names)
		full = table.Add(k, q)
		want.note(k, route, q)
	}
	raw := Append(nil, table, names, &Uses{}, 1)
	b, ok := Parse(raw)
	if !ok || !full || len(raw) > MaxBatch || table.counted.Size() != size {
		t.Fatalf("ok %v, full %v, %d bytes", ok, full, len(raw))
	}
	got := tally{}
	for _, c := range b.Counts {
		got.add(c)
	}
	if got.total() != want.total() {
		t.Fatalf("%+v, want %+v", got.total(), want.total())
	}
}

func TestNamesKeepTheirNumbers(t *testing.T) {
	t.Parallel()
	var n Names
	first := n.Number(Route{"a", "p"})
	if first == 0 || n.Number(Route{}) != 0 || n.Number(Route{"a", "q"}) == first || n.Number(Route{"a", "p"}) != first {
		t.Fatal("numbers are not those of routes")
	}
	for i := range maxNames {
		n.Number(Route{Name: fmt.Sprint(i)})
	}
	if n.Number(Route{Name: "one more"}) != 0 || len(n.routes) != maxNames {
		t.Fatal("the names grow without bound")
	}
	if n.Route(first) != (Route{"a", "p"}) || n.Route(1<<31) != (Route{}) {
		t.Fatal("a number does not stand for its route")
	}
}

func TestAUseIsNotedOnceAMinute(t *testing.T) {
	t.Parallel()
	var u Uses
	for _, c := range []struct {
		key  uint64
		at   int64
		want bool
	}{{1, 60, true}, {1, 119, false}, {1, 120, true}, {2, 120, true}, {1, 121, false}} {
		if got := u.Due(c.key, c.at); got != c.want {
			t.Errorf("key %d at %d: %v", c.key, c.at, got)
		}
		if c.want {
			u.Note(Use{Key: c.key, At: c.at})
		}
	}
	for key := range uint64(3 * maxUses) {
		if u.Due(key, 600) {
			u.Note(Use{Key: key, At: 600})
		}
	}
	if len(u.list) > maxUses {
		t.Fatalf("%d uses in one batch", len(u.list))
	}
}

// BenchmarkAdd is what a request costs besides its calls of the host.
func BenchmarkAdd(b *testing.B) {
	table := NewTable()
	for i := 0; b.Loop(); i++ {
		table.Add(Key{Account: uint64(i % 50), Key: 1, Route: 3, Class: 2}, Request{In: 10, Out: 100, Took: 3 * time.Millisecond})
	}
}
