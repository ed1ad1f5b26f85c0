package analytics

import (
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/media/api/form"
	"sluice.dev/sluice/platform/apierror"
)

var now = time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)

func parse(query string) (Range, string) {
	q, _ := url.ParseQuery(query)
	var f form.Form
	r := ParseRange(&f, q, now)
	var bad []string
	if e, ok := errors.AsType[*apierror.Error](f.Err()); ok {
		for _, d := range e.Details {
			bad = append(bad, d.Field)
		}
	}
	return r, strings.Join(bad, " ")
}

func TestWhichRangeIsAskedFor(t *testing.T) {
	t.Parallel()
	day := func(d int) time.Time { return time.Date(2026, 3, d, 0, 0, 0, 0, time.UTC) }
	cases := map[string]Range{
		"":                               {now.AddDate(0, 0, -7), now, "day", ""},
		"from=2026-03-01&to=2026-03-03":  {day(1), day(3), "day", ""},
		"to=2026-03-08T02:00:00%2B02:00": {day(1), day(8), "day", ""},
		"from=2026-03-09&interval=hour":  {day(9), now, "hour", ""},
		"stream_id=strm_1":               {now.AddDate(0, 0, -7), now, "day", "strm_1"},
		"asset_id=vod_1":                 {now.AddDate(0, 0, -7), now, "day", "vod_1"},
	}
	for query, want := range cases {
		if got, bad := parse(query); bad != "" || got != want {
			t.Errorf("%s: %+v, bad: %s", query, got, bad)
		}
	}
}

func TestRangesThatAreRefused(t *testing.T) {
	t.Parallel()
	cases := map[string]string{
		"from=2026-03-10T12:00:00Z":           "from",
		"from=2025-01-01":                     "from",
		"from=2026-01-01&interval=hour":       "from",
		"from=yesterday&to=tomorrow":          "to from",
		"to=0001-01-01":                       "to",
		"interval=minute":                     "interval",
		"stream_id=%00":                       "stream_id",
		"asset_id=" + strings.Repeat("x", 65): "asset_id",
	}
	for query, want := range cases {
		if _, bad := parse(query); bad != want {
			t.Errorf("%s: %s, want %s", query, bad, want)
		}
	}
}

func FuzzParseRange(f *testing.F) {
	f.Add("from=2026-03-01&to=2026-03-03&interval=hour")
	f.Fuzz(func(t *testing.T, query string) {
		if r, bad := parse(query); bad == "" && (!r.From.Before(r.To) || r.To.Sub(r.From) > maxDays) {
			t.Fatalf("%+v", r)
		}
	})
}
