package apikeys

import (
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/platform/http/identity"
	"sluice.dev/sluice/platform/http/paging"
)

// bodyLimit bounds the bodies of these routes, in bytes.
const bodyLimit = 64 << 10

// API serves keys over HTTP.
type API struct {
	Store   Store
	Respond httpapi.Adapter
}

// Routes mounts the routes of users under r; a middleware before them has put
// the session's identity into the context.
func (a API) Routes(r chi.Router) {
	r.Post("/v1/auth/keys", httpapi.Handle(a.Respond, http.StatusCreated, a.create))
	r.Get("/v1/auth/keys", httpapi.Handle(a.Respond, http.StatusOK, a.list))
	r.Get("/v1/auth/keys/{id}", httpapi.Handle(a.Respond, http.StatusOK, a.get))
	r.Patch("/v1/auth/keys/{id}", httpapi.Handle(a.Respond, http.StatusOK, a.change))
	r.Delete("/v1/auth/keys/{id}", httpapi.Handle(a.Respond, http.StatusNoContent, a.revoke))
	r.Post("/v1/auth/keys/{id}/rotate", a.Respond.Handle(a.rotate))
}

// KeyedRoutes mounts the route by which a key asks about itself; a middleware
// before it has put the edge's identity into the context.
func (a API) KeyedRoutes(r chi.Router) {
	r.Get("/v1/auth/validate", httpapi.Handle(a.Respond, http.StatusOK, a.validate))
}

// AdminRoutes mounts the routes of operators relative to r, which checks who
// calls.
func (a API) AdminRoutes(r chi.Router) {
	r.Post("/accounts/{account}/keys", httpapi.Handle(a.Respond, http.StatusCreated, a.adminCreate))
	r.Get("/accounts/{account}/keys", httpapi.Handle(a.Respond, http.StatusOK, a.adminList))
	r.Delete("/keys/{id}", httpapi.Handle(a.Respond, http.StatusNoContent, a.adminRevoke))
	r.Post("/keys/{id}/rotate", a.Respond.Handle(a.adminRotate))
}

// SetHeaders keeps caches from storing the key's text.
func (Created) SetHeaders(h http.Header) { h.Set("Cache-Control", "no-store") }

// create answers POST /v1/auth/keys with the record and the key's text.
func (a API) create(r *http.Request, in createRequest) (Created, error) {
	caller, _ := identity.From(r.Context())
	end, details := in.Days.end(a.Store.now())
	return a.Store.Create(r.Context(), in.spec(caller.Account, end, caller.Scopes, MaxKeys, details))
}

// list answers GET /v1/auth/keys.
func (a API) list(r *http.Request, _ httpapi.None) (paging.List[Key], error) {
	return a.listOf(r, identity.Account(r.Context()))
}

// listOf lists the keys of one account.
func (a API) listOf(r *http.Request, account string) (out paging.List[Key], err error) {
	p, details := List.Parse(r.URL.Query())
	if err := apierror.Invalid(details); err != nil {
		return out, err
	}
	return a.Store.Page(r.Context(), account, p)
}

// get answers GET /v1/auth/keys/{id}.
func (a API) get(r *http.Request, _ httpapi.None) (Key, error) {
	return a.Store.Get(r.Context(), identity.Account(r.Context()), chi.URLParam(r, "id"))
}

// change answers PATCH /v1/auth/keys/{id}: name and rate_limit_per_minute, each
// if given. Scopes and end never change: a key that could grow would surprise
// whoever handed it out.
func (a API) change(r *http.Request, in changeRequest) (Key, error) {
	c, details := in.change()
	if err := apierror.Invalid(details); err != nil {
		return Key{}, err
	}
	caller, _ := identity.From(r.Context())
	return a.Store.Change(r.Context(), caller.Account, chi.URLParam(r, "id"), c, caller.Scopes)
}

// revoke answers DELETE /v1/auth/keys/{id}.
func (a API) revoke(r *http.Request, _ httpapi.None) (none httpapi.None, err error) {
	caller, _ := identity.From(r.Context())
	return none, a.Store.Revoke(r.Context(), caller.Account, chi.URLParam(r, "id"), caller.Scopes)
}

// rotate answers POST /v1/auth/keys/{id}/rotate: 201 with the new key.
func (a API) rotate(w http.ResponseWriter, r *http.Request) error {
	caller, _ := identity.From(r.Context())
	return a.rotateOf(w, r, caller.Account, caller.Scopes)
}

// rotateOf rotates a key of an account, for a caller with the scopes of creator.
func (a API) rotateOf(w http.ResponseWriter, r *http.Request, account string, creator []string) error {
	overlap, err := readOverlap(w, r)
	if err != nil {
		return err
	}
	c, err := a.Store.Rotate(r.Context(), account, chi.URLParam(r, "id"), overlap, creator)
	if err != nil {
		return err
	}
	c.SetHeaders(w.Header())
	httpapi.JSON(w, http.StatusCreated, c)
	return nil
}

// readOverlap accepts a request without a body.
func readOverlap(w http.ResponseWriter, r *http.Request) (time.Duration, error) {
	raw, err := httpapi.ReadJSON(w, r, bodyLimit)
	if err != nil {
		return 0, err
	}
	var body rotateRequest
	if len(raw) > 0 {
		if err := httpapi.Unmarshal(raw, &body); err != nil {
			return 0, err
		}
	}
	return body.overlap()
}

// validation is the answer of GET /v1/auth/validate (contract 2.4).
type validation struct {
	Valid     bool       `json:"valid"`
	KeyID     string     `json:"key_id"`
	Scopes    []string   `json:"scopes"`
	ExpiresAt *time.Time `json:"expires_at"`
}

// validate answers GET /v1/auth/validate.
func (a API) validate(r *http.Request, _ httpapi.None) (validation, error) {
	caller, _ := identity.From(r.Context())
	h, err := a.Store.FindByID(r.Context(), caller.Key)
	return validation{true, h.ID, h.Scopes, h.ExpiresAt}, err
}

// adminCreate answers POST accounts/{account}/keys.
func (a API) adminCreate(r *http.Request, in adminCreateRequest) (Created, error) {
	return a.Store.Create(r.Context(), in.spec(chi.URLParam(r, "account"), a.Store.now()))
}

// adminList answers GET accounts/{account}/keys.
func (a API) adminList(r *http.Request, _ httpapi.None) (paging.List[Key], error) {
	account := chi.URLParam(r, "account")
	list, err := a.listOf(r, account)
	if err == nil && len(list.Data) == 0 { // of none, or of nobody
		err = a.Store.KnownAccount(r.Context(), account)
	}
	return list, err
}

// adminRevoke answers DELETE keys/{id}, whatever the account.
func (a API) adminRevoke(r *http.Request, _ httpapi.None) (none httpapi.None, err error) {
	id := chi.URLParam(r, "id")
	account, err := a.Store.Owner(r.Context(), id)
	if err != nil {
		return none, err
	}
	return none, a.Store.Revoke(r.Context(), account, id, everything)
}

// adminRotate answers POST keys/{id}/rotate, whatever the account.
func (a API) adminRotate(w http.ResponseWriter, r *http.Request) error {
	account, err := a.Store.Owner(r.Context(), chi.URLParam(r, "id"))
	if err != nil {
		return err
	}
	return a.rotateOf(w, r, account, everything)
}
