package chat

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sluice.dev/sluice/filters/caps"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/platform/http/idempotency"
	"sluice.dev/sluice/platform/http/identity"
	"sluice.dev/sluice/platform/http/sse"
	"sluice.dev/sluice/platform/limits/fairshare"
	"sluice.dev/sluice/runtime/access"
	"sluice.dev/sluice/runtime/chat/tokens"
)

// Config says how completions are made.
type Config struct {
	Pool    *Pool
	Ledger  Ledger // nil: tokens are not metered
	Adapter httpapi.Adapter
	Log     *slog.Logger          // nil: slog.Default
	Metrics prometheus.Registerer // nil: not registered

	// Repeatable has a request with an Idempotency-Key take effect once; nil: the header
	// means nothing.
	Repeatable *idempotency.Middleware

	// Places are what accounts share: one for each stream, and for each 64 KiB of
	// its request. nil: DefaultPlaces, of which an account has a quarter.
	Places *fairshare.Pool

	MaxBody      int           // bytes of a request; 0: caps.DefaultMaxBytes
	FirstEvent   time.Duration // how long a provider may take to begin; 0: 2 minutes
	Idle         time.Duration // how long it may be silent then; 0: 5 minutes
	KeepAlive    time.Duration // silence before a comment is sent; 0: 15 seconds
	WriteTimeout time.Duration // how long the client may take for a write; 0: 1 minute
}

// Handler serves POST /v1/chat/completions. It expects access.Guard in front.
type Handler struct {
	Config
	metrics metrics
}

// NewHandler returns a handler for c, whose pool must be its own.
func NewHandler(c Config) *Handler {
	for _, d := range [...]struct{ field, value *time.Duration }{
		{&c.FirstEvent, new(2 * time.Minute)}, {&c.Idle, new(5 * time.Minute)},
		{&c.KeepAlive, new(15 * time.Second)}, {&c.WriteTimeout, new(time.Minute)},
	} {
		if *d.field <= 0 {
			*d.field = *d.value
		}
	}
	if c.MaxBody <= 0 {
		c.MaxBody = caps.DefaultMaxBytes
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if c.Places == nil {
		c.Places = fairshare.New(fairshare.Config{Places: DefaultPlaces})
	}
	h := &Handler{c, newMetrics(c.Metrics)}
	c.Pool.failed = func(provider string) { h.metrics.failures.WithLabelValues(provider).Inc() }
	return h
}

// ServeHTTP answers with a stream, or with the error envelope if there is
// nothing to stream.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.Adapter.Handle(h.complete)(w, r)
}

// complete does the work in order: a place, caps, budget, provider, stream, settlement.
// Whatever happens behind the reservation, it is settled exactly once.
func (h *Handler) complete(w http.ResponseWriter, r *http.Request) error {
	held := &places{pool: h.Places, account: access.Account(r)}
	defer held.free()
	req, err := h.read(w, r, held)
	if err != nil {
		return err
	}
	if h.Repeatable == nil {
		return h.answer(w, r, req)
	}
	return h.Repeatable.Stream(w, r, req.Body, func(w http.ResponseWriter, r *http.Request) {
		if err := h.answer(w, r, req); err != nil {
			h.Adapter.Error(w, r, err)
		}
	})
}

// answer reserves, asks a provider and passes its answer on.
func (h *Handler) answer(w http.ResponseWriter, r *http.Request, req Request) error {
	start := time.Now()
	res, err := h.reserve(r.Context(), req)
	if err != nil {
		return err
	}
	// The provider's stream ends with the client's request, with this function,
	// or when the relay gives a reason.
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	begun, err := h.open(ctx, cancel, req)
	if err != nil {
		used := Usage{Refused: true}
		if begun.Begun {
			used.Prompt, used.Estimated = tokens.Prompt(req.Body), true
		}
		h.metrics.over("refused", used)
		h.settle(r.Context(), res, req.Model, used)
		return err
	}
	stream := begun.Stream
	h.metrics.began(start)
	h.metrics.open.Inc()
	defer h.metrics.open.Dec()
	defer func() { _ = stream.Close() }() // it is over, or given up
	out := sse.NewWriter(w)
	out.Timeout = h.WriteTimeout
	defer out.Close()
	pass := h.relay(req, stream, out, cancel)
	used := pass.run(ctx, begun.First)
	if r.Context().Err() != nil {
		pass.outcome = "left" // whatever came of the stream, nobody saw it
	}
	h.metrics.over(pass.outcome, used)
	h.settle(r.Context(), res, req.Model, used)
	return nil
}

