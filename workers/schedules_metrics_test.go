package workers_test

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"sluice.dev/sluice/controlplane/schedules"
	"sluice.dev/sluice/workers"
)

func TestClaimsAreCounted(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	m := workers.NewScheduleMetrics(registry)
	m.Observe(schedules.Fired{Schedules: 3, Started: 2, Lateness: 20 * time.Millisecond})
	m.Observe(schedules.Fired{Schedules: 1, Started: 1, Lateness: 2 * time.Second})
	want := `
# HELP sluice_schedule_executions_started_total Executions that this worker has given a job.
# TYPE sluice_schedule_executions_started_total counter
sluice_schedule_executions_started_total 3
# HELP sluice_schedules_claimed_total Due schedules that this worker has claimed.
# TYPE sluice_schedules_claimed_total counter
sluice_schedules_claimed_total 4
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want),
		"sluice_schedule_executions_started_total", "sluice_schedules_claimed_total"); err != nil {
		t.Error(err)
	}
	if n := testutil.CollectAndCount(registry, "sluice_schedule_lateness_seconds"); n != 1 {
		t.Errorf("%d lateness histograms", n)
	}
}
