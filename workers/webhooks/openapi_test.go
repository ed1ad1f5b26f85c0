package webhooks_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/web/openapi/openapitest"
	"sluice.dev/sluice/workers/webhooks"
)

// checkContract fails the test when an answer is not what the document says.
func checkContract(t testing.TB, r *http.Request, w *httptest.ResponseRecorder) {
	t.Helper()
	if !internal(r.URL.Path) {
		openapitest.New(t, webhooks.OpenAPI).Check(t, r, w.Code, w.Header(), w.Body.Bytes())
	}
}

// internal paths are not part of the public API.
func internal(path string) bool { return strings.HasPrefix(path, "/internal/") }

// Every route has its operation, and every operation its route.
func TestDocumentHasTheRoutesAndNoOthers(t *testing.T) {
	t.Parallel()
	r := chi.NewRouter()
	webhooks.New(webhooks.Config{}).Routes(r, httpapi.Adapter{})
	openapitest.Same(t, openapitest.Served(t, r, internal), openapitest.New(t, webhooks.OpenAPI).Operations())
}
