package traffic

import (
	"bytes"
	"reflect"
	"testing"
	"time"

	"sluice.dev/sluice/filters/limits/meter"
	"sluice.dev/sluice/platform/limits/growth"
)

func TestBuckets(t *testing.T) {
	t.Parallel()
	for i, bound := range Bounds {
		if got := Bucket(bound); got != i {
			t.Errorf("%d µs are in bucket %d, want %d", bound, got, i)
		}
		if got := Bucket(bound + 1); got != i+1 {
			t.Errorf("%d µs are in bucket %d, want %d", bound+1, got, i+1)
		}
		if i > 0 && bound > 1000 && bound <= 30_000_000 && bound*3 > Bounds[i-1]*5 {
			t.Errorf("%d is more than 5/3 of %d", bound, Bounds[i-1])
		}
	}
	if Bucket(0) != 0 || Bucket(1<<63) != Buckets-1 {
		t.Error("the ends are in other buckets")
	}
}

func TestMethods(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"": "", "GET": "GET", "OPTIONS": "OPTIONS", "BREW": "other", "get": "other", "CONNECT": "other"} {
		if got := methods[MethodNumber(name)]; got != want {
			t.Errorf("%s counts as %q, want %q", name, got, want)
		}
	}
}

// sample is a parcel of two batches.
func sample() Parcel {
	table, names, reasons := NewTable(), &meter.Names{}, &Reasons{}
	a := Key{Route: names.Number(meter.Route{Name: "a", Product: "p"}), Method: MethodNumber("POST"), Class: 2, Passed: true}
	table.Add(a, Request{In: 3, Out: 400, Took: time.Second, Upstream: 900 * time.Millisecond})
	table.Add(a, Request{In: 4, Took: 2 * time.Second})
	batches := Append(nil, table, names, reasons)
	table.Reset()
	table.Add(Key{Class: 4, Reason: reasons.Number("rate_limit_exceeded")}, Request{Took: -time.Second})
	return Parcel{Boot: "b", Sequence: 7, Batches: Append(batches, table, names, reasons)}
}

