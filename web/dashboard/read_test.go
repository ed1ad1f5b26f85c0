package dashboard

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/controlplane/accounts"
	"sluice.dev/sluice/controlplane/accounts/usage"
	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/controlplane/gateway/edgestatus"
	"sluice.dev/sluice/platform/http/paging"
	"sluice.dev/sluice/workers/schedules"
	"sluice.dev/sluice/workers/schedules/definition"
)

var noon = time.Date(2026, 11, 21, 12, 0, 30, 0, time.UTC)

// used is usage of a product or route, some minutes before noon.
func used(name, status string, minutes int, n, refused int64) usage.Usage {
	at := usage.Minute.Start(noon).Add(-time.Duration(minutes) * time.Minute)
	return usage.Usage{Start: &at, Product: &name, Route: &name, Status: &status, Amounts: usage.Amounts{Requests: n, Refused: refused}}
}

// The chart shows what it counts, to the minute, and says it of each time.
func TestStacked(t *testing.T) {
	t.Parallel()
	times := spans[0].times(noon)
	c, sum := stacked([]usage.Usage{used("media", "2xx", 0, 30, 0), used("media", "4xx", 1, 60, 50), used("api", "5xx", 3, 5, 0), used("api", "none", 4, 1, 0),
		used("api", "2xx", 59, 10, 0), used("api", "2xx", 60, 1000, 0)}, times, time.Minute)
	if want := (traffic{Requests: 106, OK: 40, Client: 60, Server: 6, Refused: 50}); sum != want {
		t.Errorf("%+v", sum)
	}
	if c.Total != 106 || len(c.Columns) != 60 || c.Columns[58].Text != "OK (2xx, 3xx): 0, Client error (4xx): 60, Failed (5xx, no response): 0" {
		t.Errorf("%+v", c)
	}
}

// A bar of latency is as high as p99, and says all three.
func TestLatencies(t *testing.T) {
	t.Parallel()
	u := used("a", "2xx", 1, 9, 0)
	u.Latency = &usage.Latency{P50: 2, P90: 10, P99: 250}
	c := latencies([]usage.Usage{u}, spans[0].times(noon), time.Minute)
	if c.Total != 250_000 || c.Columns[58].Text != "p50 2.0 ms, p90 10 ms, p99 250 ms" || c.Columns[0].Text != "no requests" {
		t.Errorf("%+v", c)
	}
}

func TestTheFleetInShort(t *testing.T) {
	t.Parallel()
	got := summary(edgestatus.View{Version: 7, Data: []edgestatus.Edge{{Live: true, Current: true}, {Live: true, Lag: 3}, {Live: true, Lag: 2}, {Lag: 900}}})
	if *got != (fleetSummary{Version: 7, Edges: 4, Live: 3, Behind: 2, Lag: 3}) {
		t.Errorf("%+v", got)
	}
}

func TestStatesOfEdges(t *testing.T) {
	t.Parallel()
	for want, e := range map[string]edgestatus.Edge{
		"gone":    {Current: true},
		"refused": {Live: true, Seen: edgestatus.Seen{Refusals: []string{"routes: no"}}},
		"cached":  {Live: true, Current: true, Report: &edgestatus.Report{State: "cached"}},
		"behind":  {Live: true, Report: &edgestatus.Report{State: "live"}},
		"current": {Live: true, Current: true},
	} {
		if got := (edgesPage{}).State(e); got != want {
			t.Errorf("%s: %s", want, got)
		}
	}
}

// The account's own limit goes before its plan's, and that before the class's.
func TestLimits(t *testing.T) {
	t.Parallel()
	d := config.Document{
		Classes: []config.Class{{Name: "default", PerMinute: 100}, {Name: "events", PerMinute: 50}, {Name: "chat", PerMinute: 20}},
		Plans:   []config.Plan{{Name: "pro", Limits: map[string]config.Limit{"events": {PerMinute: 500}, "chat": {PerMinute: 30}}}, {Name: "free", Limits: map[string]config.Limit{"default": {PerMinute: 1}}}},
		Routes:  []config.Route{{Name: "a"}, {Name: "b", Class: "events"}},
	}
	rows := []usage.Usage{used("a", "2xx", 1, 40, 0), used("a", "4xx", 1, 20, 0), used("a", "2xx", 2, 10, 0), used("b", "2xx", 0, 5, 0), used("gone", "2xx", 0, 9, 0)}
	got := limitsOf(d, "pro", []accounts.Limit{{Class: "chat", PerMinute: 7}}, rows, spans[0].times(noon))
	for i, want := range []struct {
		perMinute, peak int64
		own             bool
		share           float64
	}{{100, 60, false, 60}, {500, 5, false, 1}, {7, 0, true, 0}} {
		if l := got[i]; l.PerMinute != want.perMinute || l.Peak != want.peak || l.Own != want.own || l.Share != want.share {
			t.Errorf("%s: %+v", l.Class, l)
		}
	}
}

func TestSpansEndNow(t *testing.T) {
	t.Parallel()
	for _, p := range spans {
		times := p.times(noon)
		if len(times) != p.steps || !times[p.steps-1].Equal(p.grain.Start(noon)) || times[1].Sub(times[0]) != p.step {
			t.Errorf("%s: %v", p.Name, times)
		}
	}
}