// relay prepares a stream's way to the client. Its id, time and model stand in
// for those that a provider leaves out.
func (h *Handler) relay(req Request, stream Stream, out *sse.Writer, cancel context.CancelCauseFunc) *relay {
	model, _ := json.Marshal(req.Model) // a string: it cannot fail
	return &relay{
		request: req, stream: stream, out: out, cancel: cancel, docs: h.Adapter.DocsBase,
		head: head{
			id: `"chatcmpl-` + rand.Text() + `"`, created: strconv.FormatInt(time.Now().Unix(), 10), model: string(model),
		},
		meter:     tokens.Meter{Limit: req.Limit * req.Choices},
		keepAlive: h.KeepAlive, idle: h.Idle,
	}
}

// read takes in the body and caps it.
func (h *Handler) read(w http.ResponseWriter, r *http.Request, held *places) (Request, error) {
	if err := httpapi.Plain(r); err != nil {
		return Request{}, err
	}
	body, err := readBody(w, r, h.MaxBody, held)
	if err != nil {
		return Request{}, err
	}
	capped, report, bad := caps.Apply(nil, body, caps.Options{StripTools: r.Header.Get(caps.StripHeader) == "1", MaxBytes: h.MaxBody})
	if bad != nil {
		return Request{}, &apierror.Error{Code: bad.Code, Details: bad.Details}
	}
	return Request{
		Body: capped, Model: report.Model, Limit: report.Limit, Choices: report.Choices,
		ID: httpapi.RequestID(r), Caller: CallerOf(r.Context()),
	}, nil
}

// CallerOf is the caller of a request that access.Guard let through.
func CallerOf(ctx context.Context) Caller {
	_, signed := identity.From(ctx)
	return Caller{Bearer: access.Bearer(ctx), Signed: signed}
}

// readBody refuses a body that is too large before it is read where its length
// is known, and once it has become too large where it is not.
// It holds no more of it than there are places for.
func readBody(w http.ResponseWriter, r *http.Request, limit int, held *places) ([]byte, error) {
	tooLarge := apierror.Errorf(decision.TooLarge, "The request body is larger than %d bytes.", limit)
	if r.ContentLength > int64(limit) {
		w.Header().Set("Connection", "close") // or the server would read it all the same
		return nil, tooLarge
	}
	if err := held.cover(int(max(0, r.ContentLength))); err != nil {
		w.Header().Set("Connection", "close") // as above
		return nil, err
	}
	// One byte more than announced: the end is then seen without growing.
	body := make([]byte, 0, max(512, r.ContentLength+1))
	in := http.MaxBytesReader(w, r.Body, int64(limit))
	for {
		n, err := in.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		if err == io.EOF {
			return body, nil
		}
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return nil, tooLarge
		}
		if err != nil {
			return nil, &apierror.Error{Code: decision.InvalidRequest, Message: "The request body could not be read.", Cause: err}
		}
		if len(body) == cap(body) {
			if err := held.cover(min(2*cap(body), limit)); err != nil {
				return nil, err
			}
			body = append(make([]byte, 0, min(2*cap(body), limit+1)), body...)
		}
	}
}

// reserve sets aside the most tokens that the request can take.
func (h *Handler) reserve(ctx context.Context, req Request) (Reservation, error) {
	c, ok := identity.From(ctx)
	if h.Ledger == nil || !ok {
		return nil, nil
	}
	return h.Ledger.Reserve(ctx, c, tokens.Bound(req.Body)+req.Limit*req.Choices)
}

// open starts the stream, if a provider begins in time.
func (h *Handler) open(ctx context.Context, cancel context.CancelCauseFunc, req Request) (Attempt, error) {
	late := &apierror.Error{Code: decision.GatewayTimeout, Message: "The provider did not begin in time."}
	// The timer covers all providers that are tried: the client waits once.
	timer := time.AfterFunc(h.FirstEvent, func() { cancel(late) })
	a, err := h.Pool.Open(ctx, req)
	if !timer.Stop() && err == nil {
		_ = a.Stream.Close() // given up
		err = late
	}
	if err != nil && errors.Is(context.Cause(ctx), late) {
		err = late
	}
	return a, err
}

// settle records what was used, also when the client has gone.
func (h *Handler) settle(ctx context.Context, res Reservation, model string, u Usage) {
	if res == nil {
		return
	}
	// The client may be gone, and what was produced is recorded all the same.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := res.Settle(ctx, model, u); err != nil {
		h.Log.ErrorContext(ctx, "tokens were not metered", "model", model, "tokens", u.Total(), "cause", err)
	}
}
