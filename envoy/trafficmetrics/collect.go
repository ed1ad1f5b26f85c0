package trafficmetrics

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"sluice.dev/sluice/filters/limits/traffic"
)

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

var (
	requestsDesc = desc("sluice_edge_requests_total", "Requests that have ended, by route. status_class is 2xx and so on; none: the client left before an answer.", "product", "route", "method", "status_class")
	refusedDesc  = desc("sluice_edge_refused_total", "Those of them that no product has answered, by the code of the error: the edge refused them, or could not reach the product.", "product", "route", "reason")
	wouldDesc    = desc("sluice_edge_would_refuse_total", "Requests that the edge let pass and would have refused if their route did not have that in the shadow, by the code of the error.", "product", "route", "would")
	tookDesc     = desc("sluice_edge_request_duration_seconds", "From the first byte of a request to the last of its answer, of requests that the edge passed on.", "product", "route", "method", "status_class")
	startedDesc  = desc("sluice_edge_response_start_seconds", "From the first byte of a request until the product's answer began.", "product")
	inDesc       = desc("sluice_edge_request_bytes_total", "Bytes of the bodies of requests.", "product", "route")
	outDesc      = desc("sluice_edge_response_bytes_total", "Bytes of the bodies of answers.", "product", "route")
	openDesc     = desc("sluice_edge_connection_seconds_total", "For how long WebSocket connections and streams that are watched were open, while they are: its rate is how many are.", "product", "route")
	routesDesc   = desc("sluice_edge_metrics_routes", "Routes that have counters.")
)

// Describe implements prometheus.Collector.
func (t *Totals) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{requestsDesc, refusedDesc, wouldDesc, tookDesc, startedDesc, inDesc, outDesc, openDesc, routesDesc} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (t *Totals) Collect(out chan<- prometheus.Metric) {
	for _, m := range t.metrics() {
		out <- m
	}
}

// metrics are those of now. They are made while the sums stand still, and sent later: who reads
// them may be slow.
func (t *Totals) metrics() (list []prometheus.Metric) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.follow()
	count := func(d *prometheus.Desc, n uint64, labels ...string) {
		list = append(list, prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), labels...))
	}
	for _, name := range sorted(t.routes) {
		r := t.routes[name]
		for k, c := range r.kinds {
			labels := []string{name.Product, name.Name, k.method, className(k.class)}
			count(requestsDesc, c.requests, labels...)
			if n := c.took.count(); n > 0 {
				list = append(list, c.took.metric(tookDesc, n, labels...))
			}
		}
		for reason, n := range r.refused {
			count(refusedDesc, n, name.Product, name.Name, reason)
		}
		for reason, n := range r.would {
			count(wouldDesc, n, name.Product, name.Name, reason)
		}
		count(inDesc, r.in, name.Product, name.Name)
		count(outDesc, r.out, name.Product, name.Name)
		if r.open > 0 {
			list = append(list, prometheus.MustNewConstMetric(openDesc, prometheus.CounterValue, float64(r.open)/1e3, name.Product, name.Name))
		}
	}
	for product, h := range t.started {
		list = append(list, h.metric(startedDesc, h.count(), product))
	}
	return append(list, prometheus.MustNewConstMetric(routesDesc, prometheus.GaugeValue, float64(len(t.routes))))
}

func className(class uint8) string {
	if class == 0 {
		return "none"
	}
	return strconv.Itoa(int(class)) + "xx"
}

func (h *histogram) count() (n uint64) {
	for _, b := range h.buckets {
		n += b
	}
	return n
}

// metric is h with n durations, as Prometheus reads it: each bucket holds what is in those
// below it too.
func (h *histogram) metric(d *prometheus.Desc, n uint64, labels ...string) prometheus.Metric {
	below := make(map[float64]uint64, len(traffic.Bounds))
	sum := uint64(0)
	for i, bound := range traffic.Bounds {
		sum += h.buckets[i]
		below[float64(bound)/1e6] = sum
	}
	return prometheus.MustNewConstHistogram(d, n, float64(h.micros)/1e6, below, labels...)
}
