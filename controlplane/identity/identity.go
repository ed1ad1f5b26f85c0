// Package identity tells a service of ours who calls it: the middleware checks
// the header that an edge has signed and puts the caller into the context.
package identity

import (
	"context"
	"errors"
	"net/http"
	"time"

	"sluice.dev/sluice/controlplane"
	"sluice.dev/sluice/controlplane/respond"
	"sluice.dev/sluice/filters/decision"
	edge "sluice.dev/sluice/filters/identity"
)

// Caller is who calls; see filters/identity.
type Caller = edge.Caller

// Verifier checks identity headers.
type Verifier struct {
	// Secrets are the keys that edges sign with: the present one and, while it
	// is being rotated, the one before. None: every request is refused.
	Secrets func() [][]byte
	// Now is the clock; nil: time.Now.
	Now func() time.Time
}

// Require is middleware that answers 401 to a request without a valid identity
// and hands any other one on with its caller.
func (v Verifier) Require(a respond.Adapter) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return a.Handle(func(w http.ResponseWriter, r *http.Request) error {
			c, err := v.Caller(r)
			if err != nil {
				return err
			}
			next.ServeHTTP(w, r.WithContext(With(r.Context(), c)))
			return nil
		})
	}
}

// Caller returns who makes request r. It fails with authentication_required
// when the request has no identity header, or more than one, or one that is not
// valid: the request then did not come through an edge. It fails with
// service_unavailable when an edge did sign it, too long ago: the clocks of that
// edge and of this service differ.
func (v Verifier) Caller(r *http.Request) (Caller, error) {
	values := r.Header.Values(edge.Header)
	if len(values) != 1 {
		return Caller{}, &controlplane.Error{Code: decision.AuthRequired}
	}
	c, err := edge.Verify(v.Secrets(), values[0], v.now())
	if errors.Is(err, edge.ErrExpired) { // the caller is not at fault: an edge whose clock is right would have signed anew
		return Caller{}, &controlplane.Error{Code: decision.Unavailable, Cause: err, RetryAfter: 1}
	}
	if err != nil {
		return Caller{}, &controlplane.Error{Code: decision.AuthRequired, Cause: err}
	}
	return c, nil
}

// now is in unix seconds.
func (v Verifier) now() int64 {
	if v.Now != nil {
		return v.Now().Unix()
	}
	return time.Now().Unix()
}

type contextKey struct{}

// With returns ctx with caller c.
func With(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, contextKey{}, c)
}

// From returns the caller in ctx; ok is false when there is none.
func From(ctx context.Context) (c Caller, ok bool) {
	c, ok = ctx.Value(contextKey{}).(Caller)
	return c, ok
}

// Account returns the account in ctx, or "" when there is none: a query by it
// then finds nothing.
func Account(ctx context.Context) string {
	c, _ := From(ctx)
	return c.Account
}
