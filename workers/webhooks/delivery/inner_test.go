package delivery

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/prometheus/client_golang/prometheus"
	"sluice.dev/sluice/workers/webhooks/sender"
)

func TestSlots(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	ms := time.Millisecond
	for name, c := range map[string]struct {
		next  time.Time
		rate  int
		n     int
		waits []time.Duration
		after time.Time
	}{
		"one second's worth goes at once":    {time.Time{}, 4, 4, []time.Duration{0, 0, 0, 0}, now.Add(250 * ms)},
		"more than that is put off evenly":   {time.Time{}, 4, 6, []time.Duration{0, 0, 0, 0, 250 * ms, 500 * ms}, now.Add(250 * ms)},
		"no more is saved up when idle":      {now.Add(-time.Hour), 2, 3, []time.Duration{0, 0, 500 * ms}, now.Add(500 * ms)},
		"all wait while the time is taken":   {now.Add(time.Second), 1, 2, []time.Duration{time.Second, 2 * time.Second}, now.Add(time.Second)},
		"nobody waits longer than the bound": {now.Add(time.Hour), 1, 1, []time.Duration{maxRateWait}, now.Add(time.Hour)},
	} {
		waits, after := slots(c.next, now, c.rate, c.n)
		if d := cmp.Diff(c.waits, waits); d != "" || !after.Equal(c.after) {
			t.Errorf("%s: %s, next at %v, want %v", name, d, after, c.after)
		}
	}
}

// Over a long time the rate holds, however requests come.
func TestSlotsHoldTheRate(t *testing.T) {
	t.Parallel()
	now, next, sent := time.Unix(1000, 0), time.Time{}, 0
	const rate, seconds = 10, 60
	for range seconds * 100 {
		waits, after := slots(next, now, rate, 3)
		next = after
		for _, w := range waits {
			if w == 0 {
				sent++
			}
		}
		now = now.Add(10 * time.Millisecond)
	}
	if sent < rate*seconds || sent > rate*(seconds+1) {
		t.Errorf("%d in %d s at %d a second", sent, seconds, rate)
	}
}

var refused = &pgconn.PgError{Code: "22P02"}

func TestNotTransient(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]bool{
		refused:                           true,
		fmt.Errorf("insert: %w", refused): true,
		&pgconn.PgError{Code: "23503"}:    true,
		&pgconn.PgError{Code: "40P01"}:    false, // deadlock
		&pgconn.PgError{Code: "57P01"}:    false, // being shut down
		&pgconn.PgError{Code: "53300"}:    false, // too many connections
		errors.New("unexpected EOF"):      false,
	} {
		if got := notTransient(err); got != want {
			t.Errorf("%v: %v", err, got)
		}
	}
}

func TestMetricsTellOutcomesApart(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewPedanticRegistry()
	m := newMetrics(registry)
	m.observe(opened{}, sender.Response{StatusCode: 200})
	m.observe(opened{}, sender.Response{StatusCode: 500})
	m.observe(opened{}, sender.Response{StatusCode: 200, Error: "cut off"})
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		for _, metric := range f.GetMetric() {
			if f.GetName() == "sluice_webhook_attempts_total" {
				got[metric.GetLabel()[0].GetValue()] = metric.GetCounter().GetValue()
			}
		}
	}
	if d := cmp.Diff(map[string]float64{"succeeded": 1, "refused": 1, "no_response": 1}, got); d != "" {
		t.Error(d)
	}
}
