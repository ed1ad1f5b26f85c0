package app

import (
	"encoding/json"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/go-chi/chi/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/web/api"
	"sluice.dev/sluice/web/discovery"
	"sluice.dev/sluice/web/openapi"
	"sluice.dev/sluice/web/openapi/openapitest"
)

// described is the public description under the default configuration.
func described(t *testing.T) (*openapi3.T, config.Document) {
	t.Helper()
	joined, err := openapi.Join(fragments...)
	if err != nil {
		t.Fatal(err)
	}
	d, err := config.Default()
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(joined.Public(d, openapi.Info{Title: "t", Version: "v"}))
	if err != nil {
		t.Fatal(err)
	}
	doc, err := openapi3.NewLoader().LoadFromData(b)
	if err != nil {
		t.Fatal(err)
	}
	return doc, d
}

// surfaces are what a control plane serves, over a database that is not there.
func surfaces(t *testing.T) api.Config {
	t.Helper()
	const nowhere = "postgres://u:p@127.0.0.1:1/none"
	pool, err := pgxpool.New(t.Context(), nowhere)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	set := map[string]string{"SLUICE_DATABASE_URL": nowhere, "SLUICE_IDENTITY_SECRETS": strings.Repeat("0", 64), "SLUICE_SECRETS_KEY": strings.Repeat("0", 64)}
	c, err := newControlPlane(&process{Environment: settings(set), pool: pool, metrics: prometheus.NewRegistry()})
	if err != nil {
		t.Fatal(err)
	}
	all, err := c.surfaces()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// What operators are served is described in web/api/admin.yaml, and the
// other way round.
func TestAdminAPIIsDescribed(t *testing.T) {
	t.Parallel()
	admin, err := adminDescription(true)
	if err != nil {
		t.Fatal(err)
	}
	r, w := chi.NewRouter(), httptest.NewRecorder()
	admin(r, httpapi.Adapter{})
	r.ServeHTTP(w, httptest.NewRequest("GET", "/openapi.json", nil))
	described := openapitest.New(t, w.Body.Bytes()).Operations()
	openapitest.Same(t, openapitest.Served(t, api.Admin(surfaces(t)).(chi.Routes), nil), described)
}

// What is served behind the gateway is described in a fragment, and what the
// fragments of the API describe is served.
func TestPublicAPIIsDescribed(t *testing.T) {
	t.Parallel()
	var described []string
	for _, f := range fragments {
		if f.Product == "api" {
			described = append(described, openapitest.New(t, f.YAML).Operations()...)
		}
	}
	atTheEdge := "GET /health" // which the gateway answers by itself
	described = slices.DeleteFunc(described, func(op string) bool { return op == atTheEdge })
	aside := func(path string) bool { return strings.HasPrefix(path, "/internal/") || discovery.IsPlaceholder(path) }
	served := slices.DeleteFunc(openapitest.Served(t, api.Public(surfaces(t)).(chi.Routes), aside), func(op string) bool {
		return strings.HasPrefix(op, "OPTIONS ") // the questions that browsers ask first
	})
	openapitest.Same(t, served, described)
}

// The description is valid OpenAPI 3.1, and clients can be made from its
// operation ids.
func TestPublicDescriptionIsValid(t *testing.T) {
	t.Parallel()
	doc, _ := described(t)
	if err := doc.Validate(t.Context()); err != nil {
		t.Fatal(err)
	}
	seen := map[string]string{}
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			if op.OperationID == "" || seen[op.OperationID] != "" {
				t.Errorf("%s %s: operation id %q, also of %q", method, path, op.OperationID, seen[op.OperationID])
			}
			seen[op.OperationID] = path
			if len(op.Responses.Map()) < 2 || op.Summary == "" {
				t.Errorf("%s %s: no summary, or only one response", method, path)
			}
			takenByGenerators(t, method+" "+path, op)
		}
	}
}

// takenByGenerators holds an operation to what clients are made of: a tag, and of JSON
// bodies a name and an example.
func takenByGenerators(t *testing.T, of string, op *openapi3.Operation) {
	t.Helper()
	if len(op.Tags) == 0 {
		t.Errorf("%s has no tag", of)
	}
	if op.RequestBody == nil {
		return
	}
	if media := op.RequestBody.Value.Content["application/json"]; media != nil {
		if media.Example == nil {
			t.Errorf("%s: no example of the body: add one to x-examples of its fragment", of)
		}
		if media.Schema.Ref == "" && len(media.Schema.Value.Properties) > 0 {
			t.Errorf("%s: the body has no name", of)
		}
	}
}

// The document of the admin API is one that clients can be made from, too.
func TestAdminDescriptionIsValid(t *testing.T) {
	t.Parallel()
	routes, err := adminDescription(true)
	if err != nil {
		t.Fatal(err)
	}
	r, w := chi.NewRouter(), httptest.NewRecorder()
	routes(r, httpapi.Adapter{})
	r.ServeHTTP(w, httptest.NewRequest("GET", "/openapi.json", nil))
	doc, err := openapi3.NewLoader().LoadFromData(w.Body.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Validate(t.Context()); err != nil {
		t.Fatal(err)
	}
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			takenByGenerators(t, method+" "+path, op)
		}
	}
}

// pages are the operations that are served and not described, for they are pages, or
// only answer 501.
func pages(t *testing.T, d config.Document) map[string][]string {
	t.Helper()
	joined, err := openapi.Join(fragments...)
	if err != nil {
		t.Fatal(err)
	}
	out, routes := map[string][]string{}, config.NewMatcher(d, config.Gateway)
	for path, v := range joined.Paths {
		for verb, op := range v.(map[string]any) {
			o, ok := op.(map[string]any)
			if r, found := routes.Find(strings.ToUpper(verb), path); ok && found && o["x-internal"] == true {
				out[r.Name] = append(out[r.Name], strings.ToUpper(verb))
			}
		}
	}
	return out
}

// Every route of the gateway has an operation for each of its methods, or for
// some where the route is for a whole tree or for all methods.
func TestEveryRouteOfTheGatewayIsDescribed(t *testing.T) {
	t.Parallel()
	doc, d := described(t)
	have := pages(t, d)
	for _, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			x := op.Extensions["x-sluice"].(map[string]any)
			have[x["route"].(string)] = append(have[x["route"].(string)], method)
		}
	}
	for _, r := range d.Routes {
		if r.ListenerName() != config.Gateway {
			continue
		}
		if len(have[r.Name]) == 0 {
			t.Errorf("no operation leads to route %s (%s): describe it in one of the fragments of internal/app/descriptions.go", r.Name, r.Path)
		}
		for _, m := range r.Methods {
			if !strings.HasSuffix(r.Path, "*") && !slices.Contains(have[r.Name], m) {
				t.Errorf("%s %s is a route and not described", m, r.Path)
			}
		}
	}
}
