// Package telemetry exposes what every process tells about itself: metrics in the
// Prometheus format under /metrics, of requests, jobs, connections to Postgres and
// the Go runtime. Packages of the domain register their own beside these.
//
// Names are sluice_<what>_<unit>, counters end in _total. Labels have few values:
// no account, key, address or path ever stands in one.
package telemetry

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Path is where metrics are served.
const Path = "/metrics"

// scrapes bounds how many scrapes are answered at once, and how long one takes.
const (
	scrapes     = 4
	scrapeLimit = 10 * time.Second
)

// New returns a registry that has the metrics of the Go runtime and the process,
// and sluice_build_info with the part's name and version.
func New(part, version string) *prometheus.Registry {
	r := prometheus.NewRegistry()
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "sluice_build_info", Help: "1; the labels say what runs.",
		ConstLabels: prometheus.Labels{"part": part, "version": version},
	})
	info.Set(1)
	r.MustRegister(info, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return r
}

// Beside serves GET /metrics beside h. Whoever reaches the address may read it,
// so h must not be public.
func Beside(h http.Handler, g prometheus.Gatherer) http.Handler {
	scrape := promhttp.HandlerFor(g, promhttp.HandlerOpts{MaxRequestsInFlight: scrapes, Timeout: scrapeLimit})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == Path && r.Method == http.MethodGet {
			scrape.ServeHTTP(w, r)
			return
		}
		h.ServeHTTP(w, r)
	})
}
