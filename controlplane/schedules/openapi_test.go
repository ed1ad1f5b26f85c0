package schedules_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/legacy"
	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/controlplane/respond"
	"sluice.dev/sluice/controlplane/schedules"
)

// contract finds the operation of a request in the document.
var contract = sync.OnceValues(func() (routers.Router, error) {
	doc, err := openapi3.NewLoader().LoadFromData(schedules.OpenAPI)
	if err != nil {
		return nil, err
	}
	return legacy.NewRouter(doc)
})

// checkContract fails the test when an answer is not what the document says.
func checkContract(t testing.TB, r *http.Request, w *httptest.ResponseRecorder) {
	t.Helper()
	router, err := contract()
	if err != nil {
		t.Fatal(err)
	}
	route, params, err := router.FindRoute(r)
	if err != nil {
		t.Fatalf("%s %s is not in the document: %v", r.Method, r.URL.Path, err)
	}
	in := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{Request: r, PathParams: params, Route: route},
		Status:                 w.Code, Header: w.Header(), Body: io.NopCloser(strings.NewReader(w.Body.String())),
	}
	if err := openapi3filter.ValidateResponse(t.Context(), in); err != nil {
		t.Errorf("%s %s: %d is not as documented: %v", r.Method, r.URL.Path, w.Code, err)
	}
}

// Every route has its operation, and every operation its route.
func TestDocumentHasTheRoutesAndNoOthers(t *testing.T) {
	t.Parallel()
	doc, err := openapi3.NewLoader().LoadFromData(schedules.OpenAPI)
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Validate(t.Context()); err != nil {
		t.Error(err)
	}
	documented, served := map[string]bool{}, map[string]bool{}
	for path, item := range doc.Paths.Map() {
		for method := range item.Operations() {
			documented[method+" "+path] = true
		}
	}
	r := chi.NewRouter()
	schedules.New(schedules.Config{}).Routes(r, respond.Adapter{})
	err = chi.Walk(r, func(method, route string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
		served[method+" "+strings.TrimSuffix(route, "/")] = true
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for op := range documented {
		if !served[op] {
			t.Errorf("%s is documented and not served", op)
		}
	}
	for op := range served {
		if !documented[op] {
			t.Errorf("%s is served and not documented", op)
		}
	}
}
