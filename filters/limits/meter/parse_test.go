package meter

import (
	"bytes"
	"reflect"
	"slices"
	"testing"
	"time"

	"sluice.dev/sluice/platform/limits/growth"
)

// sample is a batch of two counts and one use, encoded.
func sample() []byte {
	table, names, uses := NewTable(), &Names{}, &Uses{}
	table.Add(Key{Account: 1, Key: 2, Route: names.Number(Route{"a", "p"}), Class: 2}, Request{In: 3, Out: 400, Took: time.Second})
	table.Add(Key{Class: 4}, Request{Refused: true})
	uses.Note(Use{Key: 2, At: 99, Address: "192.0.2.1:1"})
	return Append(nil, table, names, uses, 1000)
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	good := sample()
	if b, ok := Parse(good); !ok || len(b.Counts) != 2 {
		t.Fatal("the sample does not parse")
	}
	for n := range good {
		if _, ok := Parse(good[:n]); ok {
			t.Errorf("%d of %d bytes", n, len(good))
		}
	}
	counts := func(c Counts) []byte {
		b := append([]byte{form, 1, 1, 1, 'a', 1, 'p', 1}, make([]byte, 16)...)
		return append(c.append(append(b, 0, 2)), 0)
	}
	if _, ok := Parse(counts(Counts{Requests: 1, Latency: [Buckets]uint32{1}})); !ok {
		t.Fatal("the counts that the others differ from do not parse")
	}
	for name, b := range map[string][]byte{
		"a byte too many": append(bytes.Clone(good), 0), "another form": append([]byte{3}, good[1:]...), "cut before its parts": append([]byte{partsForm}, good[1:]...),
		"too long":                  append(bytes.Clone(good), make([]byte, MaxBatch)...),
		"no requests":               counts(Counts{}),
		"more refused than came":    counts(Counts{Requests: 1, Refused: 2, Latency: [Buckets]uint32{1}}),
		"buckets that do not match": counts(Counts{Requests: 2, Latency: [Buckets]uint32{1}}),
		"bytes below zero":          counts(Counts{Requests: 1, In: 1 << 63, Latency: [Buckets]uint32{1}}),
	} {
		if _, ok := Parse(b); ok {
			t.Error(name)
		}
	}
}

func TestAParcelComesOutAsItWentIn(t *testing.T) {
	t.Parallel()
	want := Parcel{Edge: "edge-1", Boot: "b", Sequence: 7, Batches: [][]byte{sample(), sample()}}
	raw := want.Append(nil)
	got, batches, ok := ParseParcel(raw)
	if !ok || !reflect.DeepEqual(got, want) || len(batches) != 2 || len(batches[1].Counts) != 2 {
		t.Fatalf("%v %+v", ok, got)
	}
	for n := range raw {
		if _, _, ok := ParseParcel(raw[:n]); ok {
			t.Errorf("%d of %d bytes", n, len(raw))
		}
	}
	for name, p := range map[string]Parcel{
		"no edge": {Boot: "b", Sequence: 1, Batches: want.Batches}, "no boot": {Edge: "e", Sequence: 1, Batches: want.Batches},
		"number 0": {Edge: "e", Boot: "b", Batches: want.Batches}, "no batches": {Edge: "e", Boot: "b", Sequence: 1},
		"a bad batch": {Edge: "e", Boot: "b", Sequence: 1, Batches: [][]byte{sample(), {1}}},
	} {
		if _, _, ok := ParseParcel(p.Append(nil)); ok {
			t.Error(name)
		}
	}
}

// FuzzParseParcel: whatever parses says the same when it is written again.
func FuzzParseParcel(f *testing.F) {
	f.Add(Parcel{Edge: "edge-1", Boot: "b", Sequence: 7, Batches: [][]byte{sample()}}.Append(nil))
	f.Add(Parcel{Edge: "e", Boot: "b", Sequence: 1, Batches: [][]byte{sampleOfParts()}}.Append(nil))
	empty := []byte{form, 0, 0, 0, 0}
	f.Add(Parcel{Edge: "e", Boot: "b", Sequence: 1, Batches: slices.Repeat([][]byte{empty}, 400)}.Append(nil))
	f.Add(Parcel{Edge: "e", Boot: "b", Sequence: 1, Batches: [][]byte{append([]byte{form, 0, 0x80, 8}, make([]byte, 4096)...)}}.Append(nil))    // routes without names
	f.Add(Parcel{Edge: "e", Boot: "b", Sequence: 1, Batches: [][]byte{append([]byte{form, 0, 0, 0xff, 7}, make([]byte, 8192)...)}}.Append(nil)) // counts of nothing
	f.Fuzz(func(t *testing.T, b []byte) {
		growth.Linear(t, len(b), 24, 1<<10, func() { ParseParcel(b) })
		p, batches, ok := ParseParcel(b)
		if !ok {
			return
		}
		again, same, ok := ParseParcel(p.Append(nil))
		if !ok || !reflect.DeepEqual(p, again) || !reflect.DeepEqual(batches, same) {
			t.Fatal("it differs when written again")
		}
		for _, b := range batches {
			for _, c := range b.Counts {
				if c.Refused > c.Requests || c.Class >= Classes {
					t.Fatalf("%+v", c)
				}
			}
		}
	})
}

// sampleOfParts is a batch with a connection that opened, and a part of one that was open before.
func sampleOfParts() []byte {
	table, names := NewTable(), &Names{}
	socket := names.Number(Route{"socket", "p"})
	table.Add(Key{Account: 1, Key: 2, Route: socket, Class: 1}, Request{Took: time.Millisecond})
	table.AddPart(Key{Account: 1, Key: 2, Route: socket, Class: 1}, Part{In: 5, Out: 6, Open: 1500 * time.Millisecond})
	table.AddPart(Key{Account: 3, Route: socket, Class: 1}, Part{In: 7, Open: 10 * time.Second})
	return Append(nil, table, names, &Uses{}, 1000)
}

func TestPartsOfConnections(t *testing.T) {
	t.Parallel()
	raw := sampleOfParts()
	b, ok := Parse(raw)
	if !ok || len(b.Counts) != 2 {
		t.Fatalf("%v %+v", ok, b)
	}
	if c := b.Counts[0]; c.Requests != 1 || c.In != 5 || c.Out != 6 || c.Open != 1500 {
		t.Errorf("%+v", c)
	}
	if c := b.Counts[1]; c.Requests != 0 || c.In != 7 || c.Open != 10_000 {
		t.Errorf("%+v", c)
	}
	if raw[0] != partsForm || sample()[0] != form {
		t.Error("batches without parts are not in the form of before")
	}
	for n := range raw {
		if _, ok := Parse(raw[:n]); ok {
			t.Errorf("%d of %d bytes", n, len(raw))
		}
	}
}
