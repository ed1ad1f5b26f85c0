package plan

import (
	"slices"
	"testing"
	"time"

	"sluice.dev/sluice/workers/cron"
)

func at(text string) time.Time {
	t, err := time.Parse("2006-01-02 15:04:05", text)
	if err != nil {
		panic(err)
	}
	return t
}

func recurring(t *testing.T, expr, zone string, start, end time.Time) Plan {
	t.Helper()
	s, err := cron.Parse(expr)
	if err != nil {
		t.Fatal(err)
	}
	loc, err := cron.LoadZone(zone)
	if err != nil {
		t.Fatal(err)
	}
	return Recurring(s, loc, start, end)
}

func TestBoundsAreInclusive(t *testing.T) {
	t.Parallel()
	p := recurring(t, "0 12 * * *", "UTC", at("2026-01-02 12:00:00"), at("2026-01-04 12:00:00"))
	want := []time.Time{at("2026-01-02 12:00:00"), at("2026-01-03 12:00:00"), at("2026-01-04 12:00:00")}
	var got []time.Time
	for next, ok := p.Next(at("2025-01-01 00:00:00")); ok; next, ok = p.Next(next) {
		got = append(got, next)
	}
	if !slices.EqualFunc(got, want, time.Time.Equal) {
		t.Errorf("runs %v, want %v", got, want)
	}
}

func TestOnceRunsOnce(t *testing.T) {
	t.Parallel()
	p := Once(at("2026-01-01 00:00:00"))
	if next, ok := p.Next(at("2025-12-31 23:59:59")); !ok || !next.Equal(at("2026-01-01 00:00:00")) {
		t.Errorf("next %v %v", next, ok)
	}
	if _, ok := p.Next(at("2026-01-01 00:00:00")); ok {
		t.Error("it runs again")
	}
	if runs, more := p.Due(at("2026-01-01 00:00:00"), at("2026-02-01 00:00:00"), 5); len(runs) != 1 || more {
		t.Errorf("due %v %v", runs, more)
	}
}

func TestTheZeroPlanNeverRuns(t *testing.T) {
	t.Parallel()
	if next, ok := (Plan{}).Next(at("2026-01-01 00:00:00")); ok {
		t.Errorf("it runs at %v", next)
	}
}

func TestDueIsTheLatestRuns(t *testing.T) {
	t.Parallel()
	p := recurring(t, "0 * * * *", "UTC", time.Time{}, at("2026-01-01 05:30:00"))
	for _, c := range []struct {
		now   string
		limit int
		want  []int
		more  bool
	}{
		{"2026-01-01 01:00:00", 3, []int{1}, false},
		{"2026-01-01 02:59:59", 3, []int{1, 2}, false},
		{"2026-01-01 03:00:00", 3, []int{1, 2, 3}, false},
		{"2026-01-01 04:10:00", 3, []int{2, 3, 4}, true},
		{"2027-01-01 00:00:00", 2, []int{4, 5}, true},
		{"2026-01-01 01:00:00", 1, []int{1}, false},
	} {
		runs, more := p.Due(at("2026-01-01 01:00:00"), at(c.now), c.limit)
		hours := []int{}
		for _, r := range runs {
			hours = append(hours, r.Hour())
		}
		if !slices.Equal(hours, c.want) || more != c.more {
			t.Errorf("due at %s: %v %v, want %v %v", c.now, hours, more, c.want, c.more)
		}
	}
}

// fates is the outcome of Decide in short: the hour of each run and a letter
// for its fate.
func fates(runs []Run) (short []string) {
	for _, r := range runs {
		short = append(short, r.At.Format("15:04")+map[Fate]string{Start: "+", Wait: "~", Skip: "-"}[r.Fate])
	}
	return short
}

