package reference

import (
	"encoding/json"
	"html/template"
	"maps"
	"slices"
	"strconv"
	"strings"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/web/docsite"
)

// view is the page of an operation.
type view struct {
	*operation
	API         API
	Description template.HTML
	Callers     []string // the ways to be let in; none: nobody is
	Asked       []fact   // what else its route asks
	Curl        string
	Parameters  []field
	Body        *body
	Responses   []response
	Cut         bool // more stands in the document
}

// fact is a name and a value.
type fact struct{ Name, Value string }

// body is what a request or a response may consist of.
type body struct {
	Required bool
	Text     template.HTML
	Contents []content
	Example  string // of an answer, as JSON
}

// content is a body of one media type.
type content struct {
	Media, Type string
	IsError     bool // the one form of every error
	Fields      []field
}

// response is an answer by its status.
type response struct {
	Status string
	body
	Codes []decision.Code // that errors of the status have
}

// maxContents is how many media types of a body are shown.
const maxContents = 4

// page is the page of an operation.
func (x *index) page(id string) (docsite.Page, error) {
	o := x.byID[id]
	if o == nil {
		return docsite.Page{}, missing
	}
	r := newReader(x, o.Product)
	var op object
	var shared []any
	if err := json.Unmarshal(o.text, &op); err != nil {
		op = object{} // no operation is an object of strings alone; what cannot be read is not shown
	}
	_ = json.Unmarshal(o.shared, &shared)
	if op["security"] == nil && x.security != nil {
		var general any
		_ = json.Unmarshal(x.security, &general)
		op["security"] = general
	}
	v := view{operation: o, API: x.api, Description: r.markdown(op["description"], 16<<10)}
	v.Callers, v.Asked = callers(op)
	parameters := r.parameters(op["parameters"], shared)
	for _, p := range parameters {
		v.Parameters = append(v.Parameters, r.parameter(p))
	}
	request := r.resolved(op["requestBody"])
	if request != nil {
		b := r.body(request)
		v.Body = &b
	}
	responses, _ := op["responses"].(object)
	for _, status := range sorted(responses) {
		v.Responses = append(v.Responses, r.response(status, responses[status]))
	}
	r.schemas = maxSchemas // for the example, whatever the tables took
	v.Curl = r.curl(op, o, parameters, request)
	v.Cut = r.cut
	p, err := x.rendered("operation", o.Method+" "+decision.Cut(o.Path, 200), v)
	for _, h := range []struct {
		id, title string
		there     bool
	}{{"access", "Who may call it", true}, {"parameters", "Parameters", v.Parameters != nil}, {"request", "Request body", v.Body != nil}, {"responses", "Responses", true}} {
		if h.there {
			p.Contents = append(p.Contents, docsite.Heading{ID: h.id, Title: h.title, Level: 2})
		}
	}
	return p, err
}

// callers says who may call an operation, and what its route asks of them.
func callers(op object) (ways []string, asked []fact) {
	x, _ := op["x-sluice"].(object)
	price, _ := x["price"].(string)
	names := map[string]string{
		"key": "an API key", "bearer": "an API key or a token", "token": "an access token", "session": "the session of a person",
		"payment": "a payment of " + price + " by x402, in place of a credential",
	}
	for name := range credentials(op) {
		switch {
		case name == "":
			ways = append(ways, "anybody, without a credential")
		case names[name] != "":
			ways = append(ways, names[name])
		}
	}
	slices.Sort(ways)
	for _, f := range []fact{{"Scope", "scope"}, {"Class of limits", "class"}, {"Feature of the plan", "feature"}, {"Price of a call", "price"}, {"Product", "product"}, {"Route", "route"}} {
		if s, _ := x[f.Value].(string); s != "" {
			asked = append(asked, fact{f.Name, decision.Cut(s, 200)})
		}
	}
	return ways, asked
}

