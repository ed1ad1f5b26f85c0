package telemetry

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/riverqueue/river/rivertype"
	"go.opentelemetry.io/otel/trace"
)

// said returns the lines that a logger wrote, as objects.
func said(t *testing.T, b *bytes.Buffer) (lines []map[string]any) {
	t.Helper()
	dec := json.NewDecoder(b)
	for dec.More() {
		var line map[string]any
		if err := dec.Decode(&line); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, line)
	}
	return lines
}

func TestLinesNameTheRequestTheJobAndTheTrace(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log := NewLogger(&out, LogConfig{Process: "p", JSON: true})
	h := NewRequests(prometheus.NewRegistry(), "api").Wrap(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		log.InfoContext(r.Context(), "in a request")
		log.InfoContext(r.Context(), "its own", "request_id", "other")
	}))
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header.Set("X-Request-ID", "req-1")
	traced := trace.ContextWithSpanContext(t.Context(), trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}}))
	h.ServeHTTP(httptest.NewRecorder(), r.WithContext(traced))
	err := NewJobs(prometheus.NewRegistry()).Work(t.Context(), &rivertype.JobRow{ID: 7, Kind: "k"}, func(ctx context.Context) error {
		log.With("a", "b").InfoContext(ctx, "in a job")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	log.Info("in nothing")
	want := []string{"p req-1 01000000000000000000000000000000 <nil>", "p other 01000000000000000000000000000000 <nil>", "p <nil> <nil> 7", "p <nil> <nil> <nil>"}
	for i, line := range said(t, &out) {
		if got := fmt.Sprint(line["process"], " ", line["request_id"], " ", line["trace_id"], " ", line["job_id"]); got != want[i] {
			t.Errorf("%v: %s, want %s", line["msg"], got, want[i])
		}
	}
}

func TestParseLog(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]LogConfig{
		"text info": {}, "json debug": {JSON: true, Level: slog.LevelDebug}, "json warn": {JSON: true, Level: slog.LevelWarn}, "text error": {Level: slog.LevelError},
	} {
		format, level, _ := strings.Cut(text, " ")
		if got, err := ParseLog(format, level); err != nil || got != want {
			t.Errorf("%s: %+v %v", text, got, err)
		}
	}
	for _, text := range []string{"xml info", "json INFO", "text 3", " "} {
		format, level, _ := strings.Cut(text, " ")
		if _, err := ParseLog(format, level); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}

func TestFormatAndLevel(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log := NewLogger(&out, LogConfig{Level: slog.LevelWarn})
	log.Info("too quiet")
	log.WithGroup("g").Warn("heard", "k", "v")
	if text := out.String(); strings.Contains(text, "quiet") || !strings.Contains(text, "level=WARN msg=heard g.k=v\n") {
		t.Error(text)
	}
}

func TestLines(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	w := Lines(NewLogger(&out, LogConfig{JSON: true}))
	for _, part := range []string{"one\ntw", "o\r\n\n", strings.Repeat("x", maxLogLine+1), "\nthree"} {
		if n, err := w.Write([]byte(part)); n != len(part) || err != nil {
			t.Fatal(n, err)
		}
	}
	var got []string
	for _, line := range said(t, &out) {
		got = append(got, line["msg"].(string))
	}
	if len(got) != 4 || got[0] != "one" || got[1] != "two" || len(got[2]) != maxLogLine || got[3] != "x" {
		t.Errorf("%d lines: %.40q", len(got), got)
	}
}
