package keytable

import (
	"bytes"
	"testing"
)

// put makes a look-up of records.
func put(lists ...[]Record) (map[Tag]Record, func(Tag) (Record, bool)) {
	m := map[Tag]Record{}
	for _, list := range lists {
		for _, r := range list {
			b, _ := Decode(r.Append(nil)) // as an edge reads it
			m[r.Tag] = b
		}
	}
	return m, func(t Tag) (Record, bool) { r, ok := m[t]; return r, ok }
}

func TestValueSurvivesItsParts(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 31, 32, 33, 64, 92, 295, MaxValue} {
		want := bytes.Repeat([]byte{1, 2, 3, 4, 5}, n)[:n]
		parts := Split(TagOfAllowlist(7), want)
		_, record := put(parts, Split(TagOfAllowlist(8), []byte("another")))
		got, found, whole := Join(TagOfAllowlist(7), record)
		if !found || !whole || !bytes.Equal(got, want) || len(parts) != (n+31)/32 {
			t.Errorf("%d bytes: %d parts, %v %v %x", n, len(parts), found, whole, got)
		}
		for i, tag := range Parts(TagOfAllowlist(7))[:len(parts)] {
			if tag != parts[i].Tag {
				t.Errorf("part %d is under another tag than Parts names", i)
			}
		}
	}
}

func TestValueOfNoUseIsNotSplit(t *testing.T) {
	t.Parallel()
	if Split(Tag{}, nil) != nil || Split(Tag{}, make([]byte, MaxValue+1)) != nil {
		t.Error("a value without bytes, or of too many, was split")
	}
}

// While a new value arrives part by part, no mixture of the two is ever read.
func TestMixtureOfTwoValuesIsNotRead(t *testing.T) {
	t.Parallel()
	tag := TagOfIssuerKey("https://id.example", "k")
	before, after := bytes.Repeat([]byte("a"), 100), bytes.Repeat([]byte("b"), 100)
	for n := 1; n < 4; n++ {
		_, record := put(Split(tag, before), Split(tag, after)[:n])
		if v, found, whole := Join(tag, record); !found || whole {
			t.Errorf("%d new parts of 4: %q %v", n, v, whole)
		}
	}
	m, record := put(Split(tag, before))
	delete(m, Split(tag, before)[2].Tag)
	if _, found, whole := Join(tag, record); !found || whole {
		t.Error("a value that lacks a part was read")
	}
	if _, found, _ := Join(TagOfIssuerKey("https://id.example", "other"), record); found {
		t.Error("a value that is not there was found")
	}
}

func TestRecordOfAnotherKindIsNoValue(t *testing.T) {
	t.Parallel()
	_, record := put([]Record{{Tag: Tag{1}, Kind: KindKey, Plan: 5}})
	if _, found, _ := Join(Tag{1}, record); found {
		t.Error("a key was read as a value")
	}
}

func TestAccountRecord(t *testing.T) {
	t.Parallel()
	want := Record{Tag: TagOfAccount(9), Kind: KindAccount, Flags: FlagAllowlist | FlagUnpaid, Plan: 3, Account: 9}
	if got, ok := Decode(want.Append(nil)); !ok || got != want {
		t.Errorf("%+v", got)
	}
}