// credentials are the names of the schemes by which an operation lets in; "": none
// is needed.
func credentials(op object) map[string]bool {
	found := map[string]bool{}
	list, _ := op["security"].([]any)
	for _, v := range list {
		way, _ := v.(object)
		if len(way) == 0 {
			found[""] = true
		}
		for name := range way {
			found[name] = true
		}
	}
	return found
}

// parameters are those of an operation and, where it has none of that name, of its
// path, without references. There are at most maxRows.
func (r *reader) parameters(own any, shared []any) (list []object) {
	list = []object{}
	have := map[string]bool{}
	mine, _ := own.([]any)
	for _, v := range slices.Concat(mine, shared) {
		p := r.resolved(v)
		name, _ := p["name"].(string)
		in, _ := p["in"].(string)
		if name == "" || have[in+" "+name] {
			continue
		}
		if len(list) == maxRows {
			r.cut = true
			break
		}
		have[in+" "+name] = true
		list = append(list, p)
	}
	places := []string{"path", "query", "header", "cookie"}
	slices.SortStableFunc(list, func(a, b object) int {
		return slices.Index(places, text(a["in"])) - slices.Index(places, text(b["in"]))
	})
	return list
}

// parameter is the row of a parameter.
func (r *reader) parameter(p object) field {
	schema := p["schema"]
	if media, _ := p["content"].(object); schema == nil && len(media) > 0 {
		of, _ := media[sorted(media)[0]].(object)
		schema = of["schema"]
	}
	about := p["description"]
	s, _ := r.follow(schema)
	if about == nil {
		about = s["description"]
	}
	r.rows--
	return field{Name: r.short(text(p["name"]), 100), In: text(p["in"]), Type: r.kind(schema, 0), Required: p["required"] == true, Text: r.markdown(about, 1<<10), Limits: r.limits(s)}
}

// body is what a request body or a response says of itself.
func (r *reader) body(o object) body {
	b := body{Required: o["required"] == true, Text: r.markdown(o["description"], 2<<10)}
	media, _ := o["content"].(object)
	for i, name := range slices.Sorted(maps.Keys(media)) {
		if i == maxContents {
			r.cut = true
			break
		}
		of, _ := media[name].(object)
		c := content{Media: r.short(name, 100)}
		if of["schema"] != nil {
			c.Type = r.kind(of["schema"], 0)
		}
		schema, _ := of["schema"].(object)
		if c.IsError = strings.HasSuffix(text(schema["$ref"]), "/schemas/Error"); !c.IsError {
			c.Fields = r.fields(of["schema"])
		}
		b.Contents = append(b.Contents, c)
	}
	return b
}

// response is an answer of an operation.
func (r *reader) response(status string, v any) response {
	o := r.resolved(v)
	a := response{Status: decision.Cut(status, 20), body: r.body(o)}
	if number, err := strconv.Atoi(status); err == nil && number >= 400 {
		for _, c := range r.index.codes {
			if c.Status == number {
				a.Codes = append(a.Codes, c.Code)
			}
		}
	} else if status < "300" {
		a.Example = r.answer(o)
	}
	return a
}

// answer is the JSON of a response, as an example; "": it has none.
func (r *reader) answer(o object) string {
	media, _ := o["content"].(object)
	of, _ := media["application/json"].(object)
	if of == nil {
		return ""
	}
	example, schemas := r.example, r.schemas
	r.example, r.schemas = maxExample, maxSchemas
	v := given(of)
	if v == nil || weight(v, maxExample) > maxExample {
		v = r.sample(of["schema"], 0)
	}
	short := r.example >= 0
	r.example, r.schemas = example, schemas
	b, err := json.MarshalIndent(v, "", "  ")
	if v == nil || !short || err != nil || len(b) > 2*maxExample || string(b) == "{}" {
		return ""
	}
	return string(b)
}

// text is v when it is a string.
func text(v any) string {
	s, _ := v.(string)
	return s
}
