package resources

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	cluster "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"sluice.dev/sluice/controlplane/gateway/config"
)

// tracedGateway is one that traces by ratio, in front of a product that answers
// with the traceparent that it got.
func tracedGateway(t *testing.T, ratio float64) (url string) {
	t.Helper()
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Header.Get("Traceparent")) }))
	t.Cleanup(upstream.Close)
	d := defaults(t)
	d.AnonymousPerMinute = 1 << 20
	d.Products = append(d.Products, config.Product{Name: "plain", Upstreams: []config.Upstream{{Address: upstream.Listener.Addr().String()}}})
	d.Routes = append(d.Routes, config.Route{Name: "traced", Path: "/traced", Product: "plain", Auth: []string{"none"}})
	set := build(t, d, Options{Addresses: addresses, Traces: &Traces{Endpoint: "http://127.0.0.1:9", Ratio: ratio}})
	return "http://" + running(t, static(t, set, Addresses{Gateway: "127.0.0.1:0"})) + "/traced"
}

// A caller's trace goes on under its id, and whether it is reported is not the
// caller's to say.
func TestCallersDoNotChooseWhatIsTraced(t *testing.T) {
	t.Parallel()
	const id = "4bf92f3577b34da6a3ce929d0e0e4736"
	for ratio, flag := range map[float64]string{0: "00", 1: "01"} {
		url := tracedGateway(t, ratio)
		for name, headers := range map[string][]string{
			"none":          nil,
			"sampled":       {"Traceparent", "00-" + id + "-00f067aa0ba902b7-01"},
			"not sampled":   {"Traceparent", "00-" + id + "-00f067aa0ba902b7-00"},
			"a low id":      {"Traceparent", "00-00000000000000000000000000000001-00f067aa0ba902b7-01"},
			"forced":        {"X-Client-Trace-Id", "1", "X-Envoy-Force-Trace", "1", "X-Request-ID", "0a0a0a0a-0a0a-9a0a-8a0a-0a0a0a0a0a0a"},
			"forced by all": {"Traceparent", "00-" + id + "-00f067aa0ba902b7-01", "X-Client-Trace-Id", "1", "X-Envoy-Force-Trace", "1", "Tracestate", "a=b"},
		} {
			_, got := request(t, http.MethodGet, url, nil, headers...)
			if !strings.HasSuffix(got, "-"+flag) || len(got) != 55 {
				t.Errorf("ratio %v, %s: the product got %q", ratio, name, got)
			}
			for i := 0; i+1 < len(headers); i += 2 {
				if headers[i] == "Traceparent" && (got[:35] != headers[i+1][:35] || got[36:52] == headers[i+1][36:52]) {
					t.Errorf("ratio %v, %s: the product got %q for %q", ratio, name, got, headers[i+1])
				}
			}
		}
	}
}

func TestCollectors(t *testing.T) {
	t.Parallel()
	for endpoint, want := range map[string]struct {
		address string
		port    uint32
		kind    cluster.Cluster_DiscoveryType
		tls     bool
	}{
		"http://10.0.0.1:4318":          {"10.0.0.1", 4318, cluster.Cluster_STATIC, false},
		"https://collector.example/tel": {"collector.example", 443, cluster.Cluster_STRICT_DNS, true},
		"http://[::1]:80":               {"::1", 80, cluster.Cluster_STATIC, false},
	} {
		c := build(t, defaults(t), Options{Addresses: addresses, Traces: &Traces{Endpoint: endpoint, Ratio: 1}}).Clusters[tracesCluster]
		socket := c.LoadAssignment.Endpoints[0].LbEndpoints[0].GetEndpoint().Address.GetSocketAddress()
		if socket.Address != want.address || socket.GetPortValue() != want.port || c.GetType() != want.kind || (c.TransportSocket != nil) != want.tls {
			t.Errorf("%s: %v %v", endpoint, socket, c)
		}
	}
	for _, endpoint := range []string{"", "127.0.0.1:4318", "ftp://x", "http://", "http://user:password@x", "http://x?token=1", "http://x:port"} {
		if _, err := built(t, defaults(t), Options{Addresses: addresses, Traces: &Traces{Endpoint: endpoint}}); err == nil || strings.Contains(err.Error(), "password") {
			t.Errorf("%q: %v", endpoint, err)
		}
	}
}
