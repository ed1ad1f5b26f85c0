package sharedlimit

import (
	"testing"

	"sluice.dev/sluice/filters/limits/ratelimit"
)

func TestWhatAnEdgeMayUseOfAStrictLimit(t *testing.T) {
	t.Parallel()
	limit := ratelimit.Limit{PerMinute: 90, Burst: 30, Strict: true}
	for name, c := range map[string]struct {
		shares Shares
		age    int64
		want   ratelimit.Limit
	}{
		"nothing is known":                   {Shares{}, 0, ratelimit.Limit{}},
		"all are heard":                      {Shares{Holders: 3, Whole: true}, FreshMillis, ratelimit.Limit{PerMinute: 90, Burst: 30}},
		"all are heard, without a share":     {Shares{Whole: true}, 0, ratelimit.Limit{PerMinute: 90, Burst: 30}},
		"one is silent":                      {Shares{Holders: 3, Silent: 1, SilentHolders: 3, Whole: true}, 0, ratelimit.Limit{PerMinute: 60, Burst: 20}},
		"more are silent than there is room": {Shares{Holders: 3, Silent: 9, SilentHolders: 3, Whole: true}, 0, ratelimit.Limit{}},
		"more edges than requests":           {Shares{Holders: 128, Silent: 2, SilentHolders: 128, Whole: true}, 0, ratelimit.Limit{PerMinute: 90, Burst: 30}},
		"cut off":                            {Shares{Holders: 3, Whole: true}, FreshMillis + 1, ratelimit.Limit{PerMinute: 30, Burst: 10}},
		"cut off, with a share of nothing":   {Shares{Holders: 128}, 1000, ratelimit.Limit{}},
		"cut off without a share":            {Shares{Whole: true}, FreshMillis + 1, ratelimit.Limit{}},
		"what is heard is not whole":         {Shares{Holders: 3}, 0, ratelimit.Limit{PerMinute: 30, Burst: 10}},
		"at the end of the lease":            {Shares{Holders: 3}, LeaseMillis, ratelimit.Limit{PerMinute: 30, Burst: 10}},
		"after it":                           {Shares{Holders: 3, Whole: true}, LeaseMillis + 1, ratelimit.Limit{}},
		"the clock was set back a little":    {Shares{Holders: 3, Whole: true}, -SkewMillis, ratelimit.Limit{PerMinute: 90, Burst: 30}},
		"the clock was set back":             {Shares{Holders: 3, Whole: true}, -SkewMillis - 1, ratelimit.Limit{}},
	} {
		c.shares.Told = millis - c.age
		if got := c.shares.Among(limit, millis); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
		if got := ParseShares(c.shares.Append(nil)); got != c.shares {
			t.Errorf("%s: %+v was read as %+v", name, c.shares, got)
		}
	}
	if ParseShares(make([]byte, sharesSize+1)) != (Shares{}) {
		t.Error("bytes of another length were read")
	}
}

// A share becomes smaller at once; larger only when all who knew of more edges are dead.
func TestHowAShareChanges(t *testing.T) {
	t.Parallel()
	var h holding
	for i, step := range []struct {
		edges   uint32
		settled bool
		at      int64
		want    uint32
	}{
		{0, true, 0, 0},
		{3, false, 0, 0},
		{3, true, 1000, 3},
		{5, false, 2000, 5},
		{4, true, 3000, 5},
		{4, true, 2000 + DeadMillis, 5},
		{4, true, 2001 + DeadMillis, 4},
		{0, true, 3 * DeadMillis, 4}, // a replica of a release without strict limits
	} {
		if h.hear(step.edges, step.settled, step.at); h.holders != step.want {
			t.Fatalf("step %d: 1 of %d, want of %d", i, h.holders, step.want)
		}
	}
}

// Windows that are hot elsewhere are told from here too, however few requests they have.
func TestWhatIsHotElsewhereIsTold(t *testing.T) {
	t.Parallel()
	m, e := newMemory(), &Edge{}
	m.find(1, 2, millis/1000)
	m.find(2, 2, millis/1000)
	m.hot = nil
	m.places = map[ratelimit.ID]Place{ratelimit.AccountID(1, 0): place(1), ratelimit.AccountID(2, 0): place(2), ratelimit.AccountID(3, 0): place(3)}
	a := Answer{Edges: 2, Entries: []Entry{entry(1, millis/1000, 9), entry(2, millis/1000, 9), entry(3, millis/1000, 9)}}
	a.Entries[0].Hot, a.Entries[2].Hot = true, true
	read, ok := ParseAnswer(a.Append(nil))
	if !ok {
		t.Fatal("the answer cannot be read")
	}
	e.ApplyAnswer(m, read, millis, millis)
	r := e.Report(m, millis)
	if len(r.Entries) != 1 || r.Entries[0].ID != ratelimit.AccountID(1, 0) || r.Entries[0].Hot || r.Partial {
		t.Fatalf("%+v", r)
	}
	e.ApplyAnswer(m, Answer{Edges: 2}, millis, millis)
	if r := e.Report(m, millis); len(r.Entries) != 0 {
		t.Fatalf("hot nowhere: %+v", r)
	}
}
