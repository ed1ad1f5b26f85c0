package media

import (
	"net/http"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/controlplane"
	"sluice.dev/sluice/controlplane/respond"
	"sluice.dev/sluice/filters/decision"
)

// capabilities are the surfaces that take a binary body (spec, "Chat runtime") and
// the engine that each of them needs. The product brings none of these engines:
// it says so, and a product that has them takes these routes over in the
// gateway's configuration.
var capabilities = map[string]string{
	"/v1/transcribe": "speech recognition",
	"/v1/captions":   "speech recognition",
	"/v1/voice":      "speech synthesis",
	"/v1/vision":     "image recognition",
	"/v1/render":     "rendering",
	"/v1/transcode":  "transcoding",
	"/v1/mux":        "multiplexing",
}

// capabilityRoutes adds the surfaces. They answer before a body is read: nobody
// uploads a film to learn that there is no engine.
func capabilityRoutes(r chi.Router, a respond.Adapter) {
	for path, engine := range capabilities {
		r.Post(path, a.Handle(func(http.ResponseWriter, *http.Request) error {
			return controlplane.Errorf(decision.NotImplemented, "There is no engine for %s here.", engine)
		}))
	}
}
