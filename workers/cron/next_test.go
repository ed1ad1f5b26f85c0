package cron

import (
	"slices"
	"testing"
	"time"
)

func mustParse(t testing.TB, expr string) Schedule {
	t.Helper()
	s, err := Parse(expr)
	if err != nil {
		t.Fatalf("Parse(%q): %v", expr, err)
	}
	return s
}

func mustZone(t testing.TB, name string) *time.Location {
	t.Helper()
	loc, err := LoadZone(name)
	if err != nil {
		t.Fatal(err)
	}
	return loc
}

func mustTime(t testing.TB, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// runs is the text of the next runs, on the zone's own clock.
func runs(t *testing.T, zone, from, expr string, n int) []string {
	t.Helper()
	loc := mustZone(t, zone)
	var got []string
	for _, at := range mustParse(t, expr).Upcoming(mustTime(t, from), loc, n) {
		got = append(got, at.In(loc).Format(time.RFC3339))
	}
	return got
}

type nextCase struct {
	zone, from, expr string
	want             []string
}

func checkNext(t *testing.T, cases []nextCase) {
	t.Helper()
	for _, c := range cases {
		if got := runs(t, c.zone, c.from, c.expr, len(c.want)); !slices.Equal(got, c.want) {
			t.Errorf("%s %q from %s:\n got %v\nwant %v", c.zone, c.expr, c.from, got, c.want)
		}
	}
}

func TestCalendar(t *testing.T) {
	t.Parallel()
	const from = "2026-01-01T00:00:00Z" // a Thursday
	checkNext(t, []nextCase{
		{"UTC", from, "* * * * *", []string{"2026-01-01T00:01:00Z", "2026-01-01T00:02:00Z"}},
		{"UTC", "2025-12-31T23:59:59Z", "* * * * *", []string{"2026-01-01T00:00:00Z"}},
		{"UTC", from, "@yearly", []string{"2027-01-01T00:00:00Z"}},
		{"UTC", from, "0 0 29 2 *", []string{"2028-02-29T00:00:00Z", "2032-02-29T00:00:00Z"}},
		{"UTC", "2096-03-01T00:00:00Z", "0 0 29 2 *", []string{"2104-02-29T00:00:00Z"}},
		{"UTC", from, "0 0 * 2 SUN#5", []string{"2032-02-29T00:00:00Z", "2060-02-29T00:00:00Z"}},
		{"UTC", from, "0 0 L * *", []string{"2026-01-31T00:00:00Z", "2026-02-28T00:00:00Z", "2026-03-31T00:00:00Z"}},
		{"UTC", from, "0 0 L-2 * *", []string{"2026-01-29T00:00:00Z", "2026-02-26T00:00:00Z"}},
		{"UTC", from, "0 0 LW * *", []string{"2026-01-30T00:00:00Z", "2026-02-27T00:00:00Z", "2026-03-31T00:00:00Z", "2026-04-30T00:00:00Z", "2026-05-29T00:00:00Z"}},
		{"UTC", from, "0 0 1W * *", []string{"2026-02-02T00:00:00Z", "2026-03-02T00:00:00Z", "2026-04-01T00:00:00Z", "2026-05-01T00:00:00Z", "2026-06-01T00:00:00Z", "2026-07-01T00:00:00Z", "2026-08-03T00:00:00Z"}},
		{"UTC", from, "0 0 31W * *", []string{"2026-01-30T00:00:00Z", "2026-03-31T00:00:00Z", "2026-05-29T00:00:00Z"}},
		{"UTC", from, "0 0 15W 8,11 *", []string{"2026-08-14T00:00:00Z", "2026-11-16T00:00:00Z"}},
		{"UTC", from, "0 0 * * FRIL", []string{"2026-01-30T00:00:00Z", "2026-02-27T00:00:00Z"}},
		{"UTC", from, "0 0 * * MON#1,MON#3", []string{"2026-01-05T00:00:00Z", "2026-01-19T00:00:00Z", "2026-02-02T00:00:00Z"}},
		{"UTC", from, "0 0 1,15,L 2 *", []string{"2026-02-01T00:00:00Z", "2026-02-15T00:00:00Z", "2026-02-28T00:00:00Z"}},
		{"UTC", from, "30 22-1 * * *", []string{"2026-01-01T00:30:00Z", "2026-01-01T01:30:00Z", "2026-01-01T22:30:00Z", "2026-01-01T23:30:00Z", "2026-01-02T00:30:00Z"}},
	})
}

func TestDayOfMonthAndDayOfWeek(t *testing.T) {
	t.Parallel()
	const from = "2026-01-01T12:00:00Z" // a Thursday
	checkNext(t, []nextCase{
		// both restricted: either
		{"UTC", from, "0 0 13 * FRI", []string{"2026-01-02T00:00:00Z", "2026-01-09T00:00:00Z", "2026-01-13T00:00:00Z", "2026-01-16T00:00:00Z"}},
		{"UTC", from, "0 0 L * MON#1", []string{"2026-01-05T00:00:00Z", "2026-01-31T00:00:00Z", "2026-02-02T00:00:00Z"}},
		{"UTC", from, "0 0 30 2 MON", []string{"2026-02-02T00:00:00Z", "2026-02-09T00:00:00Z"}},
		// one contains a star: both
		{"UTC", from, "0 0 */2 * FRI", []string{"2026-01-09T00:00:00Z", "2026-01-23T00:00:00Z"}},
		{"UTC", from, "0 0 13 * */5", []string{"2026-02-13T00:00:00Z", "2026-03-13T00:00:00Z", "2026-09-13T00:00:00Z"}},
		{"UTC", from, "0 0 13 * *", []string{"2026-01-13T00:00:00Z"}},
		{"UTC", from, "0 0 * * FRI", []string{"2026-01-02T00:00:00Z", "2026-01-09T00:00:00Z"}},
	})
}

func TestTimesThatDoNotExistFireOnceAfterTheGap(t *testing.T) {
	t.Parallel()
	checkNext(t, []nextCase{
		{"America/New_York", "2016-03-13T01:45:00-05:00", "*/30 * * * *", []string{"2016-03-13T03:00:00-04:00", "2016-03-13T03:30:00-04:00", "2016-03-13T04:00:00-04:00"}},
		{"America/New_York", "2016-03-12T12:00:00-05:00", "30 2 * * *", []string{"2016-03-13T03:00:00-04:00", "2016-03-14T02:30:00-04:00"}},
		{"America/New_York", "2016-03-13T01:59:59-05:00", "30 2 * * *", []string{"2016-03-13T03:00:00-04:00", "2016-03-14T02:30:00-04:00"}},
		{"America/New_York", "2016-03-13T03:00:00-04:00", "30 2 * * *", []string{"2016-03-14T02:30:00-04:00"}},
		{"America/New_York", "2016-03-13T01:30:00-05:00", "15,45 * * * *", []string{"2016-03-13T01:45:00-05:00", "2016-03-13T03:00:00-04:00", "2016-03-13T03:15:00-04:00"}},
		{"America/New_York", "2016-03-13T01:30:00-05:00", "30 2,3 * * *", []string{"2016-03-13T03:00:00-04:00", "2016-03-13T03:30:00-04:00"}},
		{"America/New_York", "2016-03-13T00:00:00-05:00", "0 3 * * *", []string{"2016-03-13T03:00:00-04:00", "2016-03-14T03:00:00-04:00"}},
		// midnight itself is missing
		{"America/Sao_Paulo", "2018-11-03T12:00:00-03:00", "0 0 * * *", []string{"2018-11-04T01:00:00-02:00", "2018-11-05T00:00:00-02:00"}},
		{"America/Sao_Paulo", "2018-11-03T12:00:00-03:00", "30 0 4 11 *", []string{"2018-11-04T01:00:00-02:00", "2019-11-04T00:30:00-03:00"}},
		// a change of half an hour
		{"Australia/Lord_Howe", "2024-10-06T01:00:00+10:30", "15 2 * * *", []string{"2024-10-06T02:30:00+11:00", "2024-10-07T02:15:00+11:00"}},
		// a change of two hours
		{"Antarctica/Troll", "2024-03-31T00:00:00Z", "30 1,2 * * *", []string{"2024-03-31T03:00:00+02:00", "2024-04-01T01:30:00+02:00"}},
		// a whole day is missing
		{"Pacific/Apia", "2011-12-29T12:00:00-10:00", "0 9,17 * * *", []string{"2011-12-29T17:00:00-10:00", "2011-12-31T00:00:00+14:00", "2011-12-31T09:00:00+14:00"}},
		{"Pacific/Apia", "2011-12-01T00:00:00-10:00", "0 9 30 12 *", []string{"2011-12-31T00:00:00+14:00", "2012-12-30T09:00:00+14:00"}},
	})
}

func TestFixedTimesThatRepeatFireAtTheFirst(t *testing.T) {
	t.Parallel()
	checkNext(t, []nextCase{
		{"America/New_York", "2016-11-05T12:00:00-04:00", "30 1 * * *", []string{"2016-11-06T01:30:00-04:00", "2016-11-07T01:30:00-05:00"}},
		{"America/New_York", "2016-11-06T01:30:00-04:00", "30 1 * * *", []string{"2016-11-07T01:30:00-05:00"}},
		{"America/New_York", "2016-11-06T01:10:00-05:00", "30 1 * * *", []string{"2016-11-07T01:30:00-05:00"}},
		{"America/New_York", "2016-11-06T00:30:00-04:00", "0,30 1,2 * * *", []string{"2016-11-06T01:00:00-04:00", "2016-11-06T01:30:00-04:00", "2016-11-06T02:00:00-05:00"}},
		{"America/Havana", "2024-11-02T12:00:00-04:00", "@daily", []string{"2024-11-03T00:00:00-04:00", "2024-11-04T00:00:00-05:00"}},
		{"America/Sao_Paulo", "2019-02-16T12:00:00-02:00", "30 23 * * *", []string{"2019-02-16T23:30:00-02:00", "2019-02-17T23:30:00-03:00"}},
		{"Australia/Lord_Howe", "2024-04-07T00:00:00+11:00", "45 1 * * *", []string{"2024-04-07T01:45:00+11:00", "2024-04-08T01:45:00+10:30"}},
	})
}

func TestIntervalsFireInBothPasses(t *testing.T) {
	t.Parallel()
	first, second := "2016-11-06T01:00:00-04:00", "2016-11-06T01:00:00-05:00"
	half, secondHalf := "2016-11-06T01:30:00-04:00", "2016-11-06T01:30:00-05:00"
	checkNext(t, []nextCase{
		{"America/New_York", "2016-11-06T00:30:00-04:00", "@hourly", []string{first, second, "2016-11-06T02:00:00-05:00"}},
		{"America/New_York", "2016-11-06T00:30:00-04:00", "*/30 1 * * *", []string{first, half, second, secondHalf, "2016-11-07T01:00:00-05:00"}},
		{"America/New_York", "2016-11-06T00:30:00-04:00", "0 1-1 * * *", []string{first, second, "2016-11-07T01:00:00-05:00"}},
		{"America/New_York", "2016-11-06T00:30:00-04:00", "30 1/12 * * *", []string{half, secondHalf, "2016-11-06T13:30:00-05:00"}},
		{"America/New_York", "2016-11-06T00:30:00-04:00", "30 22-2 * * *", []string{"2016-11-06T01:30:00-04:00", secondHalf, "2016-11-06T02:30:00-05:00"}},
		{"America/New_York", "2016-11-06T01:30:00-04:00", "*/30 1 6 11 *", []string{second, secondHalf, "2017-11-06T01:00:00-05:00"}},
	})
}

// TestOffsetsWithSeconds holds that runs fall on the second 0 of the local
// clock, also where the offset has seconds.
func TestOffsetsWithSeconds(t *testing.T) {
	t.Parallel()
	checkNext(t, []nextCase{
		{"Africa/Monrovia", "1960-01-01T00:00:00Z", "0 12 * * *", []string{"1960-01-01T12:00:00-00:44"}},
	})
	got, _ := mustParse(t, "0 12 * * *").Next(mustTime(t, "1960-01-01T00:00:00Z"), mustZone(t, "Africa/Monrovia"))
	if want := mustTime(t, "1960-01-01T12:44:30Z"); !got.Equal(want) {
		t.Errorf("noon in Monrovia, at UTC-00:44:30, is %v, want %v", got, want)
	}
}

func TestTheEndsOfTime(t *testing.T) {
	t.Parallel()
	s := mustParse(t, "@yearly")
	if at, ok := s.Next(time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC), time.UTC); ok {
		t.Errorf("a run in the year 10000: %v", at)
	}
	if at, ok := s.Next(time.Date(20000, 1, 1, 0, 0, 0, 0, time.UTC), nil); ok {
		t.Errorf("a run after the year 20000: %v", at)
	}
	newYork := mustZone(t, "America/New_York")
	if at, ok := s.Next(time.Date(9999, 1, 2, 0, 0, 0, 0, newYork), newYork); ok {
		t.Errorf("a run that UTC puts into the year 10000: %v", at)
	}
	if at, ok := s.Next(time.Date(-5000, 1, 1, 0, 0, 0, 0, time.UTC), nil); !ok || at.Year() != 2 {
		t.Errorf("first run ever: %v %v", at, ok)
	}
	if at, ok := (Schedule{}).Next(time.Unix(0, 0), time.UTC); ok {
		t.Errorf("the zero Schedule fires at %v", at)
	}
}

