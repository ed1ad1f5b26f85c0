package access

import (
	"net"
	"net/http"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/platform/http/identity"
	"sluice.dev/sluice/platform/limits/fairshare"
)

// Account is in whose name r takes of what callers share: its account, or the
// credential of a payer without one, or, where no edge has signed for the
// caller, the address that it comes from.
func Account(r *http.Request) string {
	if c, ok := identity.From(r.Context()); ok {
		if c.Account != "" {
			return c.Account
		}
		return c.Key
	}
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = r.RemoteAddr
	}
	return "address " + host
}

// Busy is the answer to an account that has its share under way.
func Busy() error {
	return &apierror.Error{Code: decision.RateLimited, RetryAfter: 1, Message: "The account has as many requests under way as it may."}
}

// Share lets an account have no more requests under way in next than its share
// of places; more get 429. It stands behind a Guard.
func Share(places *fairshare.Pool, a httpapi.Adapter, next http.Handler) http.Handler {
	return a.Handle(func(w http.ResponseWriter, r *http.Request) error {
		leave, ok := places.TryEnter(Account(r))
		if !ok {
			return Busy()
		}
		defer leave()
		next.ServeHTTP(w, r)
		return nil
	})
}
