package xds

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics say how publications go and what edges answer.
type metrics struct {
	published prometheus.Histogram
	acks      *prometheus.HistogramVec
	nacks     *prometheus.CounterVec
	faults    prometheus.Gauge
}

// newMetrics returns metrics that are registered with r, if there is one.
func newMetrics(r prometheus.Registerer) metrics {
	m := metrics{
		published: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "sluice_config_publish_seconds", Help: "From the start of a publication to the last answer of a connected edge.",
			Buckets: prometheus.ExponentialBuckets(0.005, 2, 12)}),
		acks: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "sluice_xds_ack_seconds", Help: "From sending resources to an edge to its acceptance, by type.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 13)}, []string{"type"}),
		nacks: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sluice_xds_nacks_total", Help: "Refusals of edges, by type."}, []string{"type"}),
		faults: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "sluice_config_faults", Help: "Faults of the version in force, for which objects are left out or closed."}),
	}
	if r != nil {
		r.MustRegister(m.published, m.acks, m.nacks, m.faults)
	}
	return m
}

// answered counts the answer to what was sent at that time.
func (m metrics) answered(typeURL string, took time.Duration, refused bool) {
	if refused {
		m.nacks.WithLabelValues(shortType(typeURL)).Inc()
		return
	}
	m.acks.WithLabelValues(shortType(typeURL)).Observe(took.Seconds())
}
