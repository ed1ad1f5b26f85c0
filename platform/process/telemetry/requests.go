package telemetry

import (
	"context"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/felixge/httpsnoop"
	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/platform/process/telemetry/traces"
)

// Requests measures the requests of one surface.
type Requests struct {
	total    *prometheus.CounterVec
	duration *prometheus.HistogramVec
	open     prometheus.Gauge
}

// NewRequests registers the metrics of a surface with r.
func NewRequests(r prometheus.Registerer, surface string) *Requests {
	labels := prometheus.Labels{"surface": surface}
	q := &Requests{
		total: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sluice_http_requests_total", Help: "Requests answered, by route, method and status.", ConstLabels: labels,
		}, []string{"route", "method", "status"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "sluice_http_request_duration_seconds", Help: "From a request's header to the end of its answer.", ConstLabels: labels,
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 60},
		}, []string{"route"}),
		open: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "sluice_http_requests_open", Help: "Requests that are being answered.", ConstLabels: labels}),
	}
	r.MustRegister(q.total, q.duration, q.open)
	return q
}

// Wrap measures the requests that h answers, and has what it logs name them.
func (q *Requests) Wrap(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// chi fills in what it finds here; afterwards it tells the pattern.
		ctx := context.WithValue(r.Context(), chi.RouteCtxKey, chi.NewRouteContext())
		if id := httpapi.RequestID(r); id != "" {
			ctx = WithLog(ctx, slog.String("request_id", id))
		}
		r = r.WithContext(ctx)
		q.open.Inc()
		defer q.open.Dec()
		// Deferred and not called behind h: a handler that panics has answered too.
		start, status := time.Now(), 0
		defer func() {
			route := pattern(r)
			traces.Route(ctx, method(r.Method), route)
			q.total.WithLabelValues(route, method(r.Method), code(status)).Inc()
			q.duration.WithLabelValues(route).Observe(time.Since(start).Seconds())
		}()
		status = httpsnoop.CaptureMetrics(h, w, r).Code
	})
}

// pattern is the route as the code spells it, and not as the client does: chi's
// pattern, or the one that another router has noted in the request; "none" where
// no route was found.
func pattern(r *http.Request) string {
	if p := chi.RouteContext(r.Context()).RoutePattern(); p != "" {
		return p
	}
	if r.Pattern != "" {
		return r.Pattern
	}
	return "none"
}

// method keeps invented methods out of a label.
func method(m string) string {
	switch m {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return m
	}
	return "other"
}

// code is a status as a label; a handler that broke its answer off has none.
func code(status int) string {
	if status == 0 {
		return "aborted"
	}
	return strconv.Itoa(status)
}
