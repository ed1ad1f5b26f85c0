package jobs_test

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sluice.dev/sluice/workers/jobs"
	"sluice.dev/sluice/workers/schedules"
)

func TestClaimsAreCounted(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	m := jobs.NewScheduleMetrics(registry)
	m.Observe(schedules.Fired{Schedules: 3, Started: 2, Lateness: 20 * time.Millisecond})
	m.Observe(schedules.Fired{Schedules: 1, Started: 1, Lateness: 2 * time.Second})
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		one := f.GetMetric()[0]
		got[f.GetName()] = one.GetCounter().GetValue() + one.GetHistogram().GetSampleSum()
	}
	for name, want := range map[string]float64{
		"sluice_schedules_claimed_total": 4, "sluice_schedule_executions_started_total": 3, "sluice_schedule_lateness_seconds": 2.02,
	} {
		if got[name] != want {
			t.Errorf("%s is %v, want %v", name, got[name], want)
		}
	}
}
