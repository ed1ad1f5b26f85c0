package team

import (
	"context"
	"net/http"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/controlplane/accounts/sessions"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/platform/http/identity"
	"sluice.dev/sluice/platform/http/paging"
)

// bodyLimit bounds the bodies of these routes, in bytes.
const bodyLimit = 16 << 10

// API serves the people of an account.
type API struct {
	Store    Store
	Sessions *sessions.Service // required: bounds how often strangers may try
	// HashPassword returns what is stored of a password; nil: sessions.HashPassword.
	HashPassword func(ctx context.Context, password, address string) (string, error)
	Respond      httpapi.Adapter
}

// Routes mounts the routes of a caller under r. need gives the middleware that
// asks for a scope.
func (a API) Routes(r chi.Router, need func(scope string) func(http.Handler) http.Handler) {
	h := a.Respond.Handle
	r.Group(func(r chi.Router) {
		r.Use(need("users:read"))
		r.Get("/v1/users", h(a.list))
		r.Get("/v1/users/{id}", h(a.get))
	})
	r.Group(func(r chi.Router) {
		r.Use(need("users:write"))
		r.Post("/v1/users", h(a.invite))
		r.Patch("/v1/users/{id}", h(a.setRole))
		r.Delete("/v1/users/{id}", h(a.remove))
	})
}

// OpenRoutes mounts the route by which an invitation is accepted.
func (a API) OpenRoutes(r chi.Router) {
	r.Post("/v1/auth/invitations/accept", a.Respond.Handle(a.accept))
}

// list answers GET /v1/users.
func (a API) list(w http.ResponseWriter, r *http.Request) error {
	p, details := paging.Parse(r.URL.Query())
	if err := apierror.Invalid(details); err != nil {
		return err
	}
	list, total, err := a.Store.List(r.Context(), identity.Account(r.Context()), p)
	return httpapi.Result(w, http.StatusOK, paging.Of(list, p, total), err)
}

// get answers GET /v1/users/{id}.
func (a API) get(w http.ResponseWriter, r *http.Request) error {
	u, err := a.Store.Get(r.Context(), identity.Account(r.Context()), chi.URLParam(r, "id"))
	return httpapi.Result(w, http.StatusOK, u, err)
}

// invite answers POST /v1/users: 201 with the invitation, which nothing on the
// way may keep.
func (a API) invite(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Email string `json:"email"`
		Role  string `json:"role"`
	}
	if err := httpapi.Decode(w, r, bodyLimit, &body); err != nil {
		return err
	}
	caller, _ := identity.From(r.Context())
	i, err := a.Store.Invite(r.Context(), caller.Account, body.Email, body.Role, caller.Scopes)
	if err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "no-store")
	httpapi.JSON(w, http.StatusCreated, i)
	return nil
}

// setRole answers PATCH /v1/users/{id}: role.
func (a API) setRole(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Role string `json:"role"`
	}
	if err := httpapi.Decode(w, r, bodyLimit, &body); err != nil {
		return err
	}
	caller, _ := identity.From(r.Context())
	u, err := a.Store.SetRole(r.Context(), caller.Account, chi.URLParam(r, "id"), body.Role, caller.Scopes)
	return httpapi.Result(w, http.StatusOK, u, err)
}

// remove answers DELETE /v1/users/{id}: 204.
func (a API) remove(w http.ResponseWriter, r *http.Request) error {
	caller, _ := identity.From(r.Context())
	if err := a.Store.Remove(r.Context(), caller.Account, chi.URLParam(r, "id"), caller.Scopes); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// maxToken bounds an invitation's token, in bytes.
const maxToken = 100

// accept answers POST /v1/auth/invitations/accept. Every fault of the request is
// found before the password is hashed, and a network may fail as often as with
// sign-ins.
func (a API) accept(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Token    string `json:"token"`
		Password string `json:"password"`
	}
	if err := httpapi.Decode(w, r, bodyLimit, &body); err != nil {
		return err
	}
	details := sessions.CheckPassword(body.Password)
	if body.Token == "" || len(body.Token) > maxToken {
		details = append(details, decision.Detail{Field: "token", Issue: "is not valid", Expected: "the token of an open invitation"})
	}
	if err := apierror.Invalid(details); err != nil {
		return err
	}
	address := identity.ClientAddress(r)
	succeeded, err := a.Sessions.Attempt(r.Context(), address)
	if err != nil {
		return err
	}
	if err := a.Store.Find(r.Context(), body.Token); err != nil {
		return err
	}
	hashed := a.HashPassword
	if hashed == nil {
		hashed = sessions.HashPassword
	}
	hash, err := hashed(r.Context(), body.Password, address)
	if err != nil {
		return err
	}
	u, err := a.Store.Accept(r.Context(), body.Token, hash)
	if err == nil {
		err = succeeded(r.Context())
	}
	return httpapi.Result(w, http.StatusOK, u, err)
}
