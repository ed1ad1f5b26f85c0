package assets

import (
	"testing"
	"time"
)

func TestTheAccountIsToldOncePerLine(t *testing.T) {
	t.Parallel()
	cases := []struct {
		before, after, quota int64
		want                 bool
	}{
		{0, 799, 1000, false}, {0, 800, 1000, true}, {800, 850, 1000, false}, {850, 900, 1000, true},
		{900, 999, 1000, false}, {999, 1200, 1000, true}, {1200, 1500, 1000, false}, {900, 700, 1000, false}, {0, 1 << 40, 0, false},
	}
	for _, c := range cases {
		if got := crossed(c.before, c.after, c.quota); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

func TestWhatTheWarningSays(t *testing.T) {
	t.Parallel()
	w := warning(1_610_000_000, 2_000_000_000, time.Date(2026, 12, 5, 1, 2, 3, 0, time.UTC))
	if w["usage_percentage"] != 80.5 || w["current_usage_gb"] != 1.61 || w["quota_gb"] != 2.0 || w["period_end"] != "2026-12-31T23:59:59Z" {
		t.Error(w)
	}
}
