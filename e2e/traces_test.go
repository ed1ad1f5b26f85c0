package e2e

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// spanSeen is a span as a collector got it.
type spanSeen struct{ service, name, id, parent, trace string }

// spans is a collector of traces that keeps what it gets.
type spans struct {
	sync.Mutex
	all  []spanSeen
	text strings.Builder
}

func collecting(t *testing.T) (c *spans, url string) {
	t.Helper()
	c = &spans{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var report collector.ExportTraceServiceRequest
		if err != nil || r.URL.Path != "/v1/traces" || proto.Unmarshal(body, &report) != nil {
			http.Error(w, "not a report", http.StatusBadRequest)
			return
		}
		c.keep(&report)
	}))
	t.Cleanup(server.Close)
	return c, server.URL
}

func (c *spans) keep(report *collector.ExportTraceServiceRequest) {
	c.Lock()
	defer c.Unlock()
	c.text.WriteString(protojson.Format(report))
	for _, rs := range report.ResourceSpans {
		service := ""
		for _, a := range rs.Resource.Attributes {
			if a.Key == "service.name" {
				service = a.Value.GetStringValue()
			}
		}
		for _, ss := range rs.ScopeSpans {
			for _, s := range ss.Spans {
				c.all = append(c.all, spanSeen{service, s.Name, hex.EncodeToString(s.SpanId), hex.EncodeToString(s.ParentSpanId), hex.EncodeToString(s.TraceId)})
			}
		}
	}
}

// path returns the way from a span with this name up to the root of its trace.
func (c *spans) path(trace, name string) (up []string) {
	c.Lock()
	defer c.Unlock()
	i := slices.IndexFunc(c.all, func(s spanSeen) bool { return s.trace == trace && s.name == name })
	for i >= 0 {
		s := c.all[i]
		up = append(up, s.service+": "+s.name)
		i = slices.IndexFunc(c.all, func(p spanSeen) bool { return p.id == s.parent && p.trace == trace })
	}
	return up
}

// A caller's trace goes from the edge through the product and the queue to each
// attempt of the webhook, under the caller's id; nothing secret is in it. Every
// process logs objects, and the stack says how it is.
func TestOneTraceFromEdgeToWebhook(t *testing.T) {
	t.Parallel()
	seen, endpoint := collecting(t)
	s := own(t, map[string]string{"SLUICE_OTLP_ENDPOINT": endpoint, "SLUICE_TRACE_RATIO": "1", "SLUICE_LOG_FORMAT": "json", "SLUICE_WEBHOOK_ALLOW_CIDRS": "127.0.0.1/32"})
	url, got, status := receiver(t)
	s.subscribe(t, url+"/hook?token=in-the-query-0123456789", "stream.*")
	keepSecret("query of a receiver", "in-the-query-0123456789")
	keepSecret("secret of a webhook", webhookSecret)
	status.Store(http.StatusServiceUnavailable)

	const trace = "4bf92f3577b34da6a3ce929d0e0e4736"
	key := s.dev["SLUICE_API_KEY"]
	made := s.createStream(t, key, "traced")
	wantStatus(t, call(t, http.MethodGet, s.url("/v1/streams?title=in-the-query-0123456789"), key, nil), http.StatusOK)
	wantStatus(t, call(t, http.MethodDelete, s.url("/v1/streams/"+made.ID), key, nil,
		"Traceparent", "00-"+trace+"-00f067aa0ba902b7-00"), http.StatusNoContent)
	first := receive(t, got)
	status.Store(http.StatusOK)
	for _, h := range []hook{first, receive(t, got)} {
		if h.header.Get("Traceparent")[:35] != "00-"+trace {
			t.Errorf("the webhook has %q", h.header.Get("Traceparent"))
		}
	}
	want := "sluice-worker: webhook attempt, sluice-worker: webhook_delivery, sluice-media: DELETE /v1/streams/{id}, sluice-edge: DELETE streams.delete"
	eventually(t, "every part of the trace is reported", func() error {
		if up := strings.Join(seen.path(trace, "webhook attempt"), ", "); up != want {
			return fmt.Errorf("reported: %s, want %s", up, want)
		}
		return nil
	})
	eventually(t, "the retry is part of the trace", func() error {
		if n := strings.Count(seen.names(trace), "webhook attempt"); n != 2 {
			return fmt.Errorf("%d attempts are reported", n)
		}
		return nil
	})
	seen.Lock()
	defer seen.Unlock()
	for _, err := range leaksIn("the report of traces", seen.text.String()) {
		t.Error(err)
	}
	s.tellsItsStatus(t)
	s.wantObjects(t, "controlplane", "worker", "runtime", "media", "edge-1")
}

func (c *spans) names(trace string) string {
	c.Lock()
	defer c.Unlock()
	var names []string
	for _, s := range c.all {
		if s.trace == trace {
			names = append(names, s.name)
		}
	}
	return strings.Join(names, ", ")
}

// wantObjects fails the test when a part's log has a line that is no object with
// a message, or an access log's with a request.
func (s *stack) wantObjects(t *testing.T, parts ...string) {
	t.Helper()
	for _, part := range parts {
		b, err := os.ReadFile(filepath.Join(s.dir, "logs", part+".log"))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(b)) {
			if !strings.HasSuffix(line, "\n") { // the last one, which is being written
				continue
			}
			var v map[string]any
			if err := json.Unmarshal([]byte(line), &v); err != nil || v["msg"] == nil && v["request_id"] == nil {
				t.Errorf("%s logs %q: %v", part, line, err)
			}
		}
	}
}
