package retry

import (
	"testing"
	"time"
)

func TestStandardScheduleIsTheSpecs(t *testing.T) {
	t.Parallel()
	var sum time.Duration
	for i, cumulative := range []string{"5s", "35s", "5m35s", "35m35s", "2h35m35s"} {
		sum += Decide(Standard, i, Outcome{StatusCode: 500}, 0).Delay
		if want, _ := time.ParseDuration(cumulative); sum != want {
			t.Errorf("retry %d goes out after %v, want %v", i+1, sum, want)
		}
	}
	if n := Decide(Standard, len(Standard), Outcome{StatusCode: 500}, 0); n.State != Failed {
		t.Errorf("after the fifth failed retry: %v, want failed", n.State)
	}
}

func TestDecide(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		failures int
		outcome  Outcome
		want     Next
	}{
		"200 is success":                     {0, Outcome{StatusCode: 200}, Next{State: Succeeded}},
		"299 is success":                     {5, Outcome{StatusCode: 299}, Next{State: Succeeded}},
		"a redirect is a failure":            {0, Outcome{StatusCode: 302}, Next{Again, 5 * time.Second}},
		"no response is a failure":           {1, Outcome{}, Next{Again, 30 * time.Second}},
		"a client error is retried too":      {2, Outcome{StatusCode: 400}, Next{Again, 5 * time.Minute}},
		"410 ends it at once":                {0, Outcome{StatusCode: 410}, Next{State: Failed}},
		"Retry-After lengthens":              {0, Outcome{StatusCode: 429, RetryAfter: time.Minute}, Next{Again, time.Minute}},
		"Retry-After never shortens":         {3, Outcome{StatusCode: 503, RetryAfter: time.Second}, Next{Again, 30 * time.Minute}},
		"Retry-After is bounded":             {0, Outcome{StatusCode: 503, RetryAfter: 99 * time.Hour}, Next{Again, MaxRetryAfter}},
		"Retry-After revives nothing":        {5, Outcome{StatusCode: 503, RetryAfter: time.Second}, Next{State: Failed}},
		"the informational range is failure": {0, Outcome{StatusCode: 199}, Next{Again, 5 * time.Second}},
	} {
		if got := Decide(Standard, c.failures, c.outcome, 0); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

func TestJitterOnlyAddsAndStaysUnderASecond(t *testing.T) {
	t.Parallel()
	for i, base := range Standard {
		for _, r := range []float64{0, 0.5, 0.999999} {
			d := Decide(Standard, i, Outcome{}, r).Delay
			if d < base || d >= base+time.Second || d > base+base/maxJitterShare {
				t.Errorf("retry %d, random %v: %v for %v", i+1, r, d, base)
			}
		}
	}
}

func TestDisable(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		since time.Time
		want  bool
	}{
		"never failed":             {time.Time{}, false},
		"failing for 5 days":       {now.Add(-MaxFailing), true},
		"failing for a bit less":   {now.Add(-MaxFailing + time.Second), false},
		"failing since just now":   {now, false},
		"failing for much longer":  {now.Add(-1000 * time.Hour), true},
		"a first failure to come?": {now.Add(time.Hour), false},
	} {
		if got := Disable(c.since, now); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestParseAfter(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"":                              0,
		"0":                             0,
		"120":                           2 * time.Minute,
		" 7 ":                           7 * time.Second,
		"-5":                            0,
		"1.5":                           0,
		"soon":                          0,
		"99999999999999999999":          MaxRetryAfter,
		"86400":                         MaxRetryAfter,
		"Sun, 01 Mar 2026 12:00:30 GMT": 30 * time.Second,
		"Sun, 01 Mar 2026 11:00:00 GMT": 0,
		"Sun, 08 Mar 2026 11:00:00 GMT": MaxRetryAfter,
	} {
		if got := ParseAfter(value, now); got != want {
			t.Errorf("%q: %v, want %v", value, got, want)
		}
	}
}

func FuzzParseAfter(f *testing.F) {
	for _, s := range []string{"", "5", "-1", "99999999999999999999", "Sun, 01 Mar 2026 12:00:30 GMT", "٣"} {
		f.Add(s)
	}
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, s string) {
		if d := ParseAfter(s, now); d < 0 || d > MaxRetryAfter {
			t.Errorf("%q: %v is out of bounds", s, d)
		}
	})
}
