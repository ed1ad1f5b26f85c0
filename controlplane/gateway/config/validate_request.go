package config

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/filters/schema"
	"sluice.dev/sluice/filters/schema/compile"
)

const (
	// DefaultChecked is how much of a body an edge holds where it checks it.
	DefaultChecked = 1 << 20
	// MaxSchemas bounds the text of all schemas of a document, in bytes.
	MaxSchemas = 4 << 20
	// maxSchemaNames bounds the schemas of one product.
	maxSchemaNames = 5000
	maxParameters  = 100
	maxContents    = 20
)

var (
	schemaName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,200}$`)
	mediaForm  = regexp.MustCompile(`^(\*/\*|[a-z0-9!#$&^_.+-]+/(\*|[a-z0-9!#$&^_.+-]+))$`)
)

// unchecked are headers that others than the product read.
var unchecked = []string{"accept", "content-type", "content-length", "content-encoding", "authorization", "host"}

// Checks reports whether edges hold requests of r to a description.
func (r Route) Checks() bool { return r.Validate == ValidateRequest && r.Request != nil }

// ChecksBody reports whether edges hold bodies of r to one.
func (r Route) ChecksBody() bool { return r.Checks() && r.Request.Body != nil }

// RequestTable compiles what requests of r must be, where r leads to a product with
// the given schemas, for the filter that checks it; nil: r asks for no checks.
// Validate has found what it fails on.
func RequestTable(r Route, schemas map[string]JSONSchema) ([]byte, error) {
	if !r.Checks() {
		return nil, nil
	}
	table, faults := tableOf("", r, schemas)
	if faults != nil {
		return nil, fmt.Errorf("route %s: %s %s", r.Name, faults[0].At, faults[0].Issue)
	}
	return table, nil
}

// RequestFaults is what Faults would find in what r asks of its requests, where its
// product has the given schemas, and the bytes of their table.
func RequestFaults(r Route, schemas map[string]JSONSchema) (size int, details []decision.Detail) {
	v := &validator{}
	v.schemas("schemas", schemas)
	if most := maxBody(r); r.BodyLimit > most {
		v.add("body_limit", "is too large", fmt.Sprintf("at most %d bytes", most))
	}
	size = v.request("route", r, schemas)
	return size, v.details
}

// ChecksSize is what the checks of d's requests take of what a document may have:
// bytes of schemas and of tables. d is without faults.
func (d Document) ChecksSize() (schemas, tables int) {
	of := map[string]map[string]JSONSchema{}
	for _, p := range d.Products {
		of[p.Name] = p.Schemas
		for _, s := range p.Schemas {
			schemas += len(s)
		}
	}
	for _, r := range d.Routes {
		if table, err := RequestTable(r, of[r.Product]); err == nil {
			tables += len(table)
		}
	}
	return schemas, tables
}

func tableOf(f string, r Route, schemas map[string]JSONSchema) ([]byte, []compile.Fault) {
	in := compile.Request{}
	pattern, _ := ParsePath(r.Path)
	for i, p := range r.Request.Parameters {
		q := compile.Parameter{At: fmt.Sprintf("%s.parameters[%d].schema", f, i), Name: p.Name, In: p.In, Required: p.Required, Schema: string(p.Schema), Between: ','}
		switch p.Style {
		case "spaceDelimited":
			q.Between = ' '
		case "pipeDelimited":
			q.Between = '|'
		}
		q.Explode = p.In == compile.Query && (p.Style == "" || p.Style == "form")
		if p.Explode != nil {
			q.Explode = *p.Explode && p.In == compile.Query
		}
		switch p.In {
		case compile.Header:
			q.Name = strings.ToLower(p.Name)
		case compile.Path:
			q.Required = true
			q.Segment = slices.IndexFunc(pattern, func(s Segment) bool { return s.Kind == Variable && s.Text == p.Name })
		}
		in.Parameters = append(in.Parameters, q)
	}
	if b := r.Request.Body; b != nil {
		in.Body = &compile.Body{Required: b.Required}
		for _, media := range mediaTypes(b.Content) {
			in.Body.Contents = append(in.Body.Contents, compile.Content{At: f + ".body.content." + media + ".schema", Type: strings.ToLower(media), Schema: string(b.Content[media].Schema)})
		}
	}
	return compile.Table(in, func(name string) string { return string(schemas[name]) })
}

// mediaTypes are those of a body, with ranges behind the others.
func mediaTypes(content map[string]MediaType) []string {
	list := slices.Sorted(maps.Keys(content))
	slices.SortStableFunc(list, func(a, b string) int { return strings.Count(a, "*") - strings.Count(b, "*") })
	return list
}

// request checks what a route says of its requests. schemas are those of its
// product; the size of the route's table is returned.
func (v *validator) request(f string, r Route, schemas map[string]JSONSchema) (size int) {
	v.oneOf(f+".validate", r.Validate, "", ValidateRequest)
	if r.Validate == ValidateRequest && r.Request == nil {
		v.add(f+".request", "is missing", "parameters or a body, which validate asks to be checked")
	}
	if !r.Checks() {
		return 0
	}
	before := len(v.details)
	f += ".request"
	if v.atMost(f+".parameters", len(r.Request.Parameters), maxParameters) {
		v.parameters(f, r)
	}
	if r.Request.Body != nil {
		v.body(f+".body", *r.Request.Body)
	}
	if len(v.details) > before {
		return 0
	}
	table, faults := tableOf(f, r, schemas)
	for _, fault := range faults {
		at := fault.At
		if at == "" {
			at = f
		}
		v.add(at, fault.Issue, fault.Expected)
	}
	return len(table)
}

func (v *validator) parameters(f string, r Route) {
	pattern, _ := ParsePath(r.Path)
	seen := map[string]bool{}
	for i, p := range r.Request.Parameters {
		at := fmt.Sprintf("%s.parameters[%d]", f, i)
		v.oneOf(at+".in", p.In, compile.Path, compile.Query, compile.Header)
		name := p.Name
		switch {
		case name == "" || len(name) > 200:
			v.add(at+".name", "is not a name", "1 to 200 bytes")
		case p.In == compile.Path && !slices.ContainsFunc(pattern, func(s Segment) bool { return s.Kind == Variable && s.Text == name }):
			v.add(at+".name", "is not a variable of the route's path", "such as {"+name+"} in the path")
		case p.In == compile.Header:
			if name = strings.ToLower(name); !plainHeader(name) || slices.Contains(unchecked, name) {
				v.add(at+".name", "is not a header that is checked here", "letters, digits and dashes; media types stand under body.content")
			}
		}
		if seen[p.In+" "+name] {
			v.add(at+".name", "is given twice", "")
		}
		seen[p.In+" "+name] = true
		v.style(at, p)
		if p.Schema == "" {
			v.add(at+".schema", "is missing", "a JSON Schema")
		}
	}
}

func plainHeader(name string) bool {
	return !strings.ContainsFunc(name, func(c rune) bool { return (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' })
}

func (v *validator) style(at string, p Parameter) {
	known := []string{"", "simple"}
	if p.In == compile.Query {
		known = []string{"", "form", "spaceDelimited", "pipeDelimited"}
	}
	if !slices.Contains(known, p.Style) {
		v.add(at+".style", "is not supported in the "+p.In, strings.Join(known[1:], ", "))
	}
}

func (v *validator) body(f string, b RequestBody) {
	if len(b.Content) == 0 {
		v.add(f+".content", "is empty", "at least one media type")
	}
	if !v.atMost(f+".content", len(b.Content), maxContents) {
		return
	}
	seen := map[string]bool{}
	for _, media := range mediaTypes(b.Content) {
		at, lower := f+".content."+media, strings.ToLower(media)
		if !mediaForm.MatchString(lower) || seen[lower] {
			v.add(at, "is not a media type, or is given twice", "such as application/json, without parameters")
		}
		seen[lower] = true
		if s := b.Content[media].Schema; s != "" && s != "true" && s != "{}" && lower != "application/json" && !strings.HasSuffix(lower, "+json") {
			v.add(at+".schema", "is of a body that is not JSON, which is not supported", "no schema: such bodies pass unchecked")
		}
	}
}

// schemas checks the schemas of a product, apart from what they say: routes that
// lead to them find that.
func (v *validator) schemas(f string, schemas map[string]JSONSchema) {
	v.atMost(f, len(schemas), maxSchemaNames)
	for _, name := range sorted(schemas) {
		if !schemaName.MatchString(name) {
			v.add(f+"."+name, "is not the name of a schema", "1 to 200 letters, digits, dots, dashes and underscores")
		}
		if v.schemaBytes += len(schemas[name]); v.schemaBytes-len(schemas[name]) <= MaxSchemas && v.schemaBytes > MaxSchemas {
			v.add(f, "make the schemas of the document too large", fmt.Sprintf("at most %d bytes in all", MaxSchemas))
		}
		if schemas[name] == "" {
			v.add(f+"."+name, "is empty", "a JSON Schema")
		}
	}
}

// tables checks the sum of all routes' tables.
func (v *validator) tables(size int) {
	if size > schema.MaxSet {
		v.add("routes", fmt.Sprintf("make tables of %d bytes for the checks of their requests", size), fmt.Sprintf("at most %d: fewer routes with validate, or simpler schemas", schema.MaxSet))
	}
}

// digests are those of products' schemas, by name of the product.
type digests map[string]string

// of is a digest of what r's requests must be; empty: anything.
func (m digests) of(d Document, r Route) string {
	if !r.Checks() {
		return ""
	}
	known, ok := m[r.Product]
	if !ok {
		known = sum(d.schemasOf(r.Product))
		m[r.Product] = known
	}
	return known + sum(r.Request)
}

func sum(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // text alone
	}
	s := sha256.Sum256(b)
	return string(s[:])
}

// schemasOf are those of a product.
func (d Document) schemasOf(product string) map[string]JSONSchema {
	for _, p := range d.Products {
		if p.Name == product {
			return p.Schemas
		}
	}
	return nil
}
