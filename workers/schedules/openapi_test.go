package schedules_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/web/openapi/openapitest"
	"sluice.dev/sluice/workers/schedules"
)

// checkContract fails the test when an answer is not what the document says.
func checkContract(t testing.TB, r *http.Request, w *httptest.ResponseRecorder) {
	t.Helper()
	openapitest.New(t, schedules.OpenAPI).Check(t, r, w.Code, w.Header(), w.Body.Bytes())
}

// Every route has its operation, and every operation its route.
func TestDocumentHasTheRoutesAndNoOthers(t *testing.T) {
	t.Parallel()
	r := chi.NewRouter()
	schedules.New(schedules.Config{}).Routes(r, httpapi.Adapter{})
	openapitest.Same(t, openapitest.Served(t, r, nil), openapitest.New(t, schedules.OpenAPI).Operations())
}
