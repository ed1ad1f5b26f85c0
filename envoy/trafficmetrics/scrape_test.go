package trafficmetrics

import (
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
)

// withoutZeros gathers metrics without their help and without counters that are zero, which
// tests do not repeat.
type withoutZeros struct{ prometheus.Gatherer }

func (w withoutZeros) Gather() ([]*dto.MetricFamily, error) {
	all, err := w.Gatherer.Gather()
	for _, f := range all {
		f.Help = new(string)
		f.Metric = slices.DeleteFunc(f.Metric, func(m *dto.Metric) bool { return m.Counter != nil && m.Counter.GetValue() == 0 })
	}
	return slices.DeleteFunc(all, func(f *dto.MetricFamily) bool { return len(f.Metric) == 0 }), err
}

// scrape reads all metrics as Prometheus does, and returns how many bytes that were.
func scrape(b *testing.B, r *prometheus.Registry, encoding string) int {
	b.Helper()
	q := httptest.NewRequest("GET", "/metrics", nil)
	q.Header.Set("Accept-Encoding", encoding)
	w := httptest.NewRecorder()
	promhttp.HandlerFor(r, promhttp.HandlerOpts{}).ServeHTTP(w, q)
	return w.Body.Len()
}
