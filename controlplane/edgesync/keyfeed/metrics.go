package keyfeed

import (
	"github.com/prometheus/client_golang/prometheus"
	"sluice.dev/sluice/filters/credentials/keytable"
)

// metrics count what edges are sent.
type metrics struct {
	waiting prometheus.Gauge
	pages   *prometheus.CounterVec
	records prometheus.Counter
	behind  prometheus.Histogram
}

// newMetrics returns metrics that are registered with r, if there is one.
func newMetrics(r prometheus.Registerer) metrics {
	m := metrics{
		waiting: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "sluice_feed_waiting_polls", Help: "Polls of edges that are being answered or wait for a change."}),
		pages: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sluice_feed_pages_total", Help: "Pages sent to edges, by kind."}, []string{"kind"}),
		records: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "sluice_feed_records_total", Help: "Records and tombstones sent to edges."}),
		behind: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "sluice_feed_behind_changes", Help: "How many changes an edge lacked after a delta page.",
			Buckets: []float64{0, 1, 10, 100, 1000, 10_000, 100_000, 1_000_000}}),
	}
	if r != nil {
		r.MustRegister(m.waiting, m.pages, m.records, m.behind)
	}
	return m
}

// observe counts page p, sent when the feed was at h, or the failure to read it.
func (m metrics) observe(p keytable.Page, h head, err error) {
	switch {
	case err != nil:
		m.pages.WithLabelValues("error").Inc()
		return
	case p.Snapshot:
		m.pages.WithLabelValues("snapshot").Inc()
	case len(p.Records) == 0:
		m.pages.WithLabelValues("empty").Inc()
	default:
		m.pages.WithLabelValues("delta").Inc()
	}
	if !p.Snapshot {
		m.behind.Observe(float64(h.head - min(h.head, p.Position)))
	}
	m.records.Add(float64(len(p.Records) / keytable.RecordSize))
}
