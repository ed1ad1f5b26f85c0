package accounts

import (
	"context"
	"net/http"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/platform/http/paging"
)

// bodyLimit bounds the bodies of these routes, in bytes.
const bodyLimit = 64 << 10

// API serves accounts, their limits and their people to operators.
type API struct {
	Store   Store
	Respond httpapi.Adapter
	// CheckPassword returns the faults of a new password.
	CheckPassword func(string) []decision.Detail
	// HashPassword returns what is stored of it.
	HashPassword func(context.Context, string) (string, error)
}

// AdminRoutes mounts the routes relative to r, which checks who calls.
func (a API) AdminRoutes(r chi.Router) {
	h := a.Respond.Handle
	r.Post("/accounts", h(a.create))
	r.Get("/accounts", h(a.list))
	r.Get("/accounts/{account}", h(a.get))
	r.Patch("/accounts/{account}", h(a.update))
	r.Get("/accounts/{account}/limits", h(a.limits))
	r.Put("/accounts/{account}/limits/{class}", h(a.setLimit))
	r.Delete("/accounts/{account}/limits/{class}", h(a.removeLimit))
	r.Get("/accounts/{account}/allowlist", h(a.allowlist))
	r.Put("/accounts/{account}/allowlist", h(a.setAllowlist))
	r.Post("/accounts/{account}/users", h(a.addUser))
}

// create answers POST accounts: 201 with the account.
func (a API) create(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Name string `json:"name"`
		Plan string `json:"plan"`
	}
	if err := httpapi.Decode(w, r, bodyLimit, &body); err != nil {
		return err
	}
	made, err := a.Store.Create(r.Context(), body.Name, body.Plan)
	return httpapi.Result(w, http.StatusCreated, made, err)
}

// list answers GET accounts: newest first.
func (a API) list(w http.ResponseWriter, r *http.Request) error {
	p, details := paging.Parse(r.URL.Query())
	if err := apierror.Invalid(details); err != nil {
		return err
	}
	list, total, err := a.Store.List(r.Context(), p)
	return httpapi.Result(w, http.StatusOK, paging.Of(list, p, total), err)
}

// get answers GET accounts/{account}.
func (a API) get(w http.ResponseWriter, r *http.Request) error {
	got, err := a.Store.Get(r.Context(), chi.URLParam(r, "account"))
	return httpapi.Result(w, http.StatusOK, got, err)
}

// update answers PATCH accounts/{account}: name, plan. The operator flag is
// nothing that HTTP can change.
func (a API) update(w http.ResponseWriter, r *http.Request) error {
	var c Change
	if err := httpapi.Decode(w, r, bodyLimit, &c); err != nil {
		return err
	}
	got, err := a.Store.Update(r.Context(), chi.URLParam(r, "account"), c)
	return httpapi.Result(w, http.StatusOK, got, err)
}

// limitList is not paged: an account has a limit or two for each rate class.
type limitList struct {
	Data []Limit `json:"data"`
}

// limits answers GET accounts/{account}/limits.
func (a API) limits(w http.ResponseWriter, r *http.Request) error {
	list, err := a.Store.Limits(r.Context(), chi.URLParam(r, "account"))
	return httpapi.Result(w, http.StatusOK, limitList{list}, err)
}

// setLimit answers PUT accounts/{account}/limits/{class}.
func (a API) setLimit(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		PerMinute int `json:"per_minute"`
	}
	if err := httpapi.Decode(w, r, bodyLimit, &body); err != nil {
		return err
	}
	l := Limit{chi.URLParam(r, "class"), body.PerMinute}
	if err := a.Store.SetLimit(r.Context(), chi.URLParam(r, "account"), l); err != nil {
		return err
	}
	httpapi.JSON(w, http.StatusOK, l)
	return nil
}

// removeLimit answers DELETE accounts/{account}/limits/{class}.
func (a API) removeLimit(w http.ResponseWriter, r *http.Request) error {
	if err := a.Store.RemoveLimit(r.Context(), chi.URLParam(r, "account"), chi.URLParam(r, "class")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// addUser answers POST accounts/{account}/users: someone who can sign in at once,
// without an invitation.
func (a API) addUser(w http.ResponseWriter, r *http.Request) error {
	var body struct {
		Email    string `json:"email"`
		Role     string `json:"role"`
		Password string `json:"password"`
	}
	if err := httpapi.Decode(w, r, bodyLimit, &body); err != nil {
		return err
	}
	details := append(CheckEmail(NormalEmail(body.Email)), CheckRole(body.Role)...)
	if err := apierror.Invalid(append(details, a.CheckPassword(body.Password)...)); err != nil {
		return err
	}
	hash, err := a.HashPassword(r.Context(), body.Password)
	if err != nil {
		return err
	}
	made, err := a.Store.AddUser(r.Context(), chi.URLParam(r, "account"), body.Email, body.Role, hash)
	return httpapi.Result(w, http.StatusCreated, made, err)
}
