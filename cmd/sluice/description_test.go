package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"sluice.dev/sluice/controlplane/config"
	"sluice.dev/sluice/controlplane/openapi"
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
		}
	}
}

// Every route of the gateway has an operation for each of its methods, or for
// some where the route is for a whole tree or for all methods.
func TestEveryRouteOfTheGatewayIsDescribed(t *testing.T) {
	t.Parallel()
	doc, d := described(t)
	have := map[string][]string{}
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
			t.Errorf("no operation leads to route %s (%s): describe it in one of the fragments of cmd/sluice/description.go", r.Name, r.Path)
		}
		for _, m := range r.Methods {
			if !strings.HasSuffix(r.Path, "*") && !slices.Contains(have[r.Name], m) {
				t.Errorf("%s %s is a route and not described", m, r.Path)
			}
		}
	}
}
