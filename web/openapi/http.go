package openapi

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"sync"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/platform/http/httpapi"
)

// Service describes the public API by the configuration in force.
type Service struct {
	// Latest returns the configuration in force.
	Latest func(context.Context) (config.Version, error)
	Joined *Document
	// Imported returns the descriptions of other products, and a number that is another
	// one when they have changed. nil: there are none.
	Imported func(context.Context) ([]Imported, int64, error)
	Info     Info
	Log      *slog.Logger // nil: slog.Default

	mu       sync.Mutex
	version  int64
	imported int64
	text     []byte
}

// Text returns the description of the newest configuration as JSON. It is made
// once for each version and each change of what was imported. The caller must not
// change it.
func (s *Service) Text(ctx context.Context) ([]byte, error) {
	v, err := s.Latest(ctx)
	if err != nil {
		return nil, err
	}
	var list []Imported
	var number int64
	if s.Imported != nil {
		if list, number, err = s.Imported(ctx); err != nil {
			return nil, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.text == nil || s.version != v.Number || s.imported != number {
		b, err := json.Marshal(s.joined(list).Public(v.Document, s.Info))
		if err != nil {
			return nil, err
		}
		s.version, s.imported, s.text = v.Number, number, b
	}
	return s.text, nil
}

// joined is the description of everything; what cannot be read is logged.
func (s *Service) joined(list []Imported) *Document {
	if len(list) == 0 {
		return s.Joined
	}
	d, err := s.Joined.With(list)
	if err != nil {
		log := s.Log
		if log == nil {
			log = slog.Default()
		}
		log.Error("describe products", "cause", err)
	}
	return d
}

// Routes mounts GET /openapi.json, which is open to everyone, pages of other
// origins included.
func (s *Service) Routes(r chi.Router, a httpapi.Adapter) {
	r.Get("/openapi.json", a.Handle(func(w http.ResponseWriter, r *http.Request) error {
		b, err := s.Text(r.Context())
		if err != nil {
			return err
		}
		httpapi.Document(w, r, "application/json", b)
		return nil
	}))
}