// TestLeapYearsPastTheZoneTable holds the last day of a leap year that only the
// zone's rule describes: the standard library reports a zone period there that
// ends before it began.
func TestLeapYearsPastTheZoneTable(t *testing.T) {
	t.Parallel()
	checkNext(t, []nextCase{
		{"Europe/Berlin", "2040-12-31T12:00:00Z", "@daily", []string{"2041-01-01T00:00:00+01:00", "2041-01-02T00:00:00+01:00"}},
		{"Europe/Berlin", "2040-12-30T12:00:00Z", "0 0 * 2 MON#5", []string{"2044-02-29T00:00:00+01:00", "2072-02-29T00:00:00+01:00"}},
		{"America/New_York", "2040-12-31T12:00:00Z", "0 */6 * * *", []string{"2040-12-31T12:00:00-05:00", "2040-12-31T18:00:00-05:00", "2041-01-01T00:00:00-05:00"}},
	})
}

func TestLast(t *testing.T) {
	t.Parallel()
	table := []struct{ expr, after, until, want string }{
		{"*/5 * * * *", "2026-01-01T00:00:00Z", "2026-06-01T00:03:00Z", "2026-06-01T00:00:00Z"},
		{"*/5 * * * *", "2026-01-01T00:00:00Z", "2026-01-01T00:05:00Z", "2026-01-01T00:05:00Z"},
		{"*/5 * * * *", "2026-01-01T00:00:00Z", "2026-01-01T00:04:59Z", ""},
		{"* * 1 1 *", "2025-06-01T00:00:00Z", "2026-12-31T00:00:00Z", "2026-01-01T23:59:00Z"},
		{"0 0 29 2 *", "2000-01-01T00:00:00Z", "2026-01-01T00:00:00Z", "2024-02-29T00:00:00Z"},
		{"0 0 29 2 *", "2024-02-29T00:00:00Z", "2026-01-01T00:00:00Z", ""},
		{"0 0 * 2 MON#5", "1700-01-01T00:00:00Z", "2026-01-01T00:00:00Z", "2016-02-29T00:00:00Z"},
		{"0 0 * * *", "2026-01-02T00:00:00Z", "2026-01-01T00:00:00Z", ""},
	}
	for _, c := range table {
		got, ok := mustParse(t, c.expr).Last(mustTime(t, c.after), mustTime(t, c.until), time.UTC)
		if (c.want != "") != ok || ok && got.Format(time.RFC3339) != c.want {
			t.Errorf("last of %q in (%s, %s] = %v %v, want %q", c.expr, c.after, c.until, got, ok, c.want)
		}
	}
}

func TestZones(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"UTC", "Europe/Berlin", "Asia/Kathmandu", "America/Argentina/ComodRivadavia", "EST5EDT"} {
		if loc := mustZone(t, name); loc.String() != name {
			t.Errorf("LoadZone(%q) = %v", name, loc)
		}
	}
	bad := []string{"", "Local", "localtime", "Mars/Base", "../etc/passwd", "/etc/localtime", "right/UTC", "posix/UTC", "UTC+1", "Europe/Berlin ", "Europe"}
	for _, name := range bad {
		if loc, err := LoadZone(name); err == nil {
			t.Errorf("LoadZone(%q) = %v, want an error", name, loc)
		}
	}
}

func BenchmarkNext(b *testing.B) {
	berlin := mustZone(b, "Europe/Berlin")
	from := mustTime(b, "2026-03-01T00:00:00Z")
	for _, expr := range []string{"* * * * *", "0 9 * * MON-FRI", "0 0 LW * *", "0 0 29 2 *", "0 0 * 2 MON#5"} {
		s := mustParse(b, expr)
		b.Run(expr, func(b *testing.B) {
			for b.Loop() {
				s.Next(from, berlin)
			}
		})
	}
}
