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

// bodyLimit bounds the bodies of these routes, in bytes.
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
	r.Post("/v1/auth/sessions", a.Respond.Handle(a.signIn))
	r.Get("/.well-known/jwks.json", a.Respond.Handle(a.jwks))
}

// OwnRoutes mounts the routes of the session in the request, behind Require.
func (a API) OwnRoutes(r chi.Router) {
	r.Delete("/v1/auth/sessions/current", a.Respond.Handle(a.end))
}

// signInRequest is the body of POST /v1/auth/sessions.
type signInRequest struct {
	Email    string `json:"email"`
	Password string `json:"password"`
}

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

// signIn answers POST /v1/auth/sessions: 201 with the token.
func (a API) signIn(w http.ResponseWriter, r *http.Request) error {
	var body signInRequest
	if err := httpapi.Decode(w, r, bodyLimit, &body); err != nil {
		return err
	}
	if err := body.check(); err != nil {
		return err
	}
	address := a.Address
	if address == nil {
		address = identity.ClientAddress
	}
	session, err := a.Service.SignIn(r.Context(), body.Email, body.Password, address(r))
	if err != nil {
		return err
	}
	return Shown(w, session)
}

// Shown answers 201 with a new session, which nothing on the way may keep.
func Shown(w http.ResponseWriter, s Session) error {
	w.Header().Set("Cache-Control", "no-store")
	httpapi.JSON(w, http.StatusCreated, s)
	return nil
}

// jwks answers GET /.well-known/jwks.json. Whoever keeps it does so for less
// time than a new key waits before it signs.
func (a API) jwks(w http.ResponseWriter, r *http.Request) error {
	set, err := a.Service.Keyring.Public(r.Context())
	if err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "public, max-age=60")
	httpapi.JSON(w, http.StatusOK, set)
	return nil
}

// end answers DELETE /v1/auth/sessions/current: 204.
func (a API) end(w http.ResponseWriter, r *http.Request) error {
	caller, _ := identity.From(r.Context())
	if err := a.Service.End(r.Context(), caller.Key); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
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
