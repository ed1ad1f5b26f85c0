package api

import (
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/controlplane/accounts/sessions"
	"sluice.dev/sluice/web/openapi/openapitest"
)

// elsewhere are paths of the document that other packages serve, or the gateway.
func elsewhere(path string) bool {
	return path == "/health" || path == "/openapi.json" || strings.HasPrefix(path, "/oauth/") ||
		strings.HasPrefix(path, "/.well-known/oauth-") || strings.HasPrefix(path, "/docs") || strings.HasPrefix(path, "/llms")
}

func TestPublicRoutesAreDescribed(t *testing.T) {
	t.Parallel()
	h := Public(Config{Sessions: sessions.New(sessions.Config{Issuer: "http://gw", Audience: "http://gw"})})
	var described []string
	for _, op := range openapitest.New(t, OpenAPI).Operations() {
		if _, path, _ := strings.Cut(op, " "); !elsewhere(path) {
			described = append(described, op)
		}
	}
	openapitest.Same(t, openapitest.Served(t, h.(chi.Routes), nil), described)
}
