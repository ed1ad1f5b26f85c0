package httpapi

import (
	"errors"
	"net/http"

	"github.com/felixge/httpsnoop"
	"github.com/go-chi/chi/v5"
)

// Router returns a router that runs the middleware and answers what no route
// matches with the envelope. A route for GET is one for HEAD too.
func (a Adapter) Router(middleware ...func(http.Handler) http.Handler) *chi.Mux {
	r := chi.NewRouter()
	r.Use(headAsGet)
	r.Use(middleware...)
	r.NotFound(a.NotFound)
	r.MethodNotAllowed(func(w http.ResponseWriter, q *http.Request) {
		for _, m := range []string{"DELETE", "GET", "PATCH", "POST", "PUT"} {
			if r.Match(chi.NewRouteContext(), m, q.URL.Path) {
				w.Header().Add("Allow", m)
				if m == http.MethodGet {
					w.Header().Add("Allow", http.MethodHead)
				}
			}
		}
		a.MethodNotAllowed(w, q)
	})
	return r
}

// errPanic is what the caller's envelope is made from: nothing of the panic.
var errPanic = errors.New("a handler panicked")

// Recover is a middleware that turns a panic of a handler into a 500 with the
// envelope. An answer that has begun is aborted.
func (a Adapter) Recover(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var answered httpsnoop.Metrics
		defer func() {
			p := recover()
			if p == nil {
				return
			}
			if p == http.ErrAbortHandler { //nolint:errorlint // net/http compares it by identity
				panic(p)
			}
			a.log().ErrorContext(r.Context(), "handler panicked", "path", r.URL.Path, "panic", p)
			if answered.Code != 0 || answered.Written > 0 {
				panic(http.ErrAbortHandler)
			}
			a.Error(w, r, errPanic)
		}()
		answered.CaptureMetrics(w, func(w http.ResponseWriter) { next.ServeHTTP(w, r) })
	})
}
