package accounts

import (
	"context"
	"net/http"
	"net/netip"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/platform/http/identity"
	"sluice.dev/sluice/platform/http/paging"
)

// API serves accounts, their limits and their people to operators.
type API struct {
	Store   Store
	Respond httpapi.Adapter
	// CheckPassword returns the faults of a new password.
	CheckPassword func(string) []decision.Detail
	// HashPassword returns what is stored of it.
	HashPassword func(context.Context, string) (string, error)
}

// Routes mounts the routes by which a caller manages the allowlist of its own
// account. need gives the middleware that requires a scope.
func (a API) Routes(r chi.Router, need func(scope string) func(http.Handler) http.Handler) {
	r.With(need("users:read")).Get("/v1/account/allowlist", httpapi.Handle(a.Respond, http.StatusOK, a.ownAllowlist))
	r.With(need("users:write")).Put("/v1/account/allowlist", httpapi.Handle(a.Respond, http.StatusOK, a.setOwnAllowlist))
}

// AdminRoutes mounts the routes relative to r, which checks who calls.
func (a API) AdminRoutes(r chi.Router) {
	r.Post("/accounts", httpapi.Handle(a.Respond, http.StatusCreated, a.create))
	r.Get("/accounts", httpapi.Handle(a.Respond, http.StatusOK, a.list))
	r.Get("/accounts/{account}", httpapi.Handle(a.Respond, http.StatusOK, a.get))
	r.Patch("/accounts/{account}", httpapi.Handle(a.Respond, http.StatusOK, a.update))
	r.Post("/accounts/{account}/suspend", httpapi.Handle(a.Respond, http.StatusOK, a.suspend))
	r.Post("/accounts/{account}/resume", httpapi.Handle(a.Respond, http.StatusOK, a.resume))
	r.Get("/accounts/{account}/limits", httpapi.Handle(a.Respond, http.StatusOK, a.limits))
	r.Put("/accounts/{account}/limits/{class}", httpapi.Handle(a.Respond, http.StatusOK, a.setLimit))
	r.Delete("/accounts/{account}/limits/{class}", httpapi.Handle(a.Respond, http.StatusNoContent, a.removeLimit))
	r.Get("/accounts/{account}/allowlist", httpapi.Handle(a.Respond, http.StatusOK, a.allowlist))
	r.Put("/accounts/{account}/allowlist", httpapi.Handle(a.Respond, http.StatusOK, a.setAllowlist))
	r.Post("/accounts/{account}/users", httpapi.Handle(a.Respond, http.StatusCreated, a.addUser))
}

// smallBody bounds the bodies of these routes.
type smallBody struct{}

// BodyLimit is that bound, in bytes.
func (smallBody) BodyLimit() int64 { return 64 << 10 }

type createRequest struct {
	smallBody
	Name string `json:"name"`
	Plan string `json:"plan"`
}

// create answers POST accounts.
func (a API) create(r *http.Request, in createRequest) (Account, error) {
	return a.Store.Create(r.Context(), in.Name, in.Plan)
}

// list answers GET accounts.
func (a API) list(r *http.Request, _ httpapi.None) (out paging.List[Account], err error) {
	p, details := List.Parse(r.URL.Query())
	if err := apierror.Invalid(details); err != nil {
		return out, err
	}
	return a.Store.Page(r.Context(), p)
}

// get answers GET accounts/{account}.
func (a API) get(r *http.Request, _ httpapi.None) (Account, error) {
	return a.Store.Get(r.Context(), chi.URLParam(r, "account"))
}

type updateRequest struct {
	smallBody
	Change
}

// update answers PATCH accounts/{account}: name, plan. The operator flag is
// nothing that HTTP can change.
func (a API) update(r *http.Request, in updateRequest) (Account, error) {
	return a.Store.Update(r.Context(), chi.URLParam(r, "account"), in.Change)
}

