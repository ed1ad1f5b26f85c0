package e2e

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
)

// A route that asks for it gets only requests that are as its document says, in
// every version of the document, and only from callers who may call; a document that
// asks what edges cannot check is refused by the name of the keyword.
func TestRequestsAreValidatedAtTheEdge(t *testing.T) {
	t.Parallel()
	s := lentStack(t)
	var asked atomic.Int64
	product := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	t.Cleanup(product.Close)
	schemas := func(price string) map[string]any {
		return map[string]any{
			"upstreams": []any{map[string]any{"address": product.Listener.Addr().(*net.TCPAddr).String()}},
			"schemas": map[string]any{
				"Order": map[string]any{"type": "object", "required": []string{"lines"}, "properties": map[string]any{"lines": map[string]any{"type": "array", "items": map[string]any{"$ref": "#/schemas/Line"}}}},
				"Line":  map[string]any{"type": "object", "required": []string{"price"}, "properties": map[string]any{"price": map[string]any{"type": price}}},
			},
		}
	}
	route := map[string]any{
		"path": "/v1/orders/{id}", "methods": []string{"POST"}, "product": "shop", "auth": []string{"key"}, "validate": "request",
		"request": map[string]any{
			"parameters": []any{
				map[string]any{"name": "id", "in": "path", "schema": map[string]any{"type": "integer"}},
				map[string]any{"name": "limit", "in": "query", "schema": map[string]any{"type": "integer", "maximum": 10}},
			},
			"body": map[string]any{"required": true, "content": map[string]any{"application/json": map[string]any{"schema": map[string]any{"$ref": "#/schemas/Order"}}}},
		},
	}
	s.put(t, "products/shop", schemas("number"))
	s.put(t, "routes/orders", route)
	key := s.dev["SLUICE_API_KEY"]
	order := func(price any) map[string]any {
		return map[string]any{"lines": []any{map[string]any{"price": 1}, map[string]any{"price": price}}}
	}
	is := func(status int, path string, body any, fields ...string) {
		t.Helper()
		eventually(t, path, func() error {
			r, err := try(http.MethodPost, s.url(path), key, body)
			if err != nil {
				return err
			}
			var got []string
			for _, d := range into[envelope](t, r).Error.Details {
				got = append(got, d.Field)
			}
			if r.StatusCode != status || fmt.Sprint(got) != fmt.Sprint(fields) {
				return fmt.Errorf("%d %s", r.StatusCode, r.body)
			}
			return nil
		})
	}
	is(400, "/v1/orders/a?limit=11", order("x"), "path.id", "query.limit", "body.lines[1].price")
	if r, err := try(http.MethodPost, s.url("/v1/orders/a"), "", order("x")); err != nil || r.StatusCode != http.StatusUnauthorized {
		t.Error("somebody without a key is told of more than that:", r.StatusCode, err)
	}
	if n := asked.Load(); n != 0 {
		t.Errorf("the product was asked %d times", n)
	}
	if r := call(t, http.MethodPost, s.url("/v1/orders/7?limit=10"), key, order(2.5)); r.StatusCode != 200 || asked.Load() != 1 {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}

	// Another schema of the product is in force without a change of the route.
	s.put(t, "products/shop", schemas("string"))
	is(400, "/v1/orders/7", order("x"), "body.lines[0].price")
	s.put(t, "products/shop", schemas("number"))
	is(400, "/v1/orders/7", order("x"), "body.lines[1].price")

	known, err := os.ReadFile("../deploy/observability/testdata/envoy_metrics_validate.txt")
	if err != nil {
		t.Fatal(err)
	}
	url, _, _ := strings.Cut(s.dev["SLUICE_ENVOY_ADMIN_URLS"], ",")
	for name := range strings.FieldsSeq(string(known)) {
		if !strings.Contains(scrape(t, url+"/stats/prometheus"), "\n"+name+"{") {
			t.Errorf("a rule may use %s, which Envoy does not show", name)
		}
	}

	refused := schemas("number")
	refused["schemas"].(map[string]any)["Line"] = map[string]any{"unevaluatedProperties": false}
	r := call(t, http.MethodPut, s.dev["SLUICE_ADMIN_URL"]+"/admin/v1/products/shop", s.dev["SLUICE_ADMIN_KEY"], refused)
	if r.StatusCode != http.StatusBadRequest || !strings.Contains(r.body, "the keyword unevaluatedProperties, which is not supported") {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
}
