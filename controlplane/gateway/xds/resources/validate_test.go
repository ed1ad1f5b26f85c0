package resources

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"sluice.dev/sluice/controlplane/gateway/config"
)

// described is a route whose requests are checked, and a product with its schemas.
func described(t *testing.T, checks string) (config.Route, config.Product) {
	t.Helper()
	d, err := config.ParseJSON([]byte(`{"classes":[],"plans":[],"scopes":[],"products":[{"name":"p","upstreams":[],"schemas":{
		"Order":{"type":"object","required":["id"],"additionalProperties":false,"properties":{"id":{"type":"integer"},"lines":{"type":"array","items":{"$ref":"#/schemas/Line"}}}},
		"Line":{"type":"object","properties":{"price":{"type":"number","multipleOf":0.01},"next":{"$ref":"#/schemas/Line"}}}}}],
		"routes":[{"name":"orders","path":"/v1/orders/{id}","auth":["none"],"validate":"` + checks + `","body_limit":2000,"request":{
		"parameters":[{"name":"id","in":"path","schema":{"type":"integer"}},{"name":"limit","in":"query","schema":{"type":"integer","maximum":10}}],
		"body":{"required":true,"content":{"application/json":{"schema":{"$ref":"#/schemas/Order"}}}}}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	return d.Routes[0], d.Products[0]
}

// The filter is in the chain, but a route that does not ask for it has it off; and
// while none asks, what stands there is no program at all.
func TestChecksAreOnWhereARouteAsks(t *testing.T) {
	t.Parallel()
	for checks, want := range map[string]bool{"request": true, "": false} {
		r, p := described(t, checks)
		d := defaults(t)
		r.Product, p.Name, p.Upstreams = "checked", "checked", []config.Upstream{{Address: "127.0.0.1:1"}}
		d.Products, d.Routes = append(d.Products, p), append(d.Routes, r)
		s := build(t, d, Options{Addresses: addresses})
		on := 0
		for _, m := range s.made {
			for _, b := range m.routes {
				if b.route.TypedPerFilterConfig[ValidateFilter] != nil {
					on++
				}
			}
		}
		program := s.Filters[ValidateFilter].TypedConfig.TypeUrl == wasmType
		if program != want || (on > 0) != want || (len(s.Tables) == 1) != want || on > 1 {
			t.Errorf("validate %q: program %v, %d routes, %d tables", checks, program, on, len(s.Tables))
		}
	}
}

// A route whose product's schemas change gets another key, so that a request is held
// against the table of the very route that it matched.
func TestTablesGoByTheKeysOfRoutes(t *testing.T) {
	t.Parallel()
	r, p := described(t, "request")
	d := defaults(t)
	r.Product, p.Name, p.Upstreams = "checked", "checked", []config.Upstream{{Address: "127.0.0.1:1"}}
	d.Products, d.Routes = append(d.Products, p), append(d.Routes, r)
	before := build(t, d, Options{Addresses: addresses})
	p.Schemas = map[string]config.JSONSchema{"Order": `{"type":"object"}`}
	d.Products = append(d.Products[:len(d.Products)-1:len(d.Products)-1], p)
	after := build(t, d, Options{Addresses: addresses})
	if len(before.Tables) != 1 || len(after.Tables) != 1 {
		t.Fatal(before.Tables, after.Tables)
	}
	for key := range before.Tables {
		if after.Tables[key] != nil || !strings.HasPrefix(key, "orders@") {
			t.Errorf("%s is the key of both", key)
		}
	}
}

// What a real Envoy lets through to the product, and what it answers itself.
func TestChecksInARealEnvoy(t *testing.T) {
	t.Parallel()
	r, p := described(t, "request")
	r.Product = "plain"
	free := config.Route{Name: "free", Path: "/v1/free"}
	url := behaviourOf(t, p.Schemas, r, free)
	many := `{"id":1`
	for i := range 100 {
		many += fmt.Sprintf(`,"field%d":1`, i)
	}
	for _, c := range []struct {
		name, path, media, body string
		chunked                 bool
		status                  int
		want                    string
	}{
		{"good", "/v1/orders/7?limit=10", "application/json", `{"id":1,"lines":[{"price":1.25,"next":{"price":2}}]}`, false, 200, " 52 true "},
		{"good and chunked", "/v1/orders/7", "application/json", `{"id":1}`, true, 200, " 8 true "},
		{"bad", "/v1/orders/x?limit=11", "application/json", `{"lines":[{"price":1.255}]}`, false, 400, "path.id query.limit body.lines[0].price body.id"},
		{"bad and chunked", "/v1/orders/7", "application/json", `{"id":1,"lines":[{"next":{"price":"1"}}]}`, true, 400, "body.lines[0].next.price"},
		{"no JSON", "/v1/orders/7", "application/json", `{"id":1`, false, 400, "body"},
		{"none", "/v1/orders/7", "application/json", "", false, 400, "body"},
		{"too large", "/v1/orders/7", "application/json", `{"id":1,"lines":[` + strings.Repeat(" ", 2000) + `]}`, false, 413, ""},
		{"too large and chunked", "/v1/orders/7", "application/json", `{"id":1,"lines":[` + strings.Repeat(" ", 200_000) + `]}`, true, 413, ""},
		{"another type", "/v1/orders/7", "text/plain", `{"id":1}`, false, 415, ""},
		{"a route that does not ask", "/v1/free", "application/json", `{"id":1`, false, 200, " 7 true "},
		{"more than 20", "/v1/orders/7", "application/json", many + "}", false, 400, strings.TrimSpace(fields(19) + " details")},
	} {
		var body io.Reader = strings.NewReader(c.body)
		if c.chunked {
			body = io.MultiReader(body) // whose length nobody knows
		}
		res, text := request(t, "POST", url+c.path, body, "Content-Type", c.media)
		got := text
		if res.StatusCode == 400 {
			got = named(t, text)
		}
		if res.StatusCode != c.status || c.status == 400 && got != c.want || !strings.Contains(got, c.want) || len(text) > 16<<10 {
			t.Errorf("%s: %d %s", c.name, res.StatusCode, text)
		}
		if res.Header.Get("X-Ratelimit-Limit") == "" {
			t.Errorf("%s: no rate headers", c.name)
		}
	}
	if res, text := request(t, "POST", url+"/v1/orders/7", bytes.NewReader([]byte{0x1f, 0x8b}), "Content-Type", "application/json", "Content-Encoding", "gzip"); res.StatusCode != 415 {
		t.Errorf("gzip: %d %s", res.StatusCode, text)
	}
}

// fields are the first n of those that many bodies have and may not.
func fields(n int) (all string) {
	for i := range n {
		all += fmt.Sprintf("body.field%d ", i)
	}
	return strings.TrimSpace(all)
}

// named are the fields that an answer names.
func named(t *testing.T, text string) string {
	t.Helper()
	var e struct {
		Error struct {
			Code    string
			Details []struct{ Field string }
		}
	}
	if err := json.Unmarshal([]byte(text), &e); err != nil || e.Error.Code != "invalid_request" {
		t.Fatal(err, text)
	}
	var list []string
	for _, d := range e.Error.Details {
		list = append(list, d.Field)
	}
	return strings.Join(list, " ")
}

// A route that does not ask for checks runs not one instruction of the filter: with
// a program in its place that traps on such requests, they pass, as often as they
// come. On a route that asks, the same request shows that it would.
func TestRoutesThatDoNotAskNeverEnterTheFilter(t *testing.T) {
	t.Parallel()
	v := crashing(t, "validate", config.Route{Name: "checked", Path: "/checked", Auth: []string{"none"}, Product: "api", Validate: config.ValidateRequest,
		Request: &config.Request{Parameters: []config.Parameter{{Name: "limit", In: "query", Schema: `{"type":"integer"}`}}}})
	for range 50 {
		if res, _ := exchange(t, v.addr, get("/v1/health", 60)); res.StatusCode != 200 {
			t.Fatalf("a route that does not ask: %d", res.StatusCode)
		}
	}
	before := v.hits.Load()
	if res, _ := exchange(t, v.addr, get("/checked", 60)); res.StatusCode != 503 || v.hits.Load() != before {
		t.Errorf("a route that asks: %d", res.StatusCode)
	}
	recovered(t, v.addr, "/checked")
}