func TestAParcelComesOutAsItWentIn(t *testing.T) {
	t.Parallel()
	raw := sample().Append(nil)
	p, cells, ok := ParseParcel(raw)
	if !ok || p.Boot != "b" || p.Sequence != 7 || len(cells) != 2 {
		t.Fatalf("%v %+v %+v", ok, p, cells)
	}
	first, second := cells[0], cells[1]
	if first.Route != (meter.Route{Name: "a", Product: "p"}) || first.Method != "POST" || first.Class != 2 || !first.Passed || first.Reason != "" {
		t.Errorf("%+v", first)
	}
	if first.Requests != 2 || first.In != 7 || first.Out != 400 || first.Took.Micros != 3e6 || first.Took.Buckets[Bucket(2e6)] != 1 || first.Upstream.Count() != 1 || first.Upstream.Micros != 9e5 {
		t.Errorf("%+v", first.Counts)
	}
	if second.Route != (meter.Route{}) || second.Reason != "rate_limit_exceeded" || second.Passed || second.Took.Micros != 0 || second.Requests != 1 {
		t.Errorf("%+v", second)
	}
	for n := len(parcelForm) + 3; n < len(raw); n++ {
		if p, cells, ok := ParseParcel(raw[:n]); ok && (len(cells) == 2 || len(p.Batches) == len(sample().Batches)) {
			t.Errorf("%d of %d bytes", n, len(raw))
		}
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	good := sample().Append(nil)
	cell := func(change func(b []byte)) []byte {
		// One route "a" of "p", no reasons, one cell: route 0, GET, class 2, no reason, passed, no bytes, one request of 0 µs.
		b := []byte{1, 1, 'a', 1, 'p', 0, 1, 0, 1, 2, 0, 1, 0, 0, 0, 1, 1, 0, 0}
		change(b)
		return Parcel{Boot: "b", Sequence: 1, Batches: b}.Append(nil)
	}
	if _, cells, ok := ParseParcel(cell(func([]byte) {})); !ok || len(cells) != 1 {
		t.Fatal("the cell that the others differ from does not parse")
	}
	for name, b := range map[string][]byte{
		"nothing": nil, "another form": append([]byte("SLU\x01"), good[4:]...), "too long": append(bytes.Clone(good), make([]byte, MaxParcel)...),
		"no boot": Parcel{Sequence: 1}.Append(nil), "number 0": Parcel{Boot: "b"}.Append(nil),
		"another route":  cell(func(b []byte) { b[7] = 1 }),
		"another class":  cell(func(b []byte) { b[9] = meter.Classes }),
		"another reason": cell(func(b []byte) { b[10] = 1 }),
		"half passed":    cell(func(b []byte) { b[11] = 2 }),
		"no requests":    cell(func(b []byte) { b[16] = 0 }),
		"more answers":   cell(func(b []byte) { b[17], b[18] = 0, 1 }),
	} {
		if _, _, ok := ParseParcel(b); ok {
			t.Error(name)
		}
	}
}

// A full table says so, and what has no room counts all the same.
func TestAFullTableLosesNothing(t *testing.T) {
	t.Parallel()
	table, names, reasons := NewTable(), &meter.Names{}, &Reasons{}
	full := false
	const n = 4 * size
	for i := range n {
		full = table.Add(Key{Route: uint32(i + 1), Class: 2}, Request{Took: time.Millisecond})
	}
	_, cells, ok := ParseParcel(Parcel{Boot: "b", Sequence: 1, Batches: Append(nil, table, names, reasons)}.Append(nil))
	sum := uint64(0)
	for _, c := range cells {
		sum += c.Requests
	}
	if !ok || !full || sum != n || len(cells) > maxCells {
		t.Errorf("%v: %d requests in %d cells, full: %v", ok, sum, len(cells), full)
	}
	table.Reset()
	if !table.Empty() || table.Add(Key{Route: 1}, Request{}) {
		t.Error("it is not empty")
	}
}

// A reason says what would have refused a request, and what it failed with, if either.
func TestReasonsInTheShadow(t *testing.T) {
	t.Parallel()
	for reason, want := range map[string][2]string{
		"": {}, "internal": {"", "internal"}, Would("AUTH_002"): {"AUTH_002", ""}, AndThen(Would("AUTH_002"), "gateway_timeout"): {"AUTH_002", "gateway_timeout"},
		AndThen("", "gateway_timeout"): {"", "gateway_timeout"},
	} {
		if shadowed, failed := cutWould(reason); shadowed != want[0] || failed != want[1] {
			t.Errorf("%q: %q, %q", reason, shadowed, failed)
		}
	}
}

func TestReasonsAreBounded(t *testing.T) {
	t.Parallel()
	var r Reasons
	if r.Number("") != 0 || r.Number("a") != 1 || r.Number("b") != 2 || r.Number("a") != 1 {
		t.Errorf("%v", r)
	}
	for i := range 2 * maxReasons {
		r.Number(string(rune('A' + i)))
	}
	if len(r.codes) != maxReasons || r.Number("one more") != 0 {
		t.Errorf("%d reasons", len(r.codes))
	}
}

// FuzzParseParcel: whatever parses is whole.
func FuzzParseParcel(f *testing.F) {
	f.Add(sample().Append(nil))
	f.Add(Parcel{Boot: "b", Sequence: 1, Batches: bytes.Repeat([]byte{0, 0, 0}, 400)}.Append(nil))
	f.Add(Parcel{Boot: "b", Sequence: 1, Batches: append([]byte{0x80, 4}, make([]byte, 4096)...)}.Append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		growth.Linear(t, len(b), 128, 1<<10, func() { ParseParcel(b) })
		p, cells, ok := ParseParcel(b)
		if !ok {
			return
		}
		again, same, ok := ParseParcel(p.Append(nil))
		if !ok || again.Boot != p.Boot || again.Sequence != p.Sequence || !reflect.DeepEqual(cells, same) {
			t.Fatal("it differs when written again")
		}
		for _, c := range cells {
			if c.Requests == 0 || c.Class >= meter.Classes || c.Upstream.Count() > c.Requests {
				t.Fatalf("%+v", c)
			}
		}
	})
}
