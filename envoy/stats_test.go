package envoy

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// statsOf is an Edge whose Envoy has these statistics; "" is none that answers.
func statsOf(t *testing.T, text string) *prometheus.Registry {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if text == "" || r.URL.Path != "/stats" {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		_, _ = io.WriteString(w, text)
	}))
	t.Cleanup(s.Close)
	r := prometheus.NewPedanticRegistry()
	if err := r.Register(&Edge{admin: newAdmin(strings.TrimPrefix(s.URL, "http://"))}); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestStatisticsOfEnvoy(t *testing.T) {
	t.Parallel()
	r := statsOf(t, `cluster.shop.membership_healthy: 2
cluster.shop.upstream_rq_active: 3
cluster.shop.upstream_cx_connect_fail: 4
cluster.sluice_feed.membership_healthy: 1
cluster.sluice_controlplane.upstream_rq_active: 9
http.admin.downstream_rq_active: 1
http.gateway.downstream_rq_active: 5
http.gateway.downstream_cx_active: 6
listener_manager.workers_started: 1
overload.envoy.resource_monitors.fixed_heap.pressure: 12
server.days_until_first_cert_expiring: 80
wasm.edge.vm_reload_success: 1
wasm.envoy.wasm.runtime.v8.active: 3
wasmcustom.sluice_edge_crashes_total: 7
wasmcustom.sluice_meter_batches_begun_total: 70
cluster.shop.upstream_rq_time: P0(nan,1.0) P25(nan,1.025)
`)
	const want = `
# HELP envoy_overload_envoy_resource_monitors_fixed_heap_pressure Envoy's overload.envoy.resource_monitors.fixed_heap.pressure.
# TYPE envoy_overload_envoy_resource_monitors_fixed_heap_pressure gauge
envoy_overload_envoy_resource_monitors_fixed_heap_pressure 12
# HELP envoy_server_days_until_first_cert_expiring Envoy's server.days_until_first_cert_expiring.
# TYPE envoy_server_days_until_first_cert_expiring gauge
envoy_server_days_until_first_cert_expiring 80
# HELP envoy_wasm_edge_vm_reload_success Envoy's wasm.edge.vm_reload_success.
# TYPE envoy_wasm_edge_vm_reload_success counter
envoy_wasm_edge_vm_reload_success 1
# HELP sluice_agent_envoy_up 1 when Envoy answers the agent; without it the metrics made of its statistics are missing.
# TYPE sluice_agent_envoy_up gauge
sluice_agent_envoy_up 1
# HELP sluice_edge_connections_active Connections of clients.
# TYPE sluice_edge_connections_active gauge
sluice_edge_connections_active{listener="gateway"} 6
# HELP sluice_edge_crashes_total Requests that have crashed the edge filter; each was answered 503.
# TYPE sluice_edge_crashes_total counter
sluice_edge_crashes_total 7
# HELP sluice_edge_requests_active Requests under way.
# TYPE sluice_edge_requests_active gauge
sluice_edge_requests_active{listener="gateway"} 5
# HELP sluice_edge_standby_answers_total Requests that the agent has answered 503 (edge_not_ready), as no Envoy could.
# TYPE sluice_edge_standby_answers_total counter
sluice_edge_standby_answers_total 0
# HELP sluice_edge_upstream_connect_failures_total Connections to a product that could not be opened.
# TYPE sluice_edge_upstream_connect_failures_total counter
sluice_edge_upstream_connect_failures_total{product="shop"} 4
# HELP sluice_edge_upstream_healthy_addresses Addresses of a product that are well, as far as the edge knows.
# TYPE sluice_edge_upstream_healthy_addresses gauge
sluice_edge_upstream_healthy_addresses{product="shop"} 2
# HELP sluice_edge_upstream_requests_active Requests that wait for a product, or for the rest of its answer.
# TYPE sluice_edge_upstream_requests_active gauge
sluice_edge_upstream_requests_active{product="shop"} 3
`
	if err := testutil.GatherAndCompare(r, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}

// An Envoy that does not answer fails no scrape: the agent's own metrics are still good.
func TestStatisticsOfNoEnvoy(t *testing.T) {
	t.Parallel()
	n, err := testutil.GatherAndCount(statsOf(t, ""))
	if err != nil || n != 2 {
		t.Errorf("%d metrics, %v", n, err)
	}
}
