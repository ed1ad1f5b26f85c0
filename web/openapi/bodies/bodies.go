// Package bodies holds the JSON bodies of our own operations against the OpenAPI
// documents that describe them, to name at once what is wrong with one that is refused
// anyway: what is missing and what is out of range, beside what could not be read.
package bodies

import (
	"cmp"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/filters/schema"
	"sluice.dev/sluice/filters/schema/compile"
	"sluice.dev/sluice/web/openapi"
)

// Checks are those of the bodies that documents describe. It is safe for concurrent use.
type Checks struct {
	read     func() (*openapi.Document, error)
	tables   sync.Map  // of *schema.Table by operation; nil: none
	queries  sync.Map  // of query by operation
	checkers sync.Pool // of *schema.Checker
}

// New makes those of the document that read gives, which is read once: beside whatever
// begins with it, so that the first body that is wrong does not wait for it.
func New(read func() (*openapi.Document, error)) *Checks {
	c := &Checks{read: sync.OnceValues(read), checkers: sync.Pool{New: func() any { return new(schema.Checker) }}}
	go func() { _, _ = c.read() }() // whoever needs it hears of its failure
	return c
}

// Faults are what is wrong with a JSON object that an operation got, such as POST of
// /v1/streams/{id}/links, by the place of each; none where it is not described. It takes
// the time and memory that package schema says, linear in raw; of an operation the first
// time as much as its schemas have.
func (c *Checks) Faults(method, path string, raw []byte) []decision.Detail {
	t := c.table(method, path)
	if t == nil {
		return nil
	}
	checker := c.checkers.Get().(*schema.Checker)
	defer c.checkers.Put(checker)
	checker.Start(t)
	body := checker.Body("application/json")
	if body.Code != "" || body.Node == 0 {
		return nil
	}
	checker.JSON(body.Node, raw)
	var list []decision.Detail
	for _, d := range checker.Details() {
		if field, within := strings.CutPrefix(d.Field, "body."); within {
			d.Field, d.Expected = field, cmp.Or(d.Expected, "a value")
			list = append(list, d)
		}
	}
	return list
}

// table is that of an operation, or nil.
func (c *Checks) table(method, path string) *schema.Table {
	key := method + " " + path
	if t, ok := c.tables.Load(key); ok {
		return t.(*schema.Table)
	}
	doc, err := c.read()
	if err != nil {
		slog.Error("descriptions cannot be read", "cause", err)
		return nil
	}
	t, faults := Table(doc, method, path)
	if len(faults) > 0 {
		slog.Warn("bodies are not held against their description", "operation", key, "at", faults[0].At, "issue", faults[0].Issue)
	}
	kept, _ := c.tables.LoadOrStore(key, t)
	return kept.(*schema.Table)
}

// Table compiles the schema of an operation's JSON body. It returns nil where there is
// none, and why where it cannot be compiled.
func Table(doc *openapi.Document, method, path string) (*schema.Table, []compile.Fault) {
	media := at(doc.Paths, path, strings.ToLower(method), "requestBody")
	if ref, ok := media["$ref"].(string); ok {
		media = at(doc.Components, "requestBodies", ref[strings.LastIndexByte(ref, '/')+1:])
	}
	of, ok := at(media, "content", "application/json")["schema"]
	if !ok {
		return nil, nil
	}
	named, _ := doc.Components["schemas"].(map[string]any)
	raw, faults := compile.Table(compile.Request{Body: &compile.Body{Contents: []compile.Content{{At: method + " " + path, Type: "application/json", Schema: text(of)}}}},
		func(name string) string {
			s, ok := named[name]
			if !ok {
				return ""
			}
			return text(s)
		})
	if len(faults) > 0 {
		return nil, faults
	}
	return schema.Parse(raw), nil
}

// query is what a description says of an operation's query.
type query struct {
	names  []string
	closed bool
}

// Parameters are the names of an operation's query parameters, in order, and whether it takes no
// others: it does not, where it is described and is of ours. What players, relays and OAuth clients
// ask for takes any, because they add their own, and OAuth wants those ignored (RFC 6749, 3.1).
func (c *Checks) Parameters(method, path string) (names []string, closed bool) {
	if method == "HEAD" {
		method = "GET"
	}
	key := method + " " + path
	if q, ok := c.queries.Load(key); ok {
		return q.(query).names, q.(query).closed
	}
	doc, err := c.read()
	if err != nil {
		slog.Error("descriptions cannot be read", "cause", err)
		return nil, false
	}
	q := parameters(doc, method, path)
	if q.closed { // so that what is kept is bounded by what is described
		c.queries.Store(key, q)
	}
	return q.names, q.closed
}

func parameters(doc *openapi.Document, method, path string) (q query) {
	item := at(doc.Paths, path)
	operation, described := item[strings.ToLower(method)].(map[string]any)
	if !described || !closed(path) {
		return q
	}
	shared, _ := item["parameters"].([]any)
	own, _ := operation["parameters"].([]any)
	for _, p := range append(slices.Clone(shared), own...) {
		of, _ := p.(map[string]any)
		if ref, ok := of["$ref"].(string); ok {
			of = at(doc.Components, "parameters", ref[strings.LastIndexByte(ref, '/')+1:])
		}
		if name, ok := of["name"].(string); ok && of["in"] == "query" {
			q.names = append(q.names, name)
		}
	}
	slices.Sort(q.names)
	return query{slices.Compact(q.names), true}
}

// closed reports whether operations of a path take no parameters but their own.
func closed(path string) bool {
	return (strings.HasPrefix(path, "/v1/") || strings.HasPrefix(path, "/admin/v1/")) && !strings.HasPrefix(path, "/v1/playback/") && path != "/v1/health" // whose probes add what keeps caches away
}

// at follows names into an object; what is not there is empty.
func at(v map[string]any, names ...string) map[string]any {
	for _, n := range names {
		v, _ = v[n].(map[string]any)
	}
	return v
}

// text is a schema as package compile reads it: named schemas stand at another place.
func text(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return "" // of a document that was read: it cannot happen
	}
	return strings.ReplaceAll(string(raw), `"#/components/schemas/`, `"#/schemas/`)
}
