// Package identity tells a service of ours who calls it: the middleware checks
// the header that an edge has signed and puts the caller into the context.
package identity

import (
	"context"
	"errors"
	"net/http"
	"time"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/filters/identityheader"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/httpapi"
)

// Caller is who calls; see filters/identityheader.
type Caller = identityheader.Caller

// Secret is a product's own, by which it knows what edges sign for it.
type Secret struct {
	Product string
	Key     []byte // see filters/identityheader.ProductSecret
}

// Verifier checks identity headers. Without any secret every request is refused.
type Verifier struct {
	// Secrets are the platform's: the present one and, while it is being rotated,
	// the one before. They are good for values that name no product, and for those
	// that name one in Leads. nil: the service holds none.
	Secrets func() [][]byte
	// Leads says whether the product of a name leads to this service; nil: none
	// does. It is asked about names that an edge has signed, and no others.
	Leads func(ctx context.Context, product string) bool
	// Own are the secrets of the products that lead here, for a service that does
	// not hold the platform's. There may be several of one product.
	Own []Secret
	// Now is the clock; nil: time.Now.
	Now func() time.Time
}

// Require is middleware that answers 401 to a request without a valid identity
// and hands any other one on with its caller.
func (v Verifier) Require(a httpapi.Adapter) func(http.Handler) http.Handler {
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
	values := r.Header.Values(identityheader.Header)
	if len(values) != 1 {
		return Caller{}, &apierror.Error{Code: decision.AuthRequired}
	}
	c, err := v.verify(r.Context(), values[0])
	if errors.Is(err, identityheader.ErrExpired) { // the caller is not at fault: an edge whose clock is right would have signed anew
		return Caller{}, &apierror.Error{Code: decision.Unavailable, Cause: err, RetryAfter: 1}
	}
	if err != nil {
		return Caller{}, &apierror.Error{Code: decision.AuthRequired, Cause: err}
	}
	return c, nil
}

// verify costs a MAC over the value for each secret of the platform and of the
// product that the value names; for the platform's, one more over that name.
func (v Verifier) verify(ctx context.Context, value string) (Caller, error) {
	product := identityheader.Product(value)
	if product == "" {
		return identityheader.Verify(v.platform(), value, v.now())
	}
	if c, err := identityheader.VerifyFor(v.own(product), product, value, v.now()); err == nil || !errors.Is(err, identityheader.ErrSignature) || v.Leads == nil {
		return c, err
	}
	c, err := identityheader.VerifyFor(v.derived(product), product, value, v.now())
	if err == nil && !v.Leads(ctx, product) {
		return Caller{}, identityheader.ErrSignature
	}
	return c, err
}

func (v Verifier) platform() [][]byte {
	if v.Secrets == nil {
		return nil
	}
	return v.Secrets()
}

// own are the secrets of a product that are known without the platform's.
func (v Verifier) own(product string) (list [][]byte) {
	for _, s := range v.Own {
		if s.Product == product {
			list = append(list, s.Key)
		}
	}
	return list
}

// derived are those that follow from the platform's.
func (v Verifier) derived(product string) (list [][]byte) {
	for _, s := range v.platform() {
		list = append(list, identityheader.ProductSecret(s, product))
	}
	return list
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
