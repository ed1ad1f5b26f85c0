// Package httpapi is the one adapter between handlers and HTTP: a handler
// returns an error, and httpapi turns it into the envelope (contract 5.1), its
// status and its headers. Every service of Sluice answers through it.
package httpapi

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"encoding/json"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
)

// RequestIDHeader carries the id of a request, on the way in and out.
const RequestIDHeader = "X-Request-ID"

// Adapter turns handlers that return errors into http.Handlers.
type Adapter struct {
	// DocsBase is the public address under which /docs/errors is served,
	// without a trailing slash; empty: relative links.
	DocsBase string
	// Log receives failures of ours, with their cause; nil: slog.Default.
	Log *slog.Logger
	// Bodies finds what else is wrong with a body that could not be read, and which parameters
	// operations have; nil: nothing.
	Bodies Bodies
}

// Bodies says what is described of an operation, as its method and the pattern of its path
// name it.
type Bodies interface {
	// Faults says what is wrong with the JSON object that it got. It takes time and memory
	// linear in raw.
	Faults(method, pattern string, raw []byte) []decision.Detail
	// Parameters are the names of those in its query, in order, and whether it takes no others.
	Parameters(method, pattern string) (names []string, closed bool)
}

// HandlerFunc is a handler that may fail. It must not have written anything
// when it returns an error.
type HandlerFunc func(w http.ResponseWriter, r *http.Request) error

// Handle adapts h.
func (a Adapter) Handle(h HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		err := a.unknown(r)
		if err == nil {
			err = h(w, r)
		}
		if err != nil {
			a.Error(w, r, err)
		}
	}
}

// unknown fails with invalid_request, naming every parameter of the query that the operation
// does not have: a list that takes page=2 for the first page looks as if it had no second one.
func (a Adapter) unknown(r *http.Request) error {
	route := chi.RouteContext(r.Context())
	if r.URL.RawQuery == "" || a.Bodies == nil || route == nil {
		return nil
	}
	names, closed := a.Bodies.Parameters(r.Method, strings.TrimSuffix(route.RoutePattern(), "/"))
	if !closed {
		return nil
	}
	expected := "no parameters"
	if len(names) > 0 {
		expected = "one of " + strings.Join(names, ", ")
	}
	var details []decision.Detail
	for name := range r.URL.Query() {
		if !slices.Contains(names, name) {
			details = append(details, decision.Detail{Field: decision.Cut(name, decision.MaxName), Issue: "is not a known parameter", Expected: expected})
		}
	}
	return apierror.Invalid(bounded(details))
}

type envelope struct {
	Error body `json:"error"`
}

type body struct {
	Code    decision.Code     `json:"code"`
	Message string            `json:"message"`
	Details []decision.Detail `json:"details,omitempty"`
	Request string            `json:"request_id"`
	Docs    string            `json:"documentation_url"`
}

// Error writes err as the envelope, in MaxError bytes at most. The text of an error that is not an
// apierror.Error goes to the log only.
func (a Adapter) Error(w http.ResponseWriter, r *http.Request, err error) {
	e := apierror.From(err)
	info := decision.Lookup(e.Code)
	if info.Status >= 500 && info.Code != decision.NotImplemented {
		a.log().ErrorContext(r.Context(), "request failed", "method", r.Method, "path", r.URL.Path,
			"request_id", RequestID(r), "code", e.Code, "cause", err)
	}
	message := e.Message
	if message == "" && info.Code == decision.NotFound {
		message = missing(r)
	}
	message = cmp.Or(message, info.Message)
	if e.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(e.RetryAfter))
	}
	a.challenge(w, r, e)
	id := RequestID(r)
	if id != "" {
		w.Header().Set(RequestIDHeader, id)
	}
	status := info.Status
	if status == 0 {
		status = http.StatusInternalServerError
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(encoded(body{info.Code, message, decision.Bounded(a.joined(r, e)), id, decision.DocsURL(a.DocsBase, info.Code)})) // the client is gone otherwise
}