type suspendRequest struct {
	smallBody
	Reason string `json:"reason"`
}

// suspend answers POST accounts/{account}/suspend.
func (a API) suspend(r *http.Request, in suspendRequest) (Account, error) {
	return a.Store.Suspend(r.Context(), chi.URLParam(r, "account"), in.Reason)
}

// resume answers POST accounts/{account}/resume.
func (a API) resume(r *http.Request, _ httpapi.None) (Account, error) {
	return a.Store.Resume(r.Context(), chi.URLParam(r, "account"))
}

// limitList is not paged: an account has a limit or two for each rate class.
type limitList struct {
	Data []Limit `json:"data"`
}

// limits answers GET accounts/{account}/limits.
func (a API) limits(r *http.Request, _ httpapi.None) (limitList, error) {
	list, err := a.Store.Limits(r.Context(), chi.URLParam(r, "account"))
	return limitList{list}, err
}

type limitRequest struct {
	smallBody
	PerMinute int `json:"per_minute"`
}

// setLimit answers PUT accounts/{account}/limits/{class}.
func (a API) setLimit(r *http.Request, in limitRequest) (Limit, error) {
	l := Limit{chi.URLParam(r, "class"), in.PerMinute}
	return l, a.Store.SetLimit(r.Context(), chi.URLParam(r, "account"), l)
}

// removeLimit answers DELETE accounts/{account}/limits/{class}.
func (a API) removeLimit(r *http.Request, _ httpapi.None) (none httpapi.None, err error) {
	return none, a.Store.RemoveLimit(r.Context(), chi.URLParam(r, "account"), chi.URLParam(r, "class"))
}

type addUserRequest struct {
	smallBody
	Email    string `json:"email"`
	Role     string `json:"role"`
	Password string `json:"password"`
}

// addUser answers POST accounts/{account}/users: someone who can sign in at once,
// without an invitation.
func (a API) addUser(r *http.Request, in addUserRequest) (User, error) {
	details := append(CheckEmail(NormalEmail(in.Email)), CheckRole(in.Role)...)
	if err := apierror.Invalid(append(details, a.CheckPassword(in.Password)...)); err != nil {
		return User{}, err
	}
	hash, err := a.HashPassword(r.Context(), in.Password)
	if err != nil {
		return User{}, err
	}
	return a.Store.AddUser(r.Context(), chi.URLParam(r, "account"), in.Email, in.Role, hash)
}

type addressList struct {
	Addresses []netip.Prefix `json:"addresses"`
}

type addressesRequest struct {
	smallBody
	Addresses []string `json:"addresses"`
}

// allowlist answers GET accounts/{account}/allowlist.
func (a API) allowlist(r *http.Request, _ httpapi.None) (addressList, error) {
	list, err := a.Store.Allowlist(r.Context(), chi.URLParam(r, "account"))
	return addressList{list}, err
}

// setAllowlist answers PUT accounts/{account}/allowlist.
func (a API) setAllowlist(r *http.Request, in addressesRequest) (addressList, error) {
	list, err := a.Store.SetAllowlist(r.Context(), chi.URLParam(r, "account"), in.Addresses)
	return addressList{list}, err
}

// ownAllowlist answers GET /v1/account/allowlist.
func (a API) ownAllowlist(r *http.Request, _ httpapi.None) (addressList, error) {
	list, err := a.Store.Allowlist(r.Context(), identity.Account(r.Context()))
	return addressList{list}, err
}

// setOwnAllowlist answers PUT /v1/account/allowlist. A list that would shut the
// caller out at once is refused, unless ?force=true.
func (a API) setOwnAllowlist(r *http.Request, in addressesRequest) (out addressList, err error) {
	out.Addresses, err = a.Store.SetOwnAllowlist(r.Context(), identity.Account(r.Context()), in.Addresses, r.URL.Query().Get("force"), identity.ClientAddress(r))
	return out, err
}
