package e2e

import (
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
)

// scrape reads the metrics of one process.
func scrape(t *testing.T, url string) string {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatal(url, resp.Status, err)
	}
	return string(b)
}

func TestEveryProcessShowsItsMetrics(t *testing.T) {
	s := theStack(t)
	wantStatus(t, call(t, "GET", s.dev["SLUICE_GATEWAY_URL"]+"/v1/auth/validate", s.dev["SLUICE_API_KEY"], nil), 200)
	wantStatus(t, call(t, "GET", s.dev["SLUICE_GATEWAY_URL"]+"/v1/streams", s.dev["SLUICE_API_KEY"], nil), 200)
	wantStatus(t, call(t, "GET", s.dev["SLUICE_RUNTIME_URL"]+"/v1/models", s.dev["SLUICE_API_KEY"], nil), 200)
	for part, want := range map[string][]string{
		"ADMIN_ADDR":     {`sluice_build_info{part="controlplane"`, `route="/v1/auth/validate"`, "sluice_feed_records_total", "sluice_postgres_connections"},
		"WORKER_LISTEN":  {`sluice_build_info{part="worker"`, "sluice_schedule_lateness_seconds", "sluice_webhook_late_seconds", "sluice_postgres_connections_max 30"},
		"RUNTIME_LISTEN": {`sluice_build_info{part="runtime"`, `route="/v1/models"`, "sluice_chat_streams_open 0"},
		"MEDIA_LISTEN":   {`sluice_build_info{part="media"`, `route="/v1/streams"`},
	} {
		text := scrape(t, "http://"+s.env["SLUICE_"+part]+"/metrics")
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("%s: no %s in\n%s", part, w, text)
			}
		}
	}
}

// Metrics are for operators: no edge leads to them.
func TestMetricsAreNotPublic(t *testing.T) {
	s := theStack(t)
	for _, base := range []string{s.dev["SLUICE_GATEWAY_URL"], s.dev["SLUICE_RUNTIME_URL"]} {
		wantStatus(t, call(t, "GET", base+"/metrics", s.dev["SLUICE_ADMIN_KEY"], nil), 404)
	}
}

// TestEdgesMetrics checks that an edge's agent shows what Envoy and the filters count under the
// names which alert rules and panels use: what the bootstrap's matcher leaves out, or Envoy
// calls otherwise, would never fire.
func TestEdgesMetrics(t *testing.T) {
	s := theStack(t)
	text := scrape(t, "http://"+s.env["SLUICE_EDGE_METRICS_ADDR"]+"/metrics")
	if !regexp.MustCompile(`(?m)^sluice_edge_heap_bytes [1-9]`).MatchString(text) {
		t.Errorf("no heap of the filter in %d lines", strings.Count(text, "\n"))
	}
	known, err := os.ReadFile("../deploy/observability/testdata/envoy_metrics.txt")
	if err != nil {
		t.Fatal(err)
	}
	for name := range strings.FieldsSeq(string(known)) {
		if !strings.Contains(text, "\n"+name+"{") && !strings.Contains(text, "\n"+name+" ") {
			t.Errorf("a rule may use %s, which the agent does not show", name)
		}
	}
}
