package envoy

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"sluice.dev/sluice/filters/edgeapi"
	"sluice.dev/sluice/filters/httpcache"
)

// scrapeTimeout bounds the question for Envoy's statistics.
const scrapeTimeout = 2 * time.Second

// stat is a metric that is made of Envoy's statistics.
type stat struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
}

func newStat(name, help string, kind prometheus.ValueType, labels ...string) stat {
	return stat{prometheus.NewDesc(name, help, labels, nil), kind}
}

// unserved counts what the standby listener has answered, which no Envoy knows of.
var unserved = newStat("sluice_edge_standby_answers_total", "Requests that the agent has answered 503 (edge_not_ready), as no Envoy could.", prometheus.CounterValue)

var answers = newStat("sluice_agent_envoy_up", "1 when Envoy answers the agent; without it the metrics made of its statistics are missing.", prometheus.GaugeValue)

// ofCluster are made of cluster.NAME.*, where NAME is a product.
var ofCluster = map[string]stat{
	"membership_healthy":       newStat("sluice_edge_upstream_healthy_addresses", "Addresses of a product that are well, as far as the edge knows.", prometheus.GaugeValue, "product"),
	"upstream_rq_active":       newStat("sluice_edge_upstream_requests_active", "Requests that wait for a product, or for the rest of its answer.", prometheus.GaugeValue, "product"),
	"upstream_cx_connect_fail": newStat("sluice_edge_upstream_connect_failures_total", "Connections to a product that could not be opened.", prometheus.CounterValue, "product"),
}

// ofListener are made of http.NAME.*, where NAME is a listener.
var ofListener = map[string]stat{
	"downstream_rq_active": newStat("sluice_edge_requests_active", "Requests under way.", prometheus.GaugeValue, "listener"),
	"downstream_cx_active": newStat("sluice_edge_connections_active", "Connections of clients.", prometheus.GaugeValue, "listener"),
}

// ofFilters are the filters' own, which Envoy shows under their names. All else that they count
// is for other filters, or for a stop.
var ofFilters = map[string]stat{
	"sluice_edge_crashes_total":         newStat("sluice_edge_crashes_total", "Requests that have crashed the edge filter; each was answered 503.", prometheus.CounterValue),
	"sluice_chatcaps_crashes_total":     newStat("sluice_chatcaps_crashes_total", "Requests that have crashed the chat filter.", prometheus.CounterValue),
	"sluice_edge_heap_bytes":            newStat("sluice_edge_heap_bytes", "Memory that the edge filter uses, of all workers together.", prometheus.GaugeValue),
	"sluice_meter_requests_lost_total":  newStat("sluice_meter_requests_lost_total", "Requests whose usage was given up, as no control plane took it.", prometheus.CounterValue),
	"sluice_traffic_batches_lost_total": newStat("sluice_traffic_batches_lost_total", "Batches of half a second each whose requests are missing in sluice_edge_requests_total.", prometheus.CounterValue),
	"sluice_cache_crashes_total":        newStat("sluice_cache_crashes_total", "Requests that have crashed the cache filter.", prometheus.CounterValue),
	httpcache.BytesMetric:               newStat("sluice_edge_cache_bytes", "Bytes of answers that the edge keeps.", prometheus.GaugeValue),
	"sluice_fleet_edges":                newStat("sluice_fleet_edges", "Edges that share limits; 0: the control plane does not answer.", prometheus.GaugeValue),
}

// ofCache are the cache filter's, by what became of requests and their route.
var ofCache = newStat("sluice_edge_cache_requests_total", "Requests of routes with a cache, by what became of them: "+
	"hit (answered from it), miss, bypass (not for a cache), stored (misses whose answer was kept).", prometheus.CounterValue, "route", "result")

// ofServer are Envoy's own, under the names that Envoy itself would give them.
var ofServer = serverStats()

func serverStats() map[string]stat {
	made := map[string]stat{}
	gauges := []string{
		"server.live", "server.uptime", "server.concurrency", "server.total_connections", "server.memory_allocated", "server.memory_heap_size",
		"server.memory_physical_size", "server.days_until_first_cert_expiring",
		"overload.envoy.resource_monitors.fixed_heap.pressure",
		"overload.envoy.resource_monitors.global_downstream_max_connections.pressure",
		"overload.envoy.overload_actions.stop_accepting_requests.active",
	}
	var counters []string
	for _, filter := range []string{"edge", "keysync", "chatcaps"} {
		for _, event := range []string{"success", "failure", "backoff"} {
			counters = append(counters, "wasm."+filter+".vm_reload_"+event)
		}
	}
	for kind, names := range map[prometheus.ValueType][]string{prometheus.GaugeValue: gauges, prometheus.CounterValue: counters} {
		for _, name := range names {
			made[name] = newStat("envoy_"+strings.ReplaceAll(name, ".", "_"), "Envoy's "+name+".", kind)
		}
	}
	return made
}

// statOf returns the metric that is made of one of Envoy's statistics, and its label; ok is false
// for one that is not shown.
func statOf(name string) (s stat, labels []string, ok bool) {
	group, rest, _ := strings.Cut(name, ".")
	switch group {
	case "wasmcustom":
		if result, route, is := strings.Cut(strings.TrimPrefix(rest, httpcache.CountersPrefix), "."); is && strings.HasPrefix(rest, httpcache.CountersPrefix) {
			return ofCache, []string{route, result}, true
		}
		s, ok = ofFilters[rest]
		return s, nil, ok
	case "server", "overload", "wasm":
		s, ok = ofServer[name]
		return s, nil, ok
	case "cluster", "http":
	default:
		return s, nil, false
	}
	of := ofListener
	if group == "cluster" {
		of = ofCluster
	}
	dot := strings.LastIndexByte(rest, '.')
	if dot < 0 {
		return s, nil, false
	}
	subject := rest[:dot]
	switch subject {
	case "admin", "sluice_controlplane", edgeapi.FeedCluster:
		return s, nil, false
	}
	s, ok = of[rest[dot+1:]]
	return s, []string{subject}, ok
}

// Describe implements prometheus.Collector.
func (e *Edge) Describe(out chan<- *prometheus.Desc) {
	out <- answers.desc
	out <- unserved.desc
	out <- ofCache.desc
	for _, group := range []map[string]stat{ofCluster, ofListener, ofFilters, ofServer} {
		for _, s := range group {
			out <- s.desc
		}
	}
}

// Collect implements prometheus.Collector: those of Envoy's statistics that say something about
// an edge, so that one address is enough to scrape. Envoy's own is on loopback and does more.
func (e *Edge) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTimeout)
	defer cancel()
	text, err := e.admin.call(ctx, http.MethodGet, "/stats")
	up := 1.0
	if err != nil {
		up, text = 0, nil
	}
	out <- prometheus.MustNewConstMetric(answers.desc, answers.kind, up)
	out <- prometheus.MustNewConstMetric(unserved.desc, unserved.kind, float64(e.unserved.Load()))
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		s, labels, ok := statOf(name)
		if !ok {
			continue
		}
		if n, err := strconv.ParseFloat(value, 64); err == nil {
			out <- prometheus.MustNewConstMetric(s.desc, s.kind, n, labels...)
		}
	}
}
