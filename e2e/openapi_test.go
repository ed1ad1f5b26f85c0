package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/legacy"
)

// described is a surface with the OpenAPI document that it serves itself.
type described struct {
	base, credential string
	doc              *openapi3.T
	router           routers.Router
}

func (s *stack) described(t *testing.T, base, document, credential string) described {
	t.Helper()
	r := call(t, http.MethodGet, base+document, credential, nil)
	wantStatus(t, r, http.StatusOK)
	doc, err := openapi3.NewLoader().LoadFromData([]byte(r.body))
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Validate(t.Context()); err != nil || doc.OpenAPI != "3.1.0" {
		t.Fatal(doc.OpenAPI, err)
	}
	for _, schema := range doc.Components.Schemas {
		for _, p := range schema.Value.Properties {
			if v := p.Value; v.Type == nil && v.AllOf == nil && v.AnyOf == nil && v.OneOf == nil && v.Const == nil {
				v.Type = &openapi3.Types{"object", "array", "string", "number", "boolean", "null"} // the validator does not take null for anything
			}
		}
	}
	doc.Servers = nil
	router, err := legacy.NewRouter(doc)
	if err != nil {
		t.Fatal(err)
	}
	return described{base, credential, doc, router}
}

// check makes a request and fails the test when the answer is not as described.
func (d described) check(t *testing.T, method, path, credential string, body any) response {
	t.Helper()
	r := call(t, method, d.base+path, credential, body)
	u, err := url.Parse(path)
	if err != nil {
		t.Fatal(err)
	}
	asked := &http.Request{Method: method, URL: u, Header: http.Header{}}
	route, params, err := d.router.FindRoute(asked)
	if err != nil {
		t.Errorf("%s %s: %v", method, path, err)
		return r
	}
	in := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{Request: asked, PathParams: params, Route: route},
		Status:                 r.StatusCode, Header: r.Header, Body: io.NopCloser(bytes.NewReader([]byte(r.body))),
		Options: &openapi3filter.Options{IncludeResponseStatus: true, SchemaValidationOptions: []openapi3.SchemaValidationOption{openapi3.EnableJSONSchema2020()}},
	}
	if err := openapi3filter.ValidateResponse(t.Context(), in); err != nil {
		t.Errorf("%s %s: %d is not as described: %v", method, path, r.StatusCode, err)
	}
	return r
}

// readable are the operations that read and want nothing in their path.
func (d described) readable() (paths []string) {
	for path, item := range d.doc.Paths.Map() {
		if item.Get != nil && !strings.Contains(path, "{") {
			paths = append(paths, path)
		}
	}
	return paths
}

// Both APIs answer as they describe themselves, with a credential and without.
func TestAPIsAnswerAsTheyAreDescribed(t *testing.T) {
	t.Parallel()
	s := theStack(t)
	openapi3filter.RegisterBodyDecoder("text/html", openapi3filter.PlainBodyDecoder)
	openapi3filter.RegisterBodyDecoder("application/schema+json", openapi3filter.JSONBodyDecoder)
	public := s.described(t, s.dev["SLUICE_GATEWAY_URL"], "/openapi.json", "")
	admin := s.described(t, s.dev["SLUICE_ADMIN_URL"], "/admin/v1/openapi.json", s.dev["SLUICE_ADMIN_KEY"])
	for _, path := range public.readable() {
		for _, credential := range []string{"", s.dev["SLUICE_API_KEY"], s.dev["SLUICE_SESSION_TOKEN"]} {
			public.check(t, http.MethodGet, path, credential, nil)
		}
	}
	for _, path := range admin.readable() {
		wantStatus(t, admin.check(t, http.MethodGet, path, admin.credential, nil), http.StatusOK)
		if path != "/health" {
			wantStatus(t, admin.check(t, http.MethodGet, path, s.dev["SLUICE_API_KEY"], nil), http.StatusForbidden)
		}
	}
	for _, path := range []string{"classes/default", "plans/local", "products/media", "routes/streams.list", "config/versions/1", "routes/none"} {
		admin.check(t, http.MethodGet, "/admin/v1/"+path, admin.credential, nil)
	}
	admin.check(t, http.MethodPut, "/admin/v1/routes/described?dry_run=true", admin.credential, map[string]any{"path": "/v1/described", "auth": []string{"none"}, "respond": map[string]any{"status": 200}})
	admin.check(t, http.MethodPut, "/admin/v1/routes/described", admin.credential, map[string]any{"path": "described"})
	if n := len(public.doc.Paths.Map()) + len(admin.doc.Paths.Map()); n < 80 {
		t.Errorf("only %d paths are described", n)
	}
	if op := public.doc.Paths.Find("/v1/streams").Get; fmt.Sprint(op.Extensions["x-sluice"]) != "map[product:media route:streams.list scope:streams:read]" {
		t.Errorf("%v", op.Extensions)
	}
}
