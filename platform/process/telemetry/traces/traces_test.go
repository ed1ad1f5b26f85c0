package traces

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/riverqueue/river/rivertype"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	spans "go.opentelemetry.io/otel/trace"
)

const (
	traceID   = "4bf92f3577b34da6a3ce929d0e0e4736"
	sampled   = "00-" + traceID + "-00f067aa0ba902b7-01"
	unsampled = "00-" + traceID + "-00f067aa0ba902b7-00"
)

func recording(ratio float64) (*Tracer, *tracetest.SpanRecorder) {
	r := tracetest.NewSpanRecorder()
	return newTracer(Config{Ratio: ratio, Process: "test"}, r), r
}

func get(h http.Handler, traceparent string) *httptest.ResponseRecorder {
	r, w := httptest.NewRequest(http.MethodGet, "/secret-path?token=secret", nil), httptest.NewRecorder()
	r.Header.Set("Authorization", "Bearer secret")
	if traceparent != "" {
		r.Header.Set(header, traceparent)
	}
	h.ServeHTTP(w, r)
	return w
}

// From the request through the job that it enqueues to the call that the job
// makes, everything has one trace id.
func TestOneTraceFromRequestToCall(t *testing.T) {
	t.Parallel()
	tracer, seen := recording(0)
	jobs := tracer.Jobs()[0].(*Jobs)
	var metadata []byte
	get(tracer.Wrap(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		Route(r.Context(), r.Method, "/{path}")
		params := []*rivertype.JobInsertParams{{}}
		if _, err := jobs.InsertMany(r.Context(), params, func(context.Context) ([]*rivertype.JobInsertResult, error) { return nil, nil }); err != nil {
			t.Error(err)
		}
		metadata = params[0].Metadata
	})), sampled)
	call := http.Header{}
	failure := errors.New("secret")
	err := jobs.Work(t.Context(), &rivertype.JobRow{Kind: "kind", Queue: "q", Metadata: metadata}, func(ctx context.Context) error {
		ctx, span := Start(ctx, "call", spans.SpanKindClient)
		defer span.End()
		Inject(ctx, call)
		return failure
	})
	if !errors.Is(err, failure) {
		t.Fatal(err)
	}
	var names []string
	for _, s := range seen.Ended() {
		names = append(names, s.Name())
		if s.SpanContext().TraceID().String() != traceID {
			t.Errorf("%s has trace %s", s.Name(), s.SpanContext().TraceID())
		}
		text, err := json.Marshal(tracetest.SpanStubFromReadOnlySpan(s))
		if err != nil || strings.Contains(strings.ReplaceAll(string(text), "secret-path", ""), "secret") {
			t.Errorf("%v %s", err, text)
		}
	}
	if got := strings.Join(names, ", "); got != "GET /{path}, call, kind" {
		t.Errorf("spans %s", got)
	}
	if !strings.HasPrefix(call.Get(header), "00-"+traceID) || strings.Contains(call.Get(header), "00f067aa0ba902b7") {
		t.Errorf("the call has %q", call.Get(header))
	}
}

// What the edge did not draw is passed on and not reported; what has no trace at
// all, such as a health check, starts none.
func TestOnlyDrawnRequestsAreReported(t *testing.T) {
	t.Parallel()
	tracer, seen := recording(1)
	for _, traceparent := range []string{unsampled, ""} {
		passed := http.Header{}
		get(tracer.Wrap(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			ctx, span := Start(r.Context(), "below", spans.SpanKindInternal)
			Route(ctx, "GET", "/")
			span.End()
			Inject(ctx, passed)
		})), traceparent)
		if got := passed.Get(header); strings.Contains(got, traceID) != (traceparent != "") || strings.HasSuffix(got, "-01") {
			t.Errorf("%q became %q", traceparent, got)
		}
	}
	if n := len(seen.Ended()); n != 0 {
		t.Errorf("%d spans", n)
	}
}

// Work that no request caused is drawn by the ratio.
func TestJobsOfTheirOwn(t *testing.T) {
	t.Parallel()
	for ratio, want := range map[float64]int{0: 0, 1: 1} {
		tracer, seen := recording(ratio)
		err := tracer.Jobs()[0].(*Jobs).Work(t.Context(), &rivertype.JobRow{Kind: "k", Metadata: []byte(`{"snoozes":1}`)}, func(context.Context) error { return nil })
		if n := len(seen.Ended()); err != nil || n != want {
			t.Errorf("ratio %v: %d spans, %v", ratio, n, err)
		}
	}
}

func TestMetadataOfJobs(t *testing.T) {
	t.Parallel()
	carried := []byte(`{"traceparent":"` + sampled + `"}`)
	for have, want := range map[string]string{
		"": string(carried), "{}": string(carried), `{"a":1}`: `{"a":1,"traceparent":"` + sampled + `"}`,
		`{"traceparent":"own"}`: `{"traceparent":"own"}`, "no JSON": "no JSON",
	} {
		if got := string(merged([]byte(have), carried)); got != want {
			t.Errorf("%s became %s", have, got)
		}
	}
	if Metadata(spans.SpanContext{}) != nil {
		t.Error("no trace is carried")
	}
	for _, bad := range []string{"", "null", "[]", `{"traceparent":1}`, `{"traceparent":"00-zz"}`} {
		if s := spans.SpanContextFromContext(propagator.Extract(t.Context(), carriedBy([]byte(bad)))); s.IsValid() {
			t.Errorf("%q carries %v", bad, s)
		}
	}
}

func TestOff(t *testing.T) { // alone: it counts allocations
	tracer, err := New(t.Context(), Config{})
	if err != nil || tracer != nil || tracer.Jobs() != nil {
		t.Fatal(tracer, err)
	}
	tracer.Close(t.Context())
	h := http.NotFoundHandler()
	if got := get(tracer.Wrap(h), sampled).Code; got != http.StatusNotFound {
		t.Error(got)
	}
	cost := testing.AllocsPerRun(100, func() {
		ctx, span := Start(t.Context(), "name", spans.SpanKindClient)
		Inject(ctx, nil)
		span.End()
	})
	if cost > 1 { // the span that is handed out
		t.Errorf("%v allocations when nothing is traced", cost)
	}
	for _, endpoint := range []string{"127.0.0.1:4318", "http://", "http://user:password@x", "ftp://x", "http://x?token=1"} {
		if _, err := New(t.Context(), Config{Endpoint: endpoint}); err == nil || strings.Contains(err.Error(), "password") {
			t.Errorf("%s: %v", endpoint, err)
		}
	}
}

func TestReports(t *testing.T) {
	t.Parallel()
	got := make(chan string, 1)
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got <- r.URL.Path }))
	defer collector.Close()
	tracer, err := New(t.Context(), Config{Endpoint: collector.URL + "/", Process: "test"})
	if err != nil {
		t.Fatal(err)
	}
	get(tracer.Wrap(http.NotFoundHandler()), sampled)
	tracer.Close(t.Context())
	if path := <-got; path != "/v1/traces" {
		t.Error(path)
	}
}
