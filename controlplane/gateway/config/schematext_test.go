package config

import (
	"bytes"
	"encoding/json"
	"math/big"
	"reflect"
	"strings"
	"testing"
)

// Schemas that say the same are one text, whatever the order, the white space and
// the way of writing numbers.
func TestSchemasAreCanonical(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		` { "type" : "object", "a" : [1, true, null] } `: `{"a":[1,true,null],"type":"object"}`,
		`{"a":1.0}`: `{"a":1}`, `{"a":1e2}`: `{"a":100}`, `{"a":-0.0}`: `{"a":0}`, `{"a":1.50e1}`: `{"a":15}`, `{"a":0.10}`: `{"a":0.1}`,
		`{"a":1e-2}`: `{"a":0.01}`, `{"a":123e-2}`: `{"a":1.23}`, `{"a":1e300}`: `{"a":1e300}`, `{"a":12e-300}`: `{"a":12e-300}`, `{"a":0.0012}`: `{"a":0.0012}`,
		`{"a":9007199254740993}`: `{"a":9007199254740993}`, `{"a":"\u00e9\/<"}`: `{"a":"é/\u003c"}`, `true`: `true`, `null`: ``,
	} {
		var s JSONSchema
		if err := json.Unmarshal([]byte(in), &s); err != nil || string(s) != want {
			t.Errorf("%s: %q, %v", in, s, err)
		}
	}
	for _, bad := range []string{`1`, `"a"`, `[]`, `{"a":1,"a":2}`, `{"a":{"b":1,"\u0062":2}}`, `{"a":"\u0000"}`, `{"a":1e401}`, `{"a":1e99999999999999999999}`,
		`{"a":` + strings.Repeat("1", maxNumberText+1) + `}`, strings.Repeat(`{"a":`, maxSchemaDepth+1) + "1" + strings.Repeat("}", maxSchemaDepth+1)} {
		var s JSONSchema
		if err := json.Unmarshal([]byte(bad), &s); err == nil {
			t.Errorf("%s: %s", bad, s)
		}
	}
}

// The canonical text says what the text says, and is its own canonical text.
func FuzzJSONSchema(f *testing.F) {
	for _, seed := range []string{`{"a":[1.50,{"b":-2e-7}],"c":"\u00e9"}`, `false`, `{"a":1,"a":1}`, `{"x":1234567890123456789012345}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		var s, again JSONSchema
		if json.Unmarshal(in, &s) != nil || s == "" {
			return
		}
		if err := json.Unmarshal([]byte(s), &again); err != nil || s != again {
			t.Fatalf("%s: %s, %s: %v", in, s, again, err)
		}
		if a, b := byValue(t, in), byValue(t, []byte(s)); !reflect.DeepEqual(a, b) {
			t.Fatalf("%s: %s", in, s)
		}
	})
}

// byValue is a JSON value with its numbers as fractions.
func byValue(t *testing.T, b []byte) any {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return rational(v)
}

func rational(v any) any {
	switch v := v.(type) {
	case json.Number:
		r, _ := new(big.Rat).SetString(string(v))
		return r.RatString()
	case []any:
		for i := range v {
			v[i] = rational(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = rational(v[k])
		}
	}
	return v
}

const validated = `
classes: [{name: all, per_minute: 60}]
plans: [{name: free}]
products:
  - name: shop
    upstreams: [{address: "shop.example:80"}]
    schemas:
      Order: {type: object, required: [price], properties: {price: {type: number, multipleOf: 0.010}}}
routes:
  - name: orders
    path: /orders/{id}
    product: shop
    auth: [key]
    validate: request
    request:
      parameters: [{name: id, in: path, required: true, schema: {type: integer}}, {name: tag, in: query, schema: {type: array}, explode: false}]
      body: {required: true, content: {application/json: {schema: {$ref: "#/schemas/Order"}}}}
`

// A document carries what requests must be: as YAML, as JSON, as the database
// keeps it, and in differences.
func TestDocumentsCarryRequests(t *testing.T) {
	t.Parallel()
	d, _, err := ParseYAML([]byte(validated))
	if err != nil {
		t.Fatal(err)
	}
	js, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	again, err := ParseJSON(js)
	if err != nil || !again.Equal(d) || len(Diff(d, again)) != 0 || !same(d, again) {
		t.Fatal(err, Diff(d, again))
	}
	body := d.Routes[0].Request.Body.Content["application/json"].Schema
	if body != `{"$ref":"#/schemas/Order"}` || d.Routes[0].Request.Parameters[0].Name != "id" || *d.Routes[0].Request.Parameters[1].Explode {
		t.Errorf("%+v", d.Routes[0].Request)
	}
	for field, change := range map[string]func(*Document){
		"routes.orders.validate": func(d *Document) { d.Routes[0].Validate = "" },
		"routes.orders.request": func(d *Document) {
			d.Routes[0].Request = &Request{Parameters: d.Routes[0].Request.Parameters}
		},
		"products.shop.schemas": func(d *Document) { d.Products[0].Schemas = map[string]JSONSchema{"Order": "true"} },
	} {
		changed, err := ParseJSON(js)
		if err != nil {
			t.Fatal(err)
		}
		change(&changed)
		if got := Diff(d, changed); len(got) != 1 || got[0].Path != field || changed.Equal(d) {
			t.Errorf("%s: %+v", field, got)
		}
	}
}
