package requestlog

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/filters/edgeapi"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/platform/process/pause"
)

// Receiver takes what edges have recorded. Whoever mounts it checks that it is an edge
// who sends it.
type Receiver struct {
	Store   Store
	Respond httpapi.Adapter
	// Latest reads the configuration in force, from which routes have their paths and
	// classes; nil: they have none.
	Latest func(context.Context) (config.Version, error)

	requests *prometheus.CounterVec

	mu     sync.Mutex
	known  int64 // version of routes
	routes map[string]config.Route
	class  string // of routes that name none
}

// NewReceiver returns r with its metrics registered, unless registry is nil.
func NewReceiver(r *Receiver, registry prometheus.Registerer) *Receiver {
	r.requests = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "sluice_request_log_requests_total", Help: "Requests that edges recorded, by whether there was room to store them.",
	}, []string{"result"})
	if registry != nil {
		registry.MustRegister(r.requests)
	}
	return r
}

// ServeHTTP answers POST edgeapi.RequestsPath, whose body is an edgeapi.RequestBatch:
// 204 once what fits is stored. 400 and 413 say that it never will be.
func (r *Receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.Respond.Handle(func(w http.ResponseWriter, req *http.Request) error {
		raw, err := httpapi.ReadJSON(w, req, edgeapi.MaxRequestBytes)
		if err != nil {
			return err
		}
		b, err := ParseBatch(raw, r.Store.now())
		if err != nil {
			return err
		}
		taken, err := r.Store.Add(req.Context(), b.Edge, r.complete(req.Context(), b.Requests), b.Dropped)
		if err != nil {
			return err
		}
		if err := r.Store.AddRecords(req.Context(), b.Edge, b.Recorded); err != nil {
			return err
		}
		r.requests.WithLabelValues("stored").Add(float64(taken.Stored))
		r.requests.WithLabelValues("dropped").Add(float64(taken.Dropped))
		w.WriteHeader(http.StatusNoContent)
		return nil
	})(w, req)
}

// maxAccounts bounds the accounts of which a batch says that requests were dropped.
const maxAccounts = 1000

// ParseBatch reads what an edge sends at a time. Fields that it does not know it passes
// over: the edge may be newer. Requests without an id or of a time that cannot be are
// left out, and texts are bounded.
//
// It takes time and memory linear in raw, which has MaxRequestBytes at most.
func ParseBatch(raw []byte, now time.Time) (b edgeapi.RequestBatch, err error) {
	var whole struct {
		edgeapi.RequestBatch
		Requests []json.RawMessage `json:"requests"` // counted before any of them takes the room of a request
	}
	if err := json.Unmarshal(raw, &whole); err != nil || whole.Edge == "" || len(whole.Edge) > 256 ||
		len(whole.Requests) > edgeapi.MaxRequestBatch || len(whole.Recorded) > edgeapi.MaxBlocks || len(whole.Dropped) > maxAccounts {
		return b, apierror.Errorf(decision.InvalidRequest, "The body is not a batch of requests.")
	}
	b = whole.RequestBatch
	for _, text := range whole.Requests {
		var r edgeapi.Request
		if json.Unmarshal(text, &r) == nil && bounded(&r, now) {
			b.Requests = append(b.Requests, r)
		}
	}
	for account, n := range b.Dropped {
		if len(account) > maxText || n < 0 || !plain(account) {
			delete(b.Dropped, account)
		}
	}
	return b, nil
}

// maxText bounds a text of a request, in bytes, and maxList the scopes.
const (
	maxText = 1024
	maxList = 64
)

// bounded cuts what is too long; false: the request cannot be stored.
func bounded(r *edgeapi.Request, now time.Time) bool {
	for _, text := range []*string{&r.ID, &r.Method, &r.Host, &r.Path, &r.Protocol, &r.Route, &r.Product, &r.Account, &r.Key, &r.Plan, &r.Code, &r.Reason, &r.Flags, &r.Detail,
		&r.Failure, &r.Upstream, &r.Client, &r.UserAgent, &r.TraceID, &r.WouldRefuse, &r.WouldReason} {
		*text = decision.Cut(storable(*text), maxText)
	}
	r.Scopes = r.Scopes[:min(len(r.Scopes), maxList)]
	for i := range r.Scopes {
		r.Scopes[i] = decision.Cut(storable(r.Scopes[i]), 100)
	}
	if r.GRPC != nil && (*r.GRPC < 0 || *r.GRPC > 999) {
		r.GRPC = nil
	}
	ended := r.Ended()
	return r.ID != "" && len(r.ID) <= 100 && r.Status >= 0 && r.Status <= 999 && r.Timings.Total >= 0 && ended.Before(now.Add(maxSkew)) && ended.After(now.Add(-Kept))
}

// complete adds what the configuration in force says of the routes, and the code of
// answers that Envoy made itself.
func (r *Receiver) complete(ctx context.Context, list []edgeapi.Request) []Request {
	routes, class := r.newest(ctx)
	out := make([]Request, 0, len(list))
	for _, one := range list {
		x := Request{Request: one}
		if route, ok := routes[one.Route]; ok {
			x.PathTemplate, x.Class = route.Path, class
			if route.Class != "" {
				x.Class = route.Class
			}
			if x.Product == "" {
				x.Product = route.Product
			}
		}
		if x.Code == "" && x.Status >= 400 && x.Detail != viaUpstream && x.Detail != "direct_response" {
			x.Code = string(decision.OfReply(x.Status))
		}
		out = append(out, x)
	}
	return out
}

// newest are the routes of the configuration in force, or the last that could be read.
func (r *Receiver) newest(ctx context.Context) (routes map[string]config.Route, class string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.Latest == nil {
		return nil, ""
	}
	v, err := r.Latest(ctx)
	if err != nil || v.Number == r.known {
		return r.routes, r.class
	}
	r.known, r.routes, r.class = v.Number, make(map[string]config.Route, len(v.Document.Routes)), ""
	for _, route := range v.Document.Routes {
		r.routes[route.Name] = config.Route{Path: route.Path, Class: route.Class, Product: route.Product}
	}
	if len(v.Document.Classes) > 0 {
		r.class = v.Document.Classes[0].Name
	}
	return r.routes, r.class
}

// sweepEvery is how often it is looked for what is too old, or too much.
const sweepEvery = time.Minute

// Run empties what is too old, until ctx ends. While requests arrive, they do too.
func (s Store) Run(ctx context.Context) {
	for {
		if err := errors.Join(s.Sweep(ctx), s.sweepRecords(ctx)); err != nil && ctx.Err() == nil {
			slog.WarnContext(ctx, "requests of before are not being removed", "cause", err)
		}
		if !pause.For(ctx, sweepEvery) {
			return
		}
	}
}