// joined are e's details, and what else is wrong with the body that could not be read: not
// what follows from them, or they from it.
func (a Adapter) joined(r *http.Request, e *apierror.Error) []decision.Detail {
	route := chi.RouteContext(r.Context())
	if e.Body == nil || a.Bodies == nil || route == nil || len(e.Details) >= decision.MaxDetails {
		return e.Details
	}
	list := slices.Clone(e.Details)
	for _, d := range a.Bodies.Faults(r.Method, strings.TrimSuffix(route.RoutePattern(), "/"), e.Body) {
		if d == decision.More || !slices.ContainsFunc(e.Details, func(have decision.Detail) bool { return inside(d.Field, have.Field) || inside(have.Field, d.Field) }) {
			list = append(list, d)
		}
	}
	return bounded(list)
}

// inside reports whether a field is another, or a part of it.
func inside(field, whole string) bool {
	rest, ok := strings.CutPrefix(field, whole)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// MaxError bounds the answer of an error, in bytes.
const MaxError = 16 << 10

// maxMessage bounds the message of an answer, in bytes.
const maxMessage = 1000

// encoded is b in its envelope, in MaxError bytes at most: what JSON must escape
// can be six times as long, and then the last details are left out.
func encoded(b body) []byte {
	b.Message = decision.Cut(b.Message, maxMessage)
	for {
		var out bytes.Buffer
		enc := json.NewEncoder(&out)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(envelope{b}); err != nil {
			slog.Error("write response", "cause", err)
		}
		if out.Len() <= MaxError || len(b.Details) < 2 {
			return out.Bytes()
		}
		b.Details = append(b.Details[:(len(b.Details)-1)/2], decision.More)
	}
}

// challenge says how to authenticate, unless the handler has said it.
func (a Adapter) challenge(w http.ResponseWriter, r *http.Request, e *apierror.Error) {
	const header = "WWW-Authenticate"
	d := decision.Decision{Code: e.Code}
	if len(e.Details) > 0 {
		d.Detail = e.Details[0]
	}
	if c := decision.Challenge(d, a.DocsBase, r.URL.Path); c != "" && w.Header().Get(header) == "" {
		w.Header().Set(header, c)
	}
}

// NotFound and MethodNotAllowed suit a router's fallbacks.
func (a Adapter) NotFound(w http.ResponseWriter, r *http.Request) {
	a.Error(w, r, &apierror.Error{Code: decision.NotFound})
}

// MethodNotAllowed answers 405; the router has set Allow where it knows it.
func (a Adapter) MethodNotAllowed(w http.ResponseWriter, r *http.Request) {
	a.Error(w, r, &apierror.Error{Code: decision.MethodRefused})
}

func (a Adapter) log() *slog.Logger {
	if a.Log != nil {
		return a.Log
	}
	return slog.Default()
}

// RequestID returns the id that the edge gave the request, cut to a sane
// length; empty when the request did not come through an edge.
func RequestID(r *http.Request) string {
	id := r.Header.Get(RequestIDHeader)
	if len(id) > 128 {
		id = id[:128]
	}
	return id
}

// Identify is a middleware that gives a request that came without an edge an id of
// its own, and every response its request's.
func Identify(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := RequestID(r)
		if id == "" || strings.ContainsFunc(id, func(c rune) bool { return c <= ' ' || c > '~' }) {
			id = "req_" + rand.Text()
			r.Header.Set(RequestIDHeader, id)
		}
		w.Header().Set(RequestIDHeader, id)
		next.ServeHTTP(w, r)
	})
}

// Result answers with v, or returns err, which is for the Adapter, if there is one.
func Result(w http.ResponseWriter, status int, v any, err error) error {
	if err != nil {
		return err
	}
	JSON(w, status, v)
	return nil
}

// JSON writes v with status. Values that cannot be encoded are programming
// errors; they are logged, and the body is cut short.
func JSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		slog.Error("write response", "cause", err)
	}
}
