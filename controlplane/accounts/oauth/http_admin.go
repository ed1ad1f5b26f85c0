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

// bodyLimit bounds the bodies of the operators' routes, in bytes.
const bodyLimit = 64 << 10

// AdminRoutes returns the routes for operators, relative to a router that checks
// who calls. An application without an account belongs to the caller's.
func AdminRoutes(s *Service, a httpapi.Adapter) func(chi.Router) {
	h := handlers{service: s, respond: a}
	return func(r chi.Router) {
		r.Post("/apps", a.Handle(h.createApp))
		r.Get("/apps", a.Handle(h.listApps))
		r.Get("/apps/{app}", a.Handle(h.getApp))
		r.Delete("/apps/{app}", a.Handle(h.revokeApp))
	}
}

// createApp answers 201 with the application and its secret, which nothing on the
// way may keep.
func (h handlers) createApp(w http.ResponseWriter, r *http.Request) error {
	var p AppSpec
	if err := httpapi.Decode(w, r, bodyLimit, &p); err != nil {
		return err
	}
	if p.Account == "" {
		p.Account = identity.Account(r.Context())
	}
	made, err := h.service.CreateApp(r.Context(), p)
	if err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "no-store")
	httpapi.JSON(w, http.StatusCreated, made)
	return nil
}

// listApps answers with a page of the applications of one account or of all.
func (h handlers) listApps(w http.ResponseWriter, r *http.Request) error {
	p, details := paging.Parse(r.URL.Query())
	account := r.URL.Query().Get("account")
	if _, ok := keytable.ParseID(keytable.AccountPrefix, account); account != "" && !ok {
		details = append(details, decision.Detail{Field: "account", Issue: "is not valid", Expected: "the id of an account"})
	}
	if err := apierror.Invalid(details); err != nil {
		return err
	}
	list, total, err := h.service.Apps(r.Context(), account, p)
	return httpapi.Result(w, http.StatusOK, paging.Of(list, p, total), err)
}

// getApp answers with an application that is not revoked, or 404.
func (h handlers) getApp(w http.ResponseWriter, r *http.Request) error {
	a, err := h.service.App(r.Context(), chi.URLParam(r, "app"))
	return httpapi.Result(w, http.StatusOK, a, err)
}

// revokeApp answers 204 once the application and its tokens have ended.
func (h handlers) revokeApp(w http.ResponseWriter, r *http.Request) error {
	if err := h.service.RevokeApp(r.Context(), chi.URLParam(r, "app")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
