package media_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/media"
)

// What is served is documented, and what is documented is served.
func TestEveryRouteIsDocumented(t *testing.T) {
	t.Parallel()
	var served []string
	routes := media.New(media.Config{}).(chi.Routes)
	err := chi.Walk(routes, func(method, route string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
		if !strings.HasPrefix(route, "/internal/") {
			served = append(served, method+" "+route)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	doc, err := openapi3.NewLoader().LoadFromData(media.OpenAPI)
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Validate(t.Context()); err != nil {
		t.Fatal(err)
	}
	var documented []string
	for path, item := range doc.Paths.Map() {
		for method := range item.Operations() {
			documented = append(documented, method+" "+path)
		}
	}
	for _, r := range served {
		if !slices.Contains(documented, r) {
			t.Errorf("%s is served, not documented", r)
		}
	}
	for _, r := range documented {
		if !slices.Contains(served, r) {
			t.Errorf("%s is documented, not served", r)
		}
	}
}

// Clients are made from operation ids: they must be there, and be different.
func TestOperationsHaveNames(t *testing.T) {
	t.Parallel()
	doc, err := openapi3.NewLoader().LoadFromData(media.OpenAPI)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]string{}
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			if op.OperationID == "" || seen[op.OperationID] != "" {
				t.Errorf("%s %s: operation id %q, also of %q", method, path, op.OperationID, seen[op.OperationID])
			}
			seen[op.OperationID] = path
		}
	}
}
