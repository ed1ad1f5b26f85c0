// Package traces follows one request through the processes: from the edge, which
// draws whether it is traced, through the service that answers, by way of the
// queue to the job that it caused and the call that the job makes. All of it has
// the trace id that the caller sent, or that the edge made (W3C Trace Context).
//
// Spans name what the code calls things: routes, kinds of jobs, hosts. No query,
// header or body is ever in one, because each may hold a secret.
package traces

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace"
	spans "go.opentelemetry.io/otel/trace"
)

// Config says where spans go, and which.
type Config struct {
	// Endpoint is the base URL of a collector that takes OTLP over HTTP; empty:
	// nothing is traced.
	Endpoint string
	// Ratio of the work that no request caused, such as a schedule's, that is
	// traced, 0 to 1. Requests are drawn by edges.
	Ratio float64
	// Process and Version name what runs.
	Process, Version string
}

// Tracer makes the spans of a process. Nil is one that makes none, at no cost.
type Tracer struct {
	provider *trace.TracerProvider
}

// reportTimeout bounds a report to the collector, and the last one of a process.
const reportTimeout = 5 * time.Second

// New returns a Tracer; nil when c names no endpoint. It does not wait for the
// collector: spans that it does not take are dropped.
func New(ctx context.Context, c Config) (*Tracer, error) {
	if c.Endpoint == "" {
		return nil, nil
	}
	u, err := url.Parse(c.Endpoint)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.User != nil || u.RawQuery != "" {
		return nil, errors.New("the collector of traces is no http:// or https:// address without user and query")
	}
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(strings.TrimRight(c.Endpoint, "/")+"/v1/traces"), otlptracehttp.WithTimeout(reportTimeout))
	if err != nil {
		return nil, fmt.Errorf("report traces: %w", err)
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { slog.Warn("traces are not reported", "cause", err) }))
	return newTracer(c, trace.NewBatchSpanProcessor(exporter, trace.WithBatchTimeout(time.Second))), nil
}

func newTracer(c Config, p trace.SpanProcessor) *Tracer {
	return &Tracer{trace.NewTracerProvider(
		trace.WithSpanProcessor(p),
		trace.WithSampler(trace.ParentBased(trace.TraceIDRatioBased(c.Ratio))),
		trace.WithResource(resource.NewSchemaless(
			attribute.String("service.name", "sluice-"+c.Process), attribute.String("service.version", c.Version))),
	)}
}

// Close reports what is left.
func (t *Tracer) Close(ctx context.Context) {
	if t == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reportTimeout)
	defer cancel()
	if err := t.provider.Shutdown(ctx); err != nil {
		slog.WarnContext(ctx, "the last traces were not reported", "cause", err)
	}
}

// Wrap makes a span of each request to h that belongs to a trace; an edge sees to
// that. Requests without one, such as health checks, make none.
func (t *Tracer) Wrap(h http.Handler) http.Handler {
	if t == nil {
		return h
	}
	return otelhttp.NewHandler(h, "request",
		otelhttp.WithTracerProvider(t.provider), otelhttp.WithPropagators(propagator), otelhttp.WithMeterProvider(noop.NewMeterProvider()),
		otelhttp.WithFilter(func(r *http.Request) bool { return r.Header.Get(header) != "" }),
		otelhttp.WithSpanNameFormatter(func(_ string, r *http.Request) string { return r.Method }),
	)
}

// Route names the span of a request by its route, as the code spells it.
func Route(ctx context.Context, method, route string) {
	if s := spans.SpanFromContext(ctx); s.IsRecording() {
		s.SetName(method + " " + route)
		s.SetAttributes(attribute.String("http.route", route))
	}
}

// Start begins a span below the one in ctx, in the same process. Without one, or
// when it is not traced, it costs nothing.
func Start(ctx context.Context, name string, kind spans.SpanKind, attributes ...attribute.KeyValue) (context.Context, spans.Span) {
	parent := spans.SpanFromContext(ctx)
	if !parent.IsRecording() {
		return ctx, unended{parent}
	}
	return parent.TracerProvider().Tracer(scope).Start(ctx, name, spans.WithSpanKind(kind), spans.WithAttributes(attributes...))
}

// scope is the instrumentation scope of our spans.
const scope = "sluice.dev/sluice"

// unended is a span of somebody else, which whoever was given it does not end.
type unended struct{ spans.Span }

// End implements trace.Span.
func (unended) End(...spans.SpanEndOption) {}
