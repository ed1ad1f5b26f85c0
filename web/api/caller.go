package api

import (
	"net/http"

	"sluice.dev/sluice/controlplane/accounts/sessions"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/filters/identityheader"
	"sluice.dev/sluice/filters/scopes"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/identity"
)

// anyCaller lets a program through by the identity that the edge has signed,
// and a person by a session token.
func (c Config) anyCaller(s sessions.API) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		byEdge, bySession := c.Identity.Require(c.Respond)(next), s.Require(next)
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get(identityheader.Header) != "" {
				byEdge.ServeHTTP(w, r)
				return
			}
			bySession.ServeHTTP(w, r)
		})
	}
}

// need refuses callers without a scope. The edge has asked for it already from
// whoever came with a key; a session's scopes are looked at here.
func (c Config) need(scope string) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return c.Respond.Handle(func(w http.ResponseWriter, r *http.Request) error {
			caller, _ := identity.From(r.Context())
			if !scopes.Covers(caller.Scopes, scope) {
				return &apierror.Error{Code: decision.ScopeMissing,
					Details: []decision.Detail{{Field: "scope", Issue: "is not granted to this credential", Expected: scope}}}
			}
			next.ServeHTTP(w, r)
			return nil
		})
	}
}
