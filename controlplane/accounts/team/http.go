package team

import (
	"context"
	"net/http"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/controlplane/accounts"
	"sluice.dev/sluice/controlplane/accounts/sessions"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/platform/http/identity"
	"sluice.dev/sluice/platform/http/paging"
)

// API serves the people of an account.
type API struct {
	Store    Store
	Sessions *sessions.Service // required: bounds how often strangers may try
	// HashPassword returns what is stored of a password; nil: sessions.HashPassword.
	HashPassword func(ctx context.Context, password, address string) (string, error)
	Respond      httpapi.Adapter
}

// Routes mounts the routes of a caller under r. need gives the middleware that
// requires a scope.
func (a API) Routes(r chi.Router, need func(scope string) func(http.Handler) http.Handler) {
	r.Group(func(r chi.Router) {
		r.Use(need("users:read"))
		r.Get("/v1/users", httpapi.Handle(a.Respond, http.StatusOK, a.list))
		r.Get("/v1/users/{id}", httpapi.Handle(a.Respond, http.StatusOK, a.get))
	})
	r.Group(func(r chi.Router) {
		r.Use(need("users:write"))
		r.Post("/v1/users", httpapi.Handle(a.Respond, http.StatusCreated, a.invite))
		r.Patch("/v1/users/{id}", httpapi.Handle(a.Respond, http.StatusOK, a.setRole))
		r.Delete("/v1/users/{id}", httpapi.Handle(a.Respond, http.StatusNoContent, a.remove))
	})
}

// OpenRoutes mounts the route by which an invitation is accepted.
func (a API) OpenRoutes(r chi.Router) {
	r.Post("/v1/auth/invitations/accept", httpapi.Handle(a.Respond, http.StatusOK, a.accept))
}

// smallBody bounds the bodies of these routes.
type smallBody struct{}

// BodyLimit is that bound, in bytes.
func (smallBody) BodyLimit() int64 { return 16 << 10 }

// list answers GET /v1/users.
func (a API) list(r *http.Request, _ httpapi.None) (out paging.List[accounts.User], err error) {
	p, details := List.Parse(r.URL.Query())
	if err := apierror.Invalid(details); err != nil {
		return out, err
	}
	return a.Store.Page(r.Context(), identity.Account(r.Context()), p)
}

// get answers GET /v1/users/{id}.
func (a API) get(r *http.Request, _ httpapi.None) (accounts.User, error) {
	return a.Store.Get(r.Context(), identity.Account(r.Context()), chi.URLParam(r, "id"))
}

type inviteRequest struct {
	smallBody
	Email string `json:"email"`
	Role  string `json:"role"`
}

// SetHeaders keeps caches from storing the token.
func (Invitation) SetHeaders(h http.Header) { h.Set("Cache-Control", "no-store") }

// invite answers POST /v1/users.
func (a API) invite(r *http.Request, in inviteRequest) (Invitation, error) {
	caller, _ := identity.From(r.Context())
	return a.Store.Invite(r.Context(), caller.Account, in.Email, in.Role, caller.Scopes)
}

type roleRequest struct {
	smallBody
	Role string `json:"role"`
}

// setRole answers PATCH /v1/users/{id}: role.
func (a API) setRole(r *http.Request, in roleRequest) (accounts.User, error) {
	caller, _ := identity.From(r.Context())
	return a.Store.SetRole(r.Context(), caller.Account, chi.URLParam(r, "id"), in.Role, caller.Scopes)
}

// remove answers DELETE /v1/users/{id}.
func (a API) remove(r *http.Request, _ httpapi.None) (none httpapi.None, err error) {
	caller, _ := identity.From(r.Context())
	return none, a.Store.Remove(r.Context(), caller.Account, chi.URLParam(r, "id"), caller.Scopes)
}

// maxToken bounds an invitation's token, in bytes.
const maxToken = 100

type acceptRequest struct {
	smallBody
	Token    string `json:"token"`
	Password string `json:"password"`
}

// accept answers POST /v1/auth/invitations/accept. Every fault of the request is
// found before the password is hashed, and a network may fail as often as with
// sign-ins.
func (a API) accept(r *http.Request, in acceptRequest) (u accounts.User, err error) {
	details := sessions.CheckPassword(in.Password)
	if in.Token == "" || len(in.Token) > maxToken {
		details = append(details, decision.Detail{Field: "token", Issue: "is not valid", Expected: "the token of an open invitation"})
	}
	if err := apierror.Invalid(details); err != nil {
		return u, err
	}
	address := identity.ClientAddress(r)
	succeeded, err := a.Sessions.Attempt(r.Context(), address)
	if err != nil {
		return u, err
	}
	if err := a.Store.Find(r.Context(), in.Token); err != nil {
		return u, err
	}
	hashed := a.HashPassword
	if hashed == nil {
		hashed = sessions.HashPassword
	}
	hash, err := hashed(r.Context(), in.Password, address)
	if err != nil {
		return u, err
	}
	if u, err = a.Store.Accept(r.Context(), in.Token, hash); err == nil {
		err = succeeded(r.Context())
	}
	return u, err
}
