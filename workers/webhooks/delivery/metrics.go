package delivery

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sluice.dev/sluice/workers/webhooks/sender"
)

// metrics name no endpoint and no account: there are too many of them, and
// the log of attempts has both.
type metrics struct {
	attempts *prometheus.CounterVec
	duration prometheus.Histogram
	late     prometheus.Histogram
	diverted prometheus.Counter
}

// newMetrics registers with r; nil: the numbers are kept and not shown.
func newMetrics(r prometheus.Registerer) metrics {
	m := metrics{
		attempts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sluice_webhook_attempts_total", Help: "Requests made to receivers, by what came of them."}, []string{"outcome"}),
		duration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "sluice_webhook_attempt_seconds", Help: "How long receivers took.",
			Buckets: []float64{0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5}}),
		late: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "sluice_webhook_late_seconds", Help: "How long after they were due attempts began.",
			Buckets: []float64{0.01, 0.05, 0.1, 0.25, 0.5, 1, 5, 30, 120, 600}}),
		diverted: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "sluice_webhook_diverted_total", Help: "Jobs moved to the queue of slow endpoints."}),
	}
	if r != nil {
		r.MustRegister(m.attempts, m.duration, m.late, m.diverted)
	}
	return m
}

// observe counts one request: what came of it, how long the receiver took, and
// how late it began.
func (m metrics) observe(o opened, r sender.Response) {
	outcome := "no_response"
	switch {
	case r.OK():
		outcome = "succeeded"
	case r.Error == "":
		outcome = "refused"
	}
	m.attempts.WithLabelValues(outcome).Inc()
	m.duration.Observe(r.Duration.Seconds())
	m.late.Observe(max(0, o.startedAt.Sub(o.due)).Seconds())
}

// dueOf is when an attempt was due; one without a time is due now.
func dueOf(at *time.Time, now time.Time) time.Time {
	if at == nil {
		return now
	}
	return *at
}
