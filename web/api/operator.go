package api

import (
	"cmp"
	"net/http"
	"strings"

	"sluice.dev/sluice/controlplane/accounts"
	"sluice.dev/sluice/controlplane/accounts/sessions"
	"sluice.dev/sluice/filters/credentials/apikey"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/filters/scopes"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/platform/http/identity"
)

// requireOperator lets requests through that carry a key with scope * of the
// operator's account, and puts its identity into the context.
func (c Config) requireOperator(next http.Handler) http.Handler {
	store := c.keys().Store
	return c.Respond.Handle(func(w http.ResponseWriter, r *http.Request) error {
		text, d := apikey.Bearer(strings.Join(r.Header.Values("Authorization"), ","))
		if !d.OK() {
			return &apierror.Error{Code: d.Code, Details: []decision.Detail{cmp.Or(d.Detail, apikey.Missing)}}
		}
		h, err := store.Find(r.Context(), text)
		if err != nil {
			return err
		}
		if !h.Admin() {
			return &apierror.Error{Code: decision.ScopeMissing, Message: "The admin API needs an operator's key.",
				Details: []decision.Detail{{Field: "scope", Issue: "is not granted to this credential", Expected: scopes.Admin}}}
		}
		caller := identity.Caller{Account: h.Account, Key: h.ID, Plan: h.Plan, Scopes: h.Scopes}
		next.ServeHTTP(w, r.WithContext(identity.With(r.Context(), caller)))
		return nil
	})
}

type sessionRequest struct {
	Email string `json:"email"`
}

// createSession makes a session for a user, without a password.
func (c Config) createSession(r *http.Request, in sessionRequest) (sessions.Session, error) {
	user, err := accounts.Store{DB: c.DB}.UserByEmail(r.Context(), in.Email)
	if apierror.Code(err) == decision.NotFound {
		err = apierror.Invalid([]decision.Detail{{Field: "email", Issue: "is not a user's", Expected: "the e-mail address of a user"}})
	}
	if err != nil {
		return sessions.Session{}, err
	}
	return c.Sessions.Create(r.Context(), user.ID)
}

// unavailable asks the caller to come back when the database answers again.
func unavailable(cause error) error {
	return &apierror.Error{Code: decision.Unavailable, RetryAfter: 1, Cause: cause}
}

// self is the answer of GET /admin/v1/self.
type self struct {
	Account string   `json:"account"`
	Key     string   `json:"key_id"`
	Scopes  []string `json:"scopes"`
}

// self tells an operator whose key it is, so that commands have a default account.
func (c Config) self(r *http.Request, _ httpapi.None) (self, error) {
	caller, _ := identity.From(r.Context())
	return self{caller.Account, caller.Key, caller.Scopes}, nil
}
