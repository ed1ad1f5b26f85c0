package importer

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/filters/schema"
)

// Checks says whether requests are checked, and how much that may take. No number
// is that of MaxChecks.
type Checks struct {
	On     bool              // operations are validated that do not say otherwise
	Text   int               // bytes of schemas and requests
	Tables int               // bytes of tables
	Limits map[string]uint64 // body_limit of routes that are there, by name
}

// MaxChecks is what the checks of a document may take that has nothing else.
func MaxChecks() Checks { return Checks{Text: config.MaxSchemas, Tables: schema.MaxSet} }

// ChecksBeside is what the checks of a product may take in d. They are on when they
// are on for a route of the product.
func ChecksBeside(d config.Document, product string) Checks {
	c := MaxChecks()
	c.On, c.Limits = validates(d, product), map[string]uint64{}
	others := config.Document{}
	for _, p := range d.Products {
		if p.Name != product {
			others.Products = append(others.Products, p)
		}
	}
	for _, r := range d.Routes {
		if r.Product == product {
			c.Limits[r.Name] = r.BodyLimit
		} else {
			others.Routes = append(others.Routes, r)
		}
	}
	text, size := others.ChecksSize()
	c.Text, c.Tables = max(1, c.Text-text), max(1, c.Tables-size)
	return c
}

// validates reports whether a route of a product has its requests checked.
func validates(d config.Document, product string) bool {
	return slices.ContainsFunc(d.Routes, func(r config.Route) bool { return r.Product == product && r.Checks() })
}

// Bounds of what is looked at.
const (
	// maxRequestText bounds the schemas that one operation leads to: those of more
	// text make a table that is too large.
	maxRequestText = 4 * schema.MaxTable
	// maxWork bounds the schemas that operations lead to in all, each counted for
	// every operation, and 64 bytes of them for one more.
	maxWork = 16 << 20
	uploads = 10 << 20 // bytes: what a route without checks takes
)

// sharing is why an operation is not checked whose route stands for another that says
// otherwise.
const sharing = "one route stands for operations with different requests"

// joinChecks keeps the checks of a route that stands for two operations if they are
// the same.
func joinChecks(into, r *imported) {
	switch {
	case into.request == nil && r.request == nil:
	case into.request == nil || r.request == nil:
		into.request = &request{reason: sharing}
	case into.request.reason == "" && !into.request.in.Equal(&r.request.in):
		into.request.reason = sharing
	}
}

// checks puts what requests must be into routes, as far as there is room.
func (im *importer) checks(res *Result) {
	work, room := maxWork, im.Checks.Text
	schemas := map[string]config.JSONSchema{}
	for i := range im.routes {
		r := &im.routes[i]
		q := r.request
		if q == nil || q.reason == "" && len(q.in.Parameters) == 0 && q.in.Body == nil {
			continue
		}
		var reached map[string]*checked
		if q.reason == "" {
			reached = im.reached(q, &work)
		}
		if q.reason == "" {
			im.fits(r, q, reached, schemas)
		}
		if q.reason != "" {
			res.Unvalidated++
			im.note(r.route.Methods[0]+" "+r.route.Path, "not validated: %s", q.reason)
			continue
		}
		for name, c := range reached {
			schemas[name] = c.schema
		}
		res.Validated++
	}
	res.checked = room - im.Checks.Text
	if len(schemas) > 0 {
		res.Product.Schemas = schemas
	}
}

// reached are the named schemas that q leads to. It sets q's reason when they are
// too many, or one of them cannot be checked.
func (im *importer) reached(q *request, work *int) map[string]*checked {
	out := map[string]*checked{}
	nodes, text := 0, 0
	due := append([]*checked(nil), q.parts...)
	for len(due) > 0 && q.reason == "" {
		c := due[len(due)-1]
		due = due[:len(due)-1]
		q.reason = c.fault
		nodes, text = nodes+c.nodes, text+len(c.schema)
		*work -= c.nodes + len(c.schema)/64
		switch {
		case q.reason != "":
		case nodes > schema.MaxNodes || text > maxRequestText:
			q.reason = tooLarge
		case *work < 0:
			q.reason = "the operations of the document lead to too many schemas in all"
		}
		for _, name := range c.refs {
			if out[name] == nil {
				out[name] = im.schemas.get(name)
				due = append(due, out[name])
			}
		}
	}
	return out
}

var (
	tooLarge = fmt.Sprintf("its schemas are more than %d, or make a table of more than %d KiB", schema.MaxNodes, schema.MaxTable>>10)
	// place is where a fault says that it is.
	place = regexp.MustCompile(`^(refers to schemas\.[^ ]+, which )?(at [^ ]* )?`)
)

// fits sets the request of a route, or q's reason when edges would not take it.
func (im *importer) fits(r *imported, q *request, reached map[string]*checked, known map[string]config.JSONSchema) {
	route := r.route
	route.Validate, route.Request = config.ValidateRequest, &q.in
	if route.BodyLimit == 0 {
		route.BodyLimit = im.Checks.Limits[route.Name]
	}
	all, text := map[string]config.JSONSchema{}, 0
	for name, c := range reached {
		all[name] = c.schema
		if _, there := known[name]; !there {
			text += len(name) + len(c.schema)
		}
	}
	for _, c := range q.parts {
		text += len(c.schema)
	}
	if text > im.Checks.Text {
		q.reason = "there is no room left in the configuration for its schemas"
		return
	}
	size, faults := config.RequestFaults(route, all)
	if len(faults) > 0 {
		q.reason = why(faults[0].Field, faults[0].Issue)
		return
	}
	if size > im.Checks.Tables {
		q.reason = fmt.Sprintf("tables of more than %d MiB in all", schema.MaxSet>>20)
		return
	}
	im.Checks.Text, im.Checks.Tables = im.Checks.Text-text, im.Checks.Tables-size
	if q.files && q.in.Body != nil && route.BodyLimit == 0 {
		r.route.BodyLimit = uploads
	}
	r.route.Validate, r.route.Request = route.Validate, route.Request
}

// why is a fault without the place of it, so that operations share it.
func why(field, issue string) string {
	switch {
	case strings.Contains(issue, "make a table of") || strings.Contains(issue, "leads to too many schemas"):
		return tooLarge
	case field == "body_limit":
		return "a body_limit of more than 16 MiB"
	case strings.HasPrefix(field, "route.request.parameters") && strings.Contains(issue, "too many elements"):
		return "too many parameters"
	}
	return "a schema " + place.ReplaceAllString(issue, "")
}
