package jobs

import (
	"github.com/prometheus/client_golang/prometheus"
	"sluice.dev/sluice/workers/schedules"
)

// ScheduleMetrics counts what a ScheduleLoop does.
type ScheduleMetrics struct {
	schedules  prometheus.Counter
	executions prometheus.Counter
	lateness   prometheus.Histogram
}

// NewScheduleMetrics registers the metrics; a nil registerer registers nothing.
func NewScheduleMetrics(r prometheus.Registerer) *ScheduleMetrics {
	m := &ScheduleMetrics{
		schedules: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "sluice_schedules_claimed_total", Help: "Due schedules that this worker has claimed."}),
		executions: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "sluice_schedule_executions_started_total", Help: "Executions that this worker has given a job."}),
		lateness: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "sluice_schedule_lateness_seconds", Help: "How late the longest waiting schedule of a claim was.",
			Buckets: []float64{.001, .005, .01, .025, .05, .1, .25, .5, 1, 5, 10, 60, 3600}}),
	}
	if r != nil {
		r.MustRegister(m.schedules, m.executions, m.lateness)
	}
	return m
}

// Observe takes in one claim; it suits ScheduleLoop.Fired.
func (m *ScheduleMetrics) Observe(f schedules.Fired) {
	m.schedules.Add(float64(f.Schedules))
	m.executions.Add(float64(f.Started))
	m.lateness.Observe(f.Lateness.Seconds())
}
