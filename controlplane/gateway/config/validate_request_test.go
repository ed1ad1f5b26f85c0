package config

import (
	"strings"
	"testing"
)

// checkedDocument is a document with one route whose requests are checked.
func checkedDocument(t *testing.T) Document {
	t.Helper()
	d, _, err := ParseYAML([]byte(validated))
	if err != nil {
		t.Fatal(err)
	}
	if faults := d.Faults(); faults != nil {
		t.Fatal(faults)
	}
	return d
}

// What cannot be checked is named, with the route and the place in its schema.
func TestRequestsThatCannotBeChecked(t *testing.T) {
	t.Parallel()
	body := func(s JSONSchema) func(*Document) {
		return func(d *Document) {
			d.Routes[0].Request.Body.Content = map[string]MediaType{"application/json": {Schema: s}}
		}
	}
	const inBody = "routes[0].request.body.content.application/json.schema"
	for _, c := range []struct {
		name   string
		change func(*Document)
		field  string
		issue  string
	}{
		{"keyword", body(`{"properties":{"a":{"unevaluatedItems":false}}}`), inBody, "at /properties/a has the keyword unevaluatedItems, which is not supported"},
		{"slip", body(`{"minlength":1}`), inBody, `has "minlength", which is no keyword that is known here`},
		{"keyword behind a reference", func(d *Document) {
			d.Products[0].Schemas = map[string]JSONSchema{"Order": `{"items":{"$id":"x"}}`}
		}, inBody, "refers to schemas.Order, which at /items has the keyword $id, which is not supported"},
		{"reference", body(`{"$ref":"#/schemas/Other"}`), inBody, `at /$ref leads to "#/schemas/Other", which is not there`},
		{"remote", body(`{"$ref":"https://example.com/a.json"}`), inBody, "at /$ref is not right"},
		{"circle", body(`{"anyOf":[{"$ref":"#"}]}`), inBody, "leads to itself without going into a member or an element"},
		{"pattern", body(`{"pattern":"(?=a)"}`), inBody, "at /pattern has a pattern that is not supported: it looks ahead or behind, or sets flags"},
		{"many states", body(`{"pattern":"[ab][^z]{30}a[^z]{30}b"}`), inBody, "at /pattern has a pattern that is not supported: it needs too many states"},
		{"type", body(`{"type":"text"}`), inBody, "at /type is not right"},
		{"length", body(`{"maxLength":-1}`), inBody, "at /maxLength is not right"},
		{"no JSON", func(d *Document) {
			d.Routes[0].Request.Body.Content["text/xml"] = MediaType{Schema: `{"type":"object"}`}
		}, "routes[0].request.body.content.text/xml.schema", "is of a body that is not JSON, which is not supported"},
		{"media type", func(d *Document) { d.Routes[0].Request.Body.Content["json; a=b"] = MediaType{} }, "routes[0].request.body.content.json; a=b", "is not a media type, or is given twice"},
		{"no content", func(d *Document) { d.Routes[0].Request.Body.Content = nil }, "routes[0].request.body.content", "is empty"},
		{"variable", func(d *Document) { d.Routes[0].Request.Parameters[0].Name = "key" }, "routes[0].request.parameters[0].name", "is not a variable of the route's path"},
		{"place", func(d *Document) { d.Routes[0].Request.Parameters[1].In = "cookie" }, "routes[0].request.parameters[1].in", "is not a known value"},
		{"style", func(d *Document) { d.Routes[0].Request.Parameters[1].Style = "deepObject" }, "routes[0].request.parameters[1].style", "is not supported in the query"},
		{"object", func(d *Document) { d.Routes[0].Request.Parameters[1].Schema = `{"type":"object"}` }, "routes[0].request.parameters[1].schema", "is an object, which parameters cannot be here"},
		{"header", func(d *Document) {
			d.Routes[0].Request.Parameters[1] = Parameter{Name: "Authorization", In: "header", Schema: "true"}
		}, "routes[0].request.parameters[1].name", "is not a header that is checked here"},
		{"twice", func(d *Document) {
			d.Routes[0].Request.Parameters = append(d.Routes[0].Request.Parameters, d.Routes[0].Request.Parameters[1])
		}, "routes[0].request.parameters[2].name", "is given twice"},
		{"no schema", func(d *Document) { d.Routes[0].Request.Parameters[1].Schema = "" }, "routes[0].request.parameters[1].schema", "is missing"},
		{"no request", func(d *Document) { d.Routes[0].Request = nil }, "routes[0].request", "is missing"},
		{"validate", func(d *Document) { d.Routes[0].Validate = "response" }, "routes[0].validate", "is not a known value"},
		{"name of a schema", func(d *Document) { d.Products[0].Schemas["a/b"] = "true" }, "products[0].schemas.a/b", "is not the name of a schema"},
		{"large", func(d *Document) {
			d.Products[0].Schemas["Large"] = JSONSchema(`{"title":"` + strings.Repeat("a", MaxSchemas) + `"}`)
		}, "products[0].schemas", "make the schemas of the document too large"},
		{"too large a body", func(d *Document) { d.Routes[0].BodyLimit = maxChecked + 1 }, "routes[0].body_limit", "is too large"},
	} {
		d := checkedDocument(t)
		c.change(&d)
		if f := d.Faults(); len(f) != 1 || f[0].Field != c.field || f[0].Issue != c.issue {
			t.Errorf("%s: %+v", c.name, f)
		}
	}
}

// A route that does not ask for checks may say what it likes of its requests.
func TestRequestsAreOnlyCompiledWhereARouteAsks(t *testing.T) {
	t.Parallel()
	d := checkedDocument(t)
	d.Routes[0].Validate, d.Products[0].Schemas = "", map[string]JSONSchema{"Order": `{"unevaluatedItems":true}`}
	if f := d.Faults(); f != nil {
		t.Error(f)
	}
}

// What is remembered of a route does not hide that a schema of its product has
// changed; and its policy then has another key.
func TestChecksGoByTheSchemasOfTheProduct(t *testing.T) {
	t.Parallel()
	d := checkedDocument(t)
	var c Checker
	var m Policies
	if f := c.Faults(d); f != nil {
		t.Fatal(f)
	}
	before, err := m.Policy(d, 0, "", ProvisionalNumbers(d))
	if err != nil {
		t.Fatal(err)
	}
	changed := checkedDocument(t)
	changed.Products[0].Schemas["Order"] = `{"unevaluatedItems":true}`
	if f := c.Faults(changed); len(f) != 1 {
		t.Error(f)
	}
	changed = checkedDocument(t)
	changed.Products[0].Schemas["Order"] = `{"type":"object"}`
	if f := c.Faults(changed); f != nil {
		t.Error(f)
	}
	after, err := m.Policy(changed, 0, "", ProvisionalNumbers(changed))
	if err != nil || before.Routes[0].Key() == after.Routes[0].Key() {
		t.Error(before.Routes[0].Key(), after.Routes[0].Key(), err)
	}
	if before.Routes[0].BodyLimit != DefaultChecked {
		t.Error(before.Routes[0].BodyLimit)
	}
}