func TestPolicies(t *testing.T) {
	t.Parallel()
	hourly := recurring(t, "0 * * * *", "UTC", time.Time{}, time.Time{})
	minutely := recurring(t, "* * * * *", "UTC", time.Time{}, time.Time{})
	const onTime, late = "2026-01-01 01:00:30", "2026-01-01 04:30:00"
	for name, c := range map[string]struct {
		plan   Plan
		policy Policy
		now    string
		busy   Busy
		want   []string
	}{
		"on time":                          {hourly, Policy{CatchUpLast, 0, OverlapSkip}, onTime, Busy{}, []string{"01:00+"}},
		"on time, nothing to catch up":     {hourly, Policy{CatchUpSkip, 0, OverlapSkip}, onTime, Busy{}, []string{"01:00+"}},
		"missed, the last one counts":      {hourly, Policy{CatchUpLast, 0, OverlapSkip}, late, Busy{}, []string{"04:00+"}},
		"missed, none counts":              {hourly, Policy{CatchUpSkip, 0, OverlapSkip}, late, Busy{}, []string{"04:00-"}},
		"missed, but one is on time":       {hourly, Policy{CatchUpSkip, 0, OverlapSkip}, "2026-01-01 04:00:10", Busy{}, []string{"03:00-", "04:00+"}},
		"two on time":                      {minutely, Policy{CatchUpSkip, 0, OverlapAllow}, "2026-01-01 01:31:00", Busy{}, []string{"01:30+", "01:31+"}},
		"all, one after the other":         {hourly, Policy{CatchUpAll, 10, OverlapSkip}, late, Busy{}, []string{"01:00+", "02:00~", "03:00~", "04:00~"}},
		"all, up to the cap":               {hourly, Policy{CatchUpAll, 2, OverlapSkip}, late, Busy{}, []string{"03:00+", "04:00~"}},
		"all at once":                      {hourly, Policy{CatchUpAll, 3, OverlapAllow}, late, Busy{}, []string{"02:00+", "03:00+", "04:00+"}},
		"all behind one that runs":         {hourly, Policy{CatchUpAll, 2, OverlapSkip}, late, Busy{Executing: true}, []string{"03:00~", "04:00~"}},
		"overlap, skip":                    {hourly, Policy{CatchUpLast, 0, OverlapSkip}, onTime, Busy{Executing: true}, []string{"01:00-"}},
		"overlap, queue":                   {hourly, Policy{CatchUpLast, 0, OverlapQueue}, onTime, Busy{Executing: true}, []string{"01:00~"}},
		"overlap, behind one that waits":   {hourly, Policy{CatchUpLast, 0, OverlapQueue}, onTime, Busy{Waiting: 1}, []string{"01:00~"}},
		"overlap, the queue is full":       {hourly, Policy{CatchUpLast, 0, OverlapQueue}, onTime, Busy{Executing: true, Waiting: MaxWaiting}, []string{"01:00-"}},
		"overlap, allow, but not for ever": {hourly, Policy{CatchUpLast, 0, OverlapAllow}, onTime, Busy{Executing: true, Running: MaxRunning}, []string{"01:00-"}},
		"overlap, allow":                   {hourly, Policy{CatchUpLast, 0, OverlapAllow}, onTime, Busy{Executing: true}, []string{"01:00+"}},
		"a cap of nothing still runs one":  {hourly, Policy{CatchUpAll, 0, OverlapSkip}, late, Busy{}, []string{"04:00+"}},
	} {
		runs := Decide(c.plan, c.policy, at("2026-01-01 01:00:00"), at(c.now), c.busy)
		if got := fates(runs); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
		for _, r := range runs {
			if r.Fate == Skip && r.Note == "" {
				t.Errorf("%s: skipped without a reason", name)
			}
		}
	}
}

func TestMissedRunsAreMentioned(t *testing.T) {
	t.Parallel()
	hourly := recurring(t, "0 * * * *", "UTC", time.Time{}, time.Time{})
	runs := Decide(hourly, Policy{CatchUpLast, 0, OverlapSkip}, at("2026-01-01 01:00:00"), at("2026-01-01 09:00:00"), Busy{})
	if len(runs) != 1 || runs[0].Note != NoteEarlier {
		t.Errorf("%+v", runs)
	}
}
