// Package access authenticates callers of the runtime: the account that an edge has
// signed for. A runtime that stands alone, without an edge, also takes whoever
// holds a bearer token: it goes on to the provider or gateway, which checks it.
package access

import (
	"cmp"
	"context"
	"net/http"
	"strings"

	"sluice.dev/sluice/filters/credentials/apikey"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/filters/identityheader"
	"sluice.dev/sluice/filters/scopes"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/platform/http/identity"
)

// maxToken bounds a bearer token in bytes.
const maxToken = 16 << 10

// Guard lets requests through for which an edge has signed.
type Guard struct {
	Verifier identity.Verifier
	Adapter  httpapi.Adapter
	// Standalone also lets requests through that have a bearer token and came
	// through no edge: nobody has checked them.
	Standalone bool
	// PublicURL is the runtime's address for users, where clients read how to get a token
	// (RFC 9728); empty: they are not told.
	PublicURL string
	// Asked reports whether chat asks for scopes; nil: it does.
	Asked func(context.Context) bool
}

// Require answers 401 to a request without an edge's identity, and, of a
// runtime that stands alone, to one that has neither that nor a bearer token. An
// identity header that no edge has signed gets 401 everywhere.
func (g Guard) Require(next http.Handler) http.Handler {
	return g.Adapter.Handle(func(w http.ResponseWriter, r *http.Request) error {
		r, err := g.Admit(w, r)
		if err == nil {
			next.ServeHTTP(w, r)
		}
		return err
	})
}

// Admit is Require for handlers that decide by themselves when to ask: it
// returns r with the caller in its context.
func (g Guard) Admit(w http.ResponseWriter, r *http.Request) (*http.Request, error) {
	ctx := r.Context()
	token := Token(r)
	// A header that is there and not signed is a forgery, never ignored: the
	// request might pass for a direct one otherwise.
	if _, signed := r.Header[http.CanonicalHeaderKey(identityheader.Header)]; signed {
		c, err := g.Verifier.Caller(r)
		if err != nil {
			return nil, g.challenge(w, r, err)
		}
		ctx = identity.With(ctx, c)
	} else if !g.Standalone || token == "" {
		return nil, g.challenge(w, r, &apierror.Error{Code: decision.AuthRequired, Details: lacks(r, token)})
	}
	return r.WithContext(context.WithValue(ctx, tokenKey{}, token)), nil
}

// lacks says what is wrong with the header of a request without a token.
func lacks(r *http.Request, token string) []decision.Detail {
	if token != "" {
		return nil
	}
	_, d := apikey.Bearer(strings.Join(r.Header.Values(apikey.Header), ","))
	return []decision.Detail{cmp.Or(d.Detail, apikey.Missing)}
}

// tokenKey is the context's key for the bearer token.
type tokenKey struct{}

// Bearer returns the token of the request that Admit let through; "" if it was
// let through by its identity alone.
func Bearer(ctx context.Context) string {
	token, _ := ctx.Value(tokenKey{}).(string)
	return token
}

// Token returns the bearer token that r carries in its one Authorization
// header, or "".
func Token(r *http.Request) string {
	values := r.Header.Values("Authorization")
	if len(values) != 1 || len(values[0]) > maxToken {
		return ""
	}
	scheme, token, _ := strings.Cut(values[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// RequireScope is Require for a caller with a scope, who gets to next without a route of an
// edge that asks for it. Nobody knows the scopes of whom no edge has signed for.
func (g Guard) RequireScope(scope string, next http.Handler) http.Handler {
	return g.Require(g.Adapter.Handle(func(w http.ResponseWriter, r *http.Request) error {
		c, known := identity.From(r.Context())
		if known && !scopes.Covers(c.Scopes, scope) && (g.Asked == nil || g.Asked(r.Context())) {
			return &apierror.Error{Code: decision.ScopeMissing, Details: []decision.Detail{{Field: "scope", Issue: "is not granted to this credential", Expected: scope}}}
		}
		next.ServeHTTP(w, r)
		return nil
	}))
}

// challenge adds the header that RFC 9110 wants with a 401. It names the runtime's own
// metadata, not those of the gateway: clients compare them with the address they called.
func (g Guard) challenge(w http.ResponseWriter, r *http.Request, err error) error {
	w.Header().Set("WWW-Authenticate", decision.Challenge(decision.Deny(decision.AuthRequired), g.PublicURL, r.URL.Path))
	return err
}
