package sharedlimit

import (
	"reflect"
	"testing"

	"sluice.dev/sluice/filters/limits/ratelimit"
)

func entry(account uint64, newest int64, counts ...uint32) Entry {
	e := Entry{ID: ratelimit.AccountID(account, 0), Others: ratelimit.Others{Newest: newest, Burst: uint32(account)}}
	for back, n := range counts {
		e.Slots[(newest-int64(back))%ratelimit.Seconds] = n
	}
	return e
}

func TestMessagesAreReadAsTheyWereWritten(t *testing.T) {
	t.Parallel()
	full := make([]uint32, ratelimit.Seconds)
	for i := range full {
		full[i] = uint32(i * i)
	}
	for _, list := range [][]Entry{
		{}, {entry(1, 1_800_000_000)}, {entry(1, 1_800_000_000, 1<<32-1), entry(2, 1_800_000_059, full...)},
	} {
		r := Report{Told: 1_800_000_000_123, Boot: 9, Strict: len(list) != 1, Holders: uint32(len(list)) / 2, Entries: list}
		if got, ok := ParseReport(r.Append(nil)); !ok || !reflect.DeepEqual(got, r) {
			t.Errorf("%+v\n%+v", got, r)
		}
		a := Answer{Edges: 3, Members: Members{Edges: 4, Silent: 1, SilentHolders: 3, Whole: true, Settled: len(list) == 0}, Entries: list}
		if got, ok := ParseAnswer(a.Append(nil)); !ok || !reflect.DeepEqual(got, a) {
			t.Errorf("%+v\n%+v", got, a)
		}
	}
}

func TestTheLargestMessageFits(t *testing.T) {
	t.Parallel()
	r := Report{Strict: true}
	counts := make([]uint32, ratelimit.Seconds)
	for i := range counts {
		counts[i] = 1_000_000
	}
	for i := range uint64(MaxEntries) {
		r.Entries = append(r.Entries, entry(i, 1_800_000_000, counts...))
	}
	b := r.Append(nil)
	if _, ok := ParseReport(b); !ok {
		t.Fatalf("%d bytes are refused", len(b))
	}
	r.Entries = append(r.Entries, entry(0, 1_800_000_000))
	if _, ok := ParseReport(r.Append(nil)); ok {
		t.Fatal("one entry more is taken")
	}
}

func FuzzParse(f *testing.F) {
	f.Add(Report{Told: 1, Boot: 2, Entries: []Entry{entry(1, 1_800_000_000, 5, 0, 7)}}.Append(nil))
	f.Add(Answer{Edges: 2, Entries: []Entry{entry(1, 1_800_000_000, 5)}}.Append(nil))
	f.Add(Report{Told: 1, Boot: 2, Holders: 3, Strict: true, Partial: true, Entries: []Entry{{ID: ratelimit.AccountID(1, 0), Others: ratelimit.Others{Newest: 99}, Hot: true}}}.Append(nil))
	f.Add(Answer{Edges: 2, Members: Members{Edges: 3, Silent: 1, SilentHolders: 3, Whole: true}}.Append(nil))
	f.Add([]byte("SLC1"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if r, ok := ParseReport(b); ok {
			if again, ok := ParseReport(r.Append(nil)); !ok || !reflect.DeepEqual(r, again) {
				t.Fatalf("%+v\n%+v", r, again)
			}
		}
		if a, ok := ParseAnswer(b); ok {
			if again, ok := ParseAnswer(a.Append(nil)); !ok || !reflect.DeepEqual(a, again) {
				t.Fatalf("%+v\n%+v", a, again)
			}
		}
	})
}
