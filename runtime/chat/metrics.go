package chat

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics name no account, key or model: a client chooses those. Providers are
// named, as the operator chose them.
type metrics struct {
	open     prometheus.Gauge
	first    prometheus.Histogram
	ended    *prometheus.CounterVec
	tokens   *prometheus.CounterVec
	failures *prometheus.CounterVec
}

// newMetrics registers with r; nil: the numbers are kept and not shown.
func newMetrics(r prometheus.Registerer) metrics {
	m := metrics{
		open: prometheus.NewGauge(prometheus.GaugeOpts{Name: "sluice_chat_streams_open", Help: "Completions under way."}),
		first: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "sluice_chat_first_event_seconds", Help: "From the request's header to the provider's first event.",
			Buckets: []float64{.001, .005, .025, .1, .25, .5, 1, 2.5, 5, 10, 30, 120}}),
		ended: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sluice_chat_completions_total", Help: "Completions that are over, by how they ended."}, []string{"outcome"}),
		tokens: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sluice_chat_tokens_total", Help: "Tokens used, by kind and whether they had to be estimated."}, []string{"kind", "estimated"}),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sluice_chat_provider_failures_total", Help: "Times that a provider failed before its first event."}, []string{"provider"}),
	}
	if r != nil {
		r.MustRegister(m.open, m.first, m.ended, m.tokens, m.failures)
	}
	return m
}

// began notes the first event of a request that came at start.
func (m metrics) began(start time.Time) { m.first.Observe(time.Since(start).Seconds()) }

// over notes how a completion ended, and what it used.
func (m metrics) over(outcome string, u Usage) {
	m.ended.WithLabelValues(outcome).Inc()
	estimated := "false"
	if u.Estimated {
		estimated = "true"
	}
	m.tokens.WithLabelValues("prompt", estimated).Add(float64(u.Prompt))
	m.tokens.WithLabelValues("completion", estimated).Add(float64(u.Completion))
}
