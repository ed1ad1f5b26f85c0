package traces

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	spans "go.opentelemetry.io/otel/trace"
)

// header is where HTTP has the trace (W3C Trace Context).
const header = "traceparent"

var propagator = propagation.TraceContext{}

// Inject has a request to others go on with the trace in ctx, if there is one.
func Inject(ctx context.Context, h http.Header) {
	if spans.SpanContextFromContext(ctx).IsValid() {
		propagator.Inject(ctx, propagation.HeaderCarrier(h))
	}
}

// Metadata is the metadata of a job that goes on with the trace s; nil when s is
// none.
func Metadata(s spans.SpanContext) []byte {
	if !s.IsValid() {
		return nil
	}
	carrier := propagation.MapCarrier{}
	propagator.Inject(spans.ContextWithSpanContext(context.Background(), s), carrier)
	text, err := json.Marshal(carrier)
	if err != nil {
		panic(err) // a map of strings is JSON
	}
	return text
}

// Jobs carries traces from whoever enqueues a job to whoever works it off; it is a
// middleware of River.
type Jobs struct {
	river.MiddlewareDefaults
	tracer *Tracer
}

// Jobs returns the middlewares of a process: none when nothing is traced.
func (t *Tracer) Jobs() []rivertype.Middleware {
	if t == nil {
		return nil
	}
	return []rivertype.Middleware{&Jobs{tracer: t}}
}

// InsertMany implements rivertype.JobInsertMiddleware: jobs remember the trace of
// the request, or of the job, that causes them.
func (j *Jobs) InsertMany(ctx context.Context, params []*rivertype.JobInsertParams, do func(context.Context) ([]*rivertype.JobInsertResult, error)) ([]*rivertype.JobInsertResult, error) {
	if carried := Metadata(spans.SpanContextFromContext(ctx)); carried != nil {
		for _, p := range params {
			p.Metadata = merged(p.Metadata, carried)
		}
	}
	return do(ctx)
}

// merged adds carried to the metadata of a job, unless that has a trace already.
func merged(metadata, carried []byte) []byte {
	if len(metadata) == 0 || string(metadata) == "{}" {
		return carried
	}
	var have, more map[string]json.RawMessage
	if json.Unmarshal(metadata, &have) != nil || json.Unmarshal(carried, &more) != nil || have[header] != nil {
		return metadata
	}
	maps.Copy(have, more)
	text, err := json.Marshal(have)
	if err != nil {
		return metadata
	}
	return text
}

// Work implements rivertype.WorkerMiddleware: the job's span is part of the trace
// that the job remembers.
func (j *Jobs) Work(ctx context.Context, job *rivertype.JobRow, do func(context.Context) error) error {
	ctx = propagator.Extract(ctx, carriedBy(job.Metadata))
	ctx, span := j.tracer.provider.Tracer(scope).Start(ctx, job.Kind, spans.WithSpanKind(spans.SpanKindConsumer), spans.WithAttributes(
		attribute.String("messaging.destination.name", job.Queue), attribute.Int64("sluice.job.id", job.ID), attribute.Int("sluice.job.attempt", job.Attempt)))
	defer span.End()
	err := do(ctx)
	if err != nil {
		// Its text may hold what must not be in a span; it is in the log.
		span.SetStatus(codes.Error, "")
	}
	return err
}

// carriedBy reads the trace from a job's metadata. What is no text is left out:
// River keeps things of its own there.
func carriedBy(metadata []byte) propagation.MapCarrier {
	var all map[string]any
	_ = json.Unmarshal(metadata, &all) // what cannot be read carries nothing
	carrier := propagation.MapCarrier{}
	for _, name := range propagator.Fields() {
		if text, ok := all[name].(string); ok {
			carrier[name] = text
		}
	}
	return carrier
}
