package sessions

import (
	"net/http"
	"strings"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/filters/credentials/apikey"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/platform/http/identity"
)

// bodyLimit bounds the body of a sign-in, in bytes.
const bodyLimit = 16 << 10

// API serves sessions over HTTP.
type API struct {
	Service *Service
	Respond httpapi.Adapter
	// Address tells the network address of a caller; nil: identity.ClientAddress.
	Address func(*http.Request) string
}

// Routes mounts the routes that need no session under r.
func (a API) Routes(r chi.Router) {
	r.Post("/v1/auth/sessions", httpapi.Handle(a.Respond, http.StatusCreated, a.signIn))
	r.Get("/.well-known/jwks.json", httpapi.Handle(a.Respond, http.StatusOK, a.jwks))
}

// OwnRoutes mounts the routes of the session in the request, behind Require.
func (a API) OwnRoutes(r chi.Router) {
	r.Delete("/v1/auth/sessions/current", httpapi.Handle(a.Respond, http.StatusNoContent, a.end))
}

// signInRequest is the body of POST /v1/auth/sessions.
type signInRequest struct {
	Email    string `json:"email"`
	Password string `json:"password"`
}

// BodyLimit bounds the body, in bytes.
func (signInRequest) BodyLimit() int64 { return bodyLimit }

// check bounds what is hashed and stored; whether it is right is for SignIn.
func (q signInRequest) check() error {
	var details []decision.Detail
	if q.Email == "" || len(q.Email) > 254 {
		details = append(details, decision.Detail{Field: "email", Issue: "is not valid", Expected: "an e-mail address"})
	}
	if q.Password == "" || len(q.Password) > MaxPassword {
		details = append(details, decision.Detail{Field: "password", Issue: "is not valid", Expected: "a password"})
	}
	return apierror.Invalid(details)
}

// signIn answers POST /v1/auth/sessions with the token.
func (a API) signIn(r *http.Request, in signInRequest) (Session, error) {
	if err := in.check(); err != nil {
		return Session{}, err
	}
	address := a.Address
	if address == nil {
		address = identity.ClientAddress
	}
	return a.Service.SignIn(r.Context(), in.Email, in.Password, address(r))
}

// SetHeaders keeps caches from storing the token.
func (Session) SetHeaders(h http.Header) { h.Set("Cache-Control", "no-store") }

// SetHeaders lets caches keep the keys for less time than a new key waits before
// it signs.
func (JWKS) SetHeaders(h http.Header) { h.Set("Cache-Control", "public, max-age=60") }

// jwks answers GET /.well-known/jwks.json.
func (a API) jwks(r *http.Request, _ httpapi.None) (JWKS, error) {
	return a.Service.Keyring.Public(r.Context())
}

// end answers DELETE /v1/auth/sessions/current.
func (a API) end(r *http.Request, _ httpapi.None) (none httpapi.None, err error) {
	caller, _ := identity.From(r.Context())
	return none, a.Service.End(r.Context(), caller.Key)
}

// Require is middleware that hands on requests with a live session's token and
// puts its identity into the context: the account, the session's id as the key,
// and its scopes. Others get 401; so does an API key, which cannot stand for a
// person.
func (a API) Require(next http.Handler) http.Handler {
	return a.Respond.Handle(func(w http.ResponseWriter, r *http.Request) error {
		token, d := apikey.Bearer(singleHeader(r, "Authorization"))
		if !d.OK() {
			return apierror.Errorf(d.Code, "Send a session token: `Authorization: Bearer <token>`, from POST /v1/auth/sessions.")
		}
		if apikey.WellFormed(token) {
			return apierror.Errorf(decision.InvalidToken, "This needs a session token, not an API key.")
		}
		c, err := a.Service.Verify(r.Context(), token)
		if err != nil {
			return err
		}
		caller := identity.Caller{Account: c.Account, Key: c.ID, Scopes: c.Scopes}
		next.ServeHTTP(w, r.WithContext(identity.With(r.Context(), caller)))
		return nil
	})
}

// singleHeader returns the header's value; several values are joined, and then
// are no credential.
func singleHeader(r *http.Request, name string) string {
	return strings.Join(r.Header.Values(name), ",")
}
