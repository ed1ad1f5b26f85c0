package oauth

import (
	"net/http"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/filters/credentials/keytable"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/platform/http/identity"
	"sluice.dev/sluice/platform/http/paging"
)

// AdminRoutes mounts the routes for operators relative to r, which checks who calls.
// An application without an account belongs to the caller's.
func (s *Service) AdminRoutes(r chi.Router, a httpapi.Adapter) {
	h := handlers{service: s, respond: a}
	r.Post("/apps", httpapi.Handle(a, http.StatusCreated, h.createApp))
	r.Get("/apps", httpapi.Handle(a, http.StatusOK, h.listApps))
	r.Get("/apps/{app}", httpapi.Handle(a, http.StatusOK, h.getApp))
	r.Delete("/apps/{app}", httpapi.Handle(a, http.StatusNoContent, h.revokeApp))
}

// BodyLimit bounds the body by which an operator registers an application, in bytes.
func (AppSpec) BodyLimit() int64 { return 64 << 10 }

// SetHeaders keeps caches from storing the secret.
func (CreatedApp) SetHeaders(h http.Header) { h.Set("Cache-Control", "no-store") }

// createApp answers with the application and its secret.
func (h handlers) createApp(r *http.Request, p AppSpec) (CreatedApp, error) {
	if p.Account == "" {
		p.Account = identity.Account(r.Context())
	}
	return h.service.CreateApp(r.Context(), p)
}

// listApps answers with a page of the applications of one account or of all.
func (h handlers) listApps(r *http.Request, _ httpapi.None) (out paging.List[App], err error) {
	p, details := AppList.Parse(r.URL.Query())
	account := r.URL.Query().Get("account")
	if _, ok := keytable.ParseID(keytable.AccountPrefix, account); account != "" && !ok {
		details = append(details, decision.Detail{Field: "account", Issue: "is not valid", Expected: "the id of an account"})
	}
	if err := apierror.Invalid(details); err != nil {
		return out, err
	}
	return h.service.Page(r.Context(), account, p)
}

// getApp answers with an application that is not revoked, or 404.
func (h handlers) getApp(r *http.Request, _ httpapi.None) (App, error) {
	return h.service.App(r.Context(), chi.URLParam(r, "app"))
}

// revokeApp answers once the application and its tokens have ended.
func (h handlers) revokeApp(r *http.Request, _ httpapi.None) (none httpapi.None, err error) {
	return none, h.service.RevokeApp(r.Context(), chi.URLParam(r, "app"))
}