func TestNextRuns(t *testing.T) {
	t.Parallel()
	at := func(cron string, next *time.Time) schedules.Schedule {
		return schedules.Schedule{Next: next, Definition: definition.Definition{Schedule: definition.Timing{Type: definition.Recurring, Cron: cron, Timezone: "UTC"}}}
	}
	one, past := noon.Truncate(time.Hour).Add(time.Hour), noon.Add(-time.Hour)
	for name, c := range map[string]struct {
		of     schedules.Schedule
		before time.Time
		want   int
	}{
		"hourly":      {at("0 * * * *", &one), noon.Add(ahead), 24},
		"too many":    {at("* * * * *", &one), noon.Add(ahead), 30},
		"paused":      {at("0 * * * *", nil), noon.Add(ahead), 0},
		"late":        {at("0 * * * *", &past), noon.Add(3 * time.Hour), 3},
		"not a timer": {at("nonsense", &one), noon.Add(ahead), 0},
	} {
		if got := nextRuns(c.of, noon, c.before, 30); len(got) != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// A lane has a mark wherever there is a run, and no more than can be told apart.
func TestLanes(t *testing.T) {
	t.Parallel()
	one := noon.Truncate(time.Minute).Add(time.Minute)
	for cron, want := range map[string]int{"* * * * *": laneSteps, "0 * * * *": 24, "* 3 * * *": 11, "0 9 * * *": 1, "0 9 31 12 *": 0} {
		s := schedules.Schedule{Next: &one, Definition: definition.Definition{Schedule: definition.Timing{Type: definition.Recurring, Cron: cron, Timezone: "UTC"}}}
		plan, err := s.Definition.Schedule.Plan()
		if err != nil {
			t.Fatal(err)
		}
		if next, ok := plan.Next(noon); ok {
			s.Next = &next
		}
		if l := laneOf(s, noon); len(l.Marks) < want-1 || len(l.Marks) > want+1 || want < 2 && len(l.Marks) != want {
			t.Errorf("%s: %d marks, want about %d", cron, len(l.Marks), want)
		}
	}
}

func TestPager(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]pager{
		"":               {1, 50, 120, "", Root + "/x?offset=50"},
		"offset=50&a=b":  {51, 100, 120, Root + "/x?a=b&offset=0", Root + "/x?a=b&offset=100"},
		"offset=100":     {101, 120, 120, Root + "/x?offset=50", ""},
		"offset=no&a=%3": {1, 50, 120, "", Root + "/x?offset=50"},
	} {
		r := httptest.NewRequest("GET", Root+"/x", nil)
		r.URL.RawQuery = query
		p := pageOf(r)
		if got := pagerOf(r, "/x", p, min(50, 120-p.Offset), 120); got != want {
			t.Errorf("%q: %+v", query, got)
		}
	}
	if got := pagerOf(httptest.NewRequest("GET", Root+"/x", nil), "/x", paging.Page{Limit: 50}, 0, 0); got != (pager{}) {
		t.Errorf("%+v", got)
	}
}

func TestFormats(t *testing.T) {
	t.Parallel()
	for got, want := range map[string]string{
		number(1234567): "1\u202f234\u202f567", number(-1000): "-1\u202f000", number("0.01"): "0.01", number(int64(7)): "7", number(new(uint32(1200))): "1\u202f200",
		byteSize(999): "999 B", byteSize(1500): "1.5 kB", byteSize(250_000_000): "250 MB",
		millis(1.25): "1.2 ms", millis(250): "250 ms", millis(1500): "1.5 s",
		percent(1, 0): "–", percent(1, 3): "33.3 %", percent(1, 100_000): "< 0.1 %", percent(5, 5): "100 %",
		when(noon, noon): "just now", when(noon, noon.Add(90*time.Second)): "1 min ago", span(30 * time.Hour): "1 day", when(noon.Add(3*time.Hour), noon): "in 3 h",
		span(72 * time.Hour): "3 days", span(30 * time.Millisecond): "30 ms", seconds(600): "10 min",
		pretty([]byte(`{"a":1}`)): "{\n  \"a\": 1\n}", pretty([]byte(`not json`)): "not json",
		tone(new("failed")): "bad", tone("current"): "good", tone("anything"): "dim",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// What is read for one is read for all who look within the moment.
func TestRecent(t *testing.T) {
	t.Parallel()
	c, reads := newRecent(), 0
	read := func(context.Context) (any, error) { reads++; return reads, nil }
	for _, at := range []time.Duration{0, 400 * time.Millisecond, time.Second, time.Hour} {
		if _, err := c.get(t.Context(), "x", noon.Add(at), time.Second, read); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.get(t.Context(), "y", noon.Add(2*time.Hour), time.Second, read); reads != 4 || err != nil || len(c.kept) != 1 {
		t.Fatal(reads, err, c.kept)
	}
}

// Templates speak to people: every page has one heading of the first rank, every
// table names its columns, and nothing is inline.
func TestTemplates(t *testing.T) {
	t.Parallel()
	list, err := templates.ReadDir("templates")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range list {
		b, err := templates.ReadFile("templates/" + f.Name())
		if err != nil {
			t.Fatal(err)
		}
		for _, never := range []string{" style=", " onclick", "<script>", "<style", "http-equiv", "javascript:", `href="http`, `src="http`} {
			if strings.Contains(string(b), never) {
				t.Errorf("%s has %s", f.Name(), never)
			}
		}
		if n := strings.Count(string(b), "<th>"); n > 0 {
			t.Errorf("%s: %d headings of a table say not what they head", f.Name(), n)
		}
	}
}
