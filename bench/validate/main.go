// Command validate measures what it costs to check requests at the edge: CPU time
// of an Envoy for a POST of JSON to a route with validate: request, beside the same
// route without, with bodies of several sizes, and for a GET whose parameters are
// checked. Both routes are on one edge and lead to one upstream; turns alternate,
// and the median of the differences is taken. Run it with
// `.sluice/bin/withpg go run ./bench/validate`, as `make bench` does.
package main

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"sluice.dev/sluice/bench/load"
	"sluice.dev/sluice/bench/testbed"
	"sluice.dev/sluice/e2e/harness"
)

var (
	rounds = flag.Int("rounds", 7, "alternating turns")
	turn   = flag.Duration("turn", 700*time.Millisecond, "length of a turn")
	conns  = flag.Int("connections", 8, "connections of the closed loop")
)

func main() {
	flag.Parse()
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench/validate:", err)
		os.Exit(1)
	}
}

// object is a JSON object.
type object = map[string]any

// order is what bodies must be: records of eight fields, with formats, patterns,
// bounds and a union, as APIs have them.
var order = object{"type": "object", "required": []string{"customer", "lines"}, "additionalProperties": false, "properties": object{
	"customer": object{"type": "string", "format": "uuid"},
	"lines": object{"type": "array", "minItems": 1, "items": object{"type": "object", "required": []string{"sku", "quantity", "price"}, "additionalProperties": false, "properties": object{
		"sku":      object{"type": "string", "pattern": "^[A-Z]{3}-[0-9]{4}$"},
		"quantity": object{"type": "integer", "minimum": 1, "maximum": 1000},
		"price":    object{"type": "number", "multipleOf": 0.01},
		"currency": object{"enum": []string{"EUR", "USD", "GBP"}},
		"note":     object{"type": []string{"string", "null"}, "maxLength": 200},
		"shipped":  object{"type": "string", "format": "date-time"},
		"gift":     object{"type": "boolean"},
		"size":     object{"oneOf": []object{{"type": "integer"}, {"type": "string", "maxLength": 3}}},
	}}},
}}

// body is an order of about n bytes.
func body(n int) string {
	const line = `{"sku":"ABC-1234","quantity":12,"price":19.99,"currency":"EUR","note":"leave it at the door, please","shipped":"2026-11-22T13:00:00Z","gift":false,"size":"XL"}`
	lines := []string{line}
	for len(lines)*(len(line)+1) < n-100 {
		lines = append(lines, line)
	}
	return `{"customer":"0d3f1f0e-5a3c-4a5e-8d3c-1a2b3c4d5e6f","lines":[` + strings.Join(lines, ",") + `]}`
}

func run() error {
	b, err := testbed.Start()
	if err != nil {
		return err
	}
	defer b.Close()
	if err := configure(b); err != nil {
		return err
	}
	fmt.Println("| request | CPU without | with validate | added | added per KB |\n| --- | --- | --- | --- | --- |")
	for _, n := range []int{0, 1 << 10, 4 << 10, 16 << 10} {
		if err := compare(b, n); err != nil {
			return err
		}
	}
	return nil
}

// configure adds the two routes.
func configure(b *testbed.Bed) error {
	put := func(path string, value object) error {
		a, err := harness.Ask(context.Background(), http.DefaultClient, http.MethodPut, b.Dev["SLUICE_ADMIN_URL"]+"/admin/v1/"+path, b.Dev["SLUICE_ADMIN_KEY"], value)
		if err == nil && a.StatusCode/100 != 2 {
			err = fmt.Errorf("PUT %s: %d %s", path, a.StatusCode, a.Text)
		}
		return err
	}
	parameters := []object{
		{"name": "limit", "in": "query", "schema": object{"type": "integer", "minimum": 1, "maximum": 100}},
		{"name": "id", "in": "path", "schema": object{"type": "string", "pattern": "^[a-z]+$"}},
	}
	for name, validate := range map[string]string{"checked": "request", "unchecked": ""} {
		for kind, request := range map[string]object{
			"post": {"body": object{"required": true, "content": object{"application/json": object{"schema": object{"$ref": "#/schemas/Order"}}}}},
			"get":  {"parameters": parameters},
		} {
			if err := put("products/orders", object{"upstreams": []object{{"address": b.Upstream}}, "schemas": object{"Order": order}}); err != nil {
				return err
			}
			route := object{"path": "/v1/" + kind + "/" + name + "/{id}", "methods": []string{strings.ToUpper(kind)}, "auth": []string{"key"}, "product": "orders", "request": request}
			if validate != "" {
				route["validate"] = validate
			}
			if err := put("routes/"+name+"."+kind, route); err != nil {
				return err
			}
		}
	}
	return nil
}

// compare prints the row of bodies of about n bytes; 0: of a GET.
func compare(b *testbed.Bed, n int) error {
	kind, name, text := "get", "GET, two parameters", ""
	if n > 0 {
		text = body(n)
		kind, name = "post", fmt.Sprintf("POST, %.1f KB", float64(len(text))/1000)
	}
	var list []*testbed.Subject
	for _, route := range []string{"unchecked", "checked"} {
		s := &testbed.Subject{Name: route, PID: b.Edge.PID, Request: b.Edge.Request}
		s.Request.Path, s.Request.JSON = "/v1/"+kind+"/"+route+"/abc?limit=10", text
		if err := harness.Until(func() error { return load.Times(s.Request, 1) }); err != nil {
			return err
		}
		list = append(list, s)
	}
	if err := testbed.Alternate(*rounds, *conns, *turn, list); err != nil {
		return err
	}
	added := load.Median(testbed.Less(list[1].CPU, list[0].CPU))
	perKB := "–"
	if n > 0 {
		perKB = fmt.Sprintf("%.1f µs", added/float64(len(text))*1000)
	}
	fmt.Printf("| %s | %.0f µs | %.0f µs | %.1f µs | %s |\n", name, load.Median(list[0].CPU), load.Median(list[1].CPU), added, perKB)
	return nil
}
