package descriptions

import (
	"context"
	"net/http"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/platform/http/httpapi"
)

// Service serves descriptions to those who run the platform.
type Service struct {
	Store Store
	// Latest returns the newest configuration.
	Latest func(context.Context) (config.Version, error)
}

// Routes mounts, relative to r, which has let only administrators through:
//
//	GET    products/{name}/description   the OpenAPI document of a product
//	PUT    products/{name}/description   another one: {product, operations, bytes, changed}
//	DELETE products/{name}/description
func (s Service) Routes(r chi.Router, a httpapi.Adapter) {
	r.Get("/products/{name}/description", a.Handle(s.get))
	r.Put("/products/{name}/description", a.Handle(s.put))
	r.Delete("/products/{name}/description", a.Handle(s.delete))
}

func (s Service) get(w http.ResponseWriter, r *http.Request) error {
	text, err := s.Store.Get(r.Context(), chi.URLParam(r, "name"))
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_, err = w.Write(text)
	return err
}

func (s Service) put(w http.ResponseWriter, r *http.Request) error {
	text, err := httpapi.ReadJSON(w, r, 2*MaxBytes)
	if err != nil {
		return err
	}
	v, err := s.Latest(r.Context())
	if err != nil {
		return err
	}
	sum, err := s.Store.Put(r.Context(), v.Document, chi.URLParam(r, "name"), text)
	if err != nil {
		return err
	}
	httpapi.JSON(w, http.StatusOK, sum)
	return nil
}

func (s Service) delete(w http.ResponseWriter, r *http.Request) error {
	if err := s.Store.Delete(r.Context(), chi.URLParam(r, "name")); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}
