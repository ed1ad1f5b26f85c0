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
	h := a.Respond.Handle
	r.Post("/v1/auth/keys", h(a.create))
	r.Get("/v1/auth/keys", h(a.list))
	r.Get("/v1/auth/keys/{id}", h(a.get))
	r.Patch("/v1/auth/keys/{id}", h(a.change))
	r.Delete("/v1/auth/keys/{id}", h(a.revoke))
	r.Post("/v1/auth/keys/{id}/rotate", h(a.rotate))
}

// create answers POST /v1/auth/keys: 201 with the record and the key's text.
func (a API) create(w http.ResponseWriter, r *http.Request) error {
	var body createRequest
	if err := httpapi.Decode(w, r, bodyLimit, &body); err != nil {
		return err
	}
	caller, _ := identity.From(r.Context())
	end, details := body.Days.end(a.Store.now())
	return a.make(w, r, body.spec(caller.Account, end, caller.Scopes, MaxKeys, details))
}

// make creates the key of spec and shows it.
func (a API) make(w http.ResponseWriter, r *http.Request, spec Spec) error {
	c, err := a.Store.Create(r.Context(), spec)
	if err != nil {
		return err
	}
	return shown(w, http.StatusCreated, c)
}

// shown answers with a key's text, which nothing on the way may keep.
func shown(w http.ResponseWriter, status int, c Created) error {
	w.Header().Set("Cache-Control", "no-store")
	httpapi.JSON(w, status, c)
	return nil
}

// list answers GET /v1/auth/keys.
func (a API) list(w http.ResponseWriter, r *http.Request) error {
	return a.listOf(w, r, identity.Account(r.Context()))
}

// listOf lists the keys of one account, newest first.
func (a API) listOf(w http.ResponseWriter, r *http.Request, account string) error {
	p, details := paging.Parse(r.URL.Query())
	if err := apierror.Invalid(details); err != nil {
		return err
	}
	list, total, err := a.Store.List(r.Context(), account, p)
	return httpapi.Result(w, http.StatusOK, paging.Of(list, p, total), err)
}

// get answers GET /v1/auth/keys/{id}.
func (a API) get(w http.ResponseWriter, r *http.Request) error {
	k, err := a.Store.Get(r.Context(), identity.Account(r.Context()), chi.URLParam(r, "id"))
	return httpapi.Result(w, http.StatusOK, k, err)
}

// change answers PATCH /v1/auth/keys/{id}: name and rate_limit_per_minute, each
// if given. Scopes and end never change: a key that could grow would surprise
// whoever handed it out.
func (a API) change(w http.ResponseWriter, r *http.Request) error {
	var body changeRequest
	if err := httpapi.Decode(w, r, bodyLimit, &body); err != nil {
		return err
	}
	c, details := body.change()
	if err := apierror.Invalid(details); err != nil {
		return err
	}
	caller, _ := identity.From(r.Context())
	k, err := a.Store.Change(r.Context(), caller.Account, chi.URLParam(r, "id"), c, caller.Scopes)
	return httpapi.Result(w, http.StatusOK, k, err)
}

// revoke answers DELETE /v1/auth/keys/{id}: 204.
func (a API) revoke(w http.ResponseWriter, r *http.Request) error {
	caller, _ := identity.From(r.Context())
	if err := a.Store.Revoke(r.Context(), caller.Account, chi.URLParam(r, "id"), caller.Scopes); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
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
	return shown(w, http.StatusCreated, c)
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

// Validate answers GET /v1/auth/validate for the key that an edge has put into
// the request's identity.
func (a API) Validate(w http.ResponseWriter, r *http.Request) error {
	caller, _ := identity.From(r.Context())
	h, err := a.Store.FindByID(r.Context(), caller.Key)
	if err != nil {
		return err
	}
	httpapi.JSON(w, http.StatusOK, validation{true, h.ID, h.Scopes, h.ExpiresAt})
	return nil
}

// AdminRoutes mounts the routes of operators relative to r, which checks who
// calls.
func (a API) AdminRoutes(r chi.Router) {
	h := a.Respond.Handle
	r.Post("/accounts/{account}/keys", h(a.adminCreate))
	r.Get("/accounts/{account}/keys", h(func(w http.ResponseWriter, r *http.Request) error {
		return a.listOf(w, r, chi.URLParam(r, "account"))
	}))
	r.Delete("/keys/{id}", h(a.adminRevoke))
	r.Post("/keys/{id}/rotate", h(a.adminRotate))
}

// adminCreate answers POST accounts/{account}/keys.
func (a API) adminCreate(w http.ResponseWriter, r *http.Request) error {
	var body adminCreateRequest
	if err := httpapi.Decode(w, r, bodyLimit, &body); err != nil {
		return err
	}
	end, details := body.end(a.Store.now())
	return a.make(w, r, body.spec(chi.URLParam(r, "account"), end, everything, 0, details))
}

// adminRevoke answers DELETE keys/{id}, whatever the account.
func (a API) adminRevoke(w http.ResponseWriter, r *http.Request) error {
	id := chi.URLParam(r, "id")
	account, err := a.Store.Owner(r.Context(), id)
	if err != nil {
		return err
	}
	if err := a.Store.Revoke(r.Context(), account, id, everything); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// adminRotate answers POST keys/{id}/rotate, whatever the account.
func (a API) adminRotate(w http.ResponseWriter, r *http.Request) error {
	account, err := a.Store.Owner(r.Context(), chi.URLParam(r, "id"))
	if err != nil {
		return err
	}
	return a.rotateOf(w, r, account, everything)
}
