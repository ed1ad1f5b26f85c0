package httpapi

import (
	"context"
	"net/http"

	"github.com/felixge/httpsnoop"
	"github.com/go-chi/chi/v5"
)

// headAsGet is a middleware that routes HEAD as GET: net/http leaves the body out. An
// answer that is flushed, as streams are, has said all that HEAD asks for, so that its
// request ends there.
func headAsGet(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodHead {
			next.ServeHTTP(w, r)
			return
		}
		chi.RouteContext(r.Context()).RouteMethod = http.MethodGet
		ctx, end := context.WithCancel(r.Context())
		defer end()
		next.ServeHTTP(httpsnoop.Wrap(w, httpsnoop.Hooks{Flush: func(flush httpsnoop.FlushFunc) httpsnoop.FlushFunc {
			return func() { flush(); end() }
		}}), r.WithContext(ctx))
	})
}
