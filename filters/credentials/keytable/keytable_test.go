package keytable

import (
	"bytes"
	"crypto/sha256"
	"math"
	"math/rand/v2"
	"testing"

	"sluice.dev/sluice/platform/limits/growth"
)

func record(n uint64) Record {
	return Record{Tag: TagOfKey(sha256.Sum256([]byte{byte(n), byte(n >> 8)})), Kind: KindKey, Flags: FlagLimits, Plan: 7,
		Expires: 1_900_000_000, ID: n, Account: math.MaxUint64 - n, Scopes: Scopes{}.With(0).With(127), Limit: 60}
}

func TestRecordSurvivesItsEncoding(t *testing.T) {
	t.Parallel()
	secret := Record{Tag: TagOfSecret("identity"), Kind: KindSecret, Secret: sha256.Sum256(nil)}
	for _, want := range []Record{record(1), record(math.MaxUint64), secret, {}} {
		b := want.Append(nil)
		if got, ok := Decode(b); len(b) != RecordSize || !ok || got != want {
			t.Errorf("%d bytes, %v\n got %+v\nwant %+v", len(b), ok, got, want)
		}
	}
	if _, ok := Decode(make([]byte, RecordSize-1)); ok {
		t.Error("a short record was read")
	}
}

func TestExpiry(t *testing.T) {
	t.Parallel()
	r := Record{Expires: 100}
	if r.Expired(99) || !r.Expired(100) || (Record{}).Expired(math.MaxInt64) {
		t.Error("a record ends at its second, and never when that is 0")
	}
}

func TestScopes(t *testing.T) {
	t.Parallel()
	s := Scopes{}.With(3).With(64).With(128).With(-1)
	for bit := -1; bit < 130; bit++ {
		if s.Has(bit) != (bit == 3 || bit == 64) {
			t.Errorf("bit %d: %v", bit, s.Has(bit))
		}
	}
	if !s.Meets(Scopes{}.With(64)) || s.Meets(Scopes{}.With(4).With(65)) || s.Meets(Scopes{}) {
		t.Error("sets meet when they share a bit")
	}
}

func TestIDs(t *testing.T) {
	t.Parallel()
	for _, n := range []uint64{0, 1, 31, 32, 1 << 59, math.MaxUint64, 0x0123456789abcdef} {
		s := FormatID(KeyPrefix, n)
		if got, ok := ParseID(KeyPrefix, s); !ok || got != n || len(s) != len(KeyPrefix)+IDLen {
			t.Errorf("%d -> %s -> %d %v", n, s, got, ok)
		}
	}
	for _, s := range []string{"", "key_", "key_000000000000", "key_00000000000000", "acct_0000000000000", "key_000000000000u",
		"key_g000000000000", "key_zzzzzzzzzzzzz", "KEY_0000000000000"} {
		if n, ok := ParseID(KeyPrefix, s); ok {
			t.Errorf("%q was read as %d", s, n)
		}
	}
}

// A bucket behaves like a map from tags to records.
func TestBucketAgainstAMap(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	model := map[Tag]Record{}
	var bucket []byte
	for range 5000 {
		r := record(rng.Uint64N(20))
		r.Limit = rng.Uint32()
		if rng.IntN(3) == 0 {
			r = Record{Tag: r.Tag}
			delete(model, r.Tag)
		} else {
			model[r.Tag] = r
		}
		bucket = Apply(bucket, r.Append(nil))
		for n := range uint64(20) {
			tag := record(n).Tag
			want, there := model[tag]
			if got, ok := Find(bucket, tag); ok != there || got != want {
				t.Fatalf("record %d: %v %v, want %v %v", n, got, ok, want, there)
			}
		}
		if len(bucket) != len(model)*RecordSize {
			t.Fatalf("bucket of %d bytes for %d records", len(bucket), len(model))
		}
	}
}

func TestBucketsFollowTagOrder(t *testing.T) {
	t.Parallel()
	last := uint32(0)
	for i := range 1 << 16 {
		b := Tag{byte(i >> 8), byte(i), 0xff}.Bucket()
		if b < last || b >= Buckets {
			t.Fatalf("bucket %d after %d", b, last)
		}
		last = b
	}
	if last != Buckets-1 {
		t.Fatalf("the last bucket is %d", last)
	}
}

func TestTagsOfDifferentThingsDiffer(t *testing.T) {
	t.Parallel()
	tags := []Tag{TagOfLimit(1, "events"), TagOfLimit(1, "default"), TagOfLimit(2, "events"), TagOfSecret("a"), TagOfToken("a"),
		TagOfKey(sha256.Sum256([]byte("a")))}
	seen := map[Tag]bool{}
	for _, tag := range tags {
		if seen[tag] {
			t.Error("two things share a tag")
		}
		seen[tag] = true
	}
}

func TestPageAndState(t *testing.T) {
	t.Parallel()
	want := Page{Snapshot: true, Last: true, Epoch: 1, Position: 2, Lo: 3, Hi: Buckets - 1, Cursor: Tag{9}, Records: record(1).Append(nil)}
	b := want.Append(nil)
	got, ok := ParsePage(b)
	if !ok || !bytes.Equal(got.Append(nil), b) {
		t.Fatalf("%+v %v", got, ok)
	}
	for n := range b {
		if _, ok := ParsePage(b[:n]); ok {
			t.Fatalf("a page cut to %d bytes was read", n)
		}
	}
	s := State{Epoch: 1, Position: 2, Cursor: Tag{3}, Ready: true}
	if ParseState(s.Append(nil)) != s || ParseState([]byte("x")) != (State{}) {
		t.Fatal("state")
	}
}

func FuzzParsePage(f *testing.F) {
	f.Add(Page{Records: record(1).Append(nil)}.Append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		growth.Linear(t, len(b), 0, 1<<10, func() { ParsePage(b) })
		p, ok := ParsePage(b)
		if !ok {
			return
		}
		var bucket []byte
		for r := p.Records; len(r) > 0; r = r[RecordSize:] {
			bucket = Apply(bucket, r)
		}
		if len(bucket)%RecordSize != 0 || len(bucket) > len(p.Records) {
			t.Fatalf("a bucket of %d bytes", len(bucket))
		}
	})
}
