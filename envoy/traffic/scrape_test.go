package traffic

import (
	"net/http/httptest"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"
)

// withoutHelp gathers metrics without their help, which tests do not repeat.
type withoutHelp struct{ prometheus.Gatherer }

func (w withoutHelp) Gather() ([]*dto.MetricFamily, error) {
	all, err := w.Gatherer.Gather()
	for _, f := range all {
		f.Help = new(string)
	}
	return all, err
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
