// Package importer makes a product and its routes of an OpenAPI document, and puts
// them into the text of a configuration.
package importer

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/controlplane/gateway/openapi/document"
	"sluice.dev/sluice/filters/decision"
)

// Options say how a document is imported.
type Options struct {
	// Product is the name of the product; empty: made of the document's title.
	Product string
	// Upstream is where the product is: http://host:port, or https. A path goes before
	// those of the document. Empty: the product is there already and stays as it is.
	Upstream string
	// Prefix goes before all paths on the gateway, and is taken away for the product.
	Prefix string
	// Open leaves operations open to anybody that the document says are. Otherwise
	// they need a key.
	Open bool
	// Taken are scopes that something else in the configuration asks for, which must
	// not mean two things; MaxScopes is how many names of scopes the product may have.
	// 0: DefaultScopes.
	Taken     []string
	MaxScopes int
	// Checks has the routes validate requests, as far as it leaves room.
	Checks Checks
}

// Named is the name of the product that d becomes.
func (o Options) Named(d *document.Document) string {
	return cmp.Or(o.Product, slug(d.Title, '-', 40), "imported")
}

// DefaultScopes is how many scopes an import makes before it folds them: an edge
// holds 128 with their wildcards, and the platform's own are among them.
const DefaultScopes = 48

// Result is what a document becomes.
type Result struct {
	Product    config.Product    // without upstreams when Options have none
	Routes     []config.Route    // by group and path, the more specific first
	Groups     map[string]string // the first tag of each route, by name
	Scopes     []string
	Classes    []string // that routes name
	Operations int      // of the document
	// Validated is how many routes have edges check requests, and Unvalidated how many
	// do not though the document says what requests must be.
	Validated, Unvalidated int
	Version                string // of OpenAPI
	Notes                  []document.Note
	checked                int // bytes of schemas and requests
	// Description is the OpenAPI document, in version 3.1, of what the routes lead to.
	Description []byte
}

// MaxDescription bounds a description that is stored, in bytes.
const MaxDescription = 4 << 20

// Import makes a product and routes of d. It fails when the options are at fault.
//
// It takes time and memory linear in d, but for sorting.
func Import(d *document.Document, o Options) (Result, error) {
	o.Product = o.Named(d)
	most := MaxChecks()
	o.Checks.Text, o.Checks.Tables = cmp.Or(o.Checks.Text, most.Text), cmp.Or(o.Checks.Tables, most.Tables)
	if !productForm.MatchString(o.Product) {
		return Result{}, fmt.Errorf("--product %q is not a name: use 1 to 100 of a-z, 0-9, dot, dash and underscore", o.Product)
	}
	if _, err := config.ParsePath(o.Prefix + "/x"); err != nil || strings.HasSuffix(o.Prefix, "/") {
		return Result{}, fmt.Errorf("--prefix %q is not the beginning of a path, such as /petstore", o.Prefix)
	}
	im := &importer{Options: o, notes: slices.Clone(d.Notes), at: map[string]int{}, noted: map[string]int{}, names: map[string]bool{}, scopes: map[string]string{},
		schemas: &schemas{of: d, named: map[string]*checked{}, fixed: map[string]map[string]bool{}}}
	for i, n := range im.notes {
		im.noted[n.What] = i
	}
	res := Result{Product: config.Product{Name: o.Product}, Operations: len(d.Operations), Version: d.Version, Groups: map[string]string{}}
	before, err := im.upstream(&res.Product)
	if err != nil {
		return Result{}, err
	}
	im.before = before
	for _, heads := range []bool{false, true} { // a route for GET is for HEAD too: those come last
		for _, op := range d.Operations {
			if (op.Method == "HEAD") == heads {
				im.operation(op, d.Secured)
			}
		}
	}
	im.name()
	im.fold()
	im.sort()
	im.checks(&res)
	for _, r := range im.routes {
		res.Routes = append(res.Routes, r.route)
		res.Groups[r.route.Name] = r.group
		res.Scopes = append(res.Scopes, r.route.Scope)
		res.Classes = append(res.Classes, r.route.Class)
	}
	res.Scopes, res.Classes = set(res.Scopes), set(res.Classes)
	res.Description = im.description(d)
	res.Notes = im.notes
	return res, nil
}

// set is a list sorted, without what is empty or there twice.
func set(list []string) []string {
	slices.Sort(list)
	return slices.DeleteFunc(slices.Compact(list), func(s string) bool { return s == "" })
}

var productForm = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,99}$`)

// importer gathers routes.
type importer struct {
	Options
	before string // path at the product that goes before the document's
	routes []imported
	at     map[string]int // of a route, by method and the shape of its path
	names  map[string]bool
	scopes map[string]string // by name, what they stand for
	kept   []document.Operation
	notes  []document.Note
	noted  map[string]int

	schemas *schemas
}

// imported is a route with what it is made of.
type imported struct {
	route   config.Route
	pattern config.Pattern
	id      string // operationId, or method and path
	group   string // the first tag
	needs   []string
	request *request // nil: requests are not to be checked
}

func (im *importer) note(where, what string, args ...any) {
	what = fmt.Sprintf(what, args...)
	i, ok := im.noted[what]
	if !ok {
		i = len(im.notes)
		im.noted[what] = i
		im.notes = append(im.notes, document.Note{What: what})
	}
	im.notes[i].Count++
	if len(im.notes[i].Where) < 20 {
		im.notes[i].Where = append(im.notes[i].Where, decision.Cut(where, 200))
	}
}

// upstream sets where p is, and returns the path that the address has.
func (im *importer) upstream(p *config.Product) (before string, err error) {
	if im.Upstream == "" {
		return "", nil
	}
	u, err := url.Parse(im.Upstream)
	if err != nil || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return "", errUpstream
	}
	before = strings.TrimRight(u.Path, "/")
	if _, err := config.ParsePath(before + "/x"); err != nil {
		return "", errUpstream
	}
	u.Path, u.RawPath = "", ""
	if p.Upstream = u.String(); !config.ValidUpstream(p.Upstream) {
		return "", errUpstream
	}
	return before, nil
}

var errUpstream = errors.New("--upstream is not an address: expected http://HOST:PORT or https://NAME, without a user")

// operation makes a route of op, or joins it with the route that matches the same
// requests already.
func (im *importer) operation(op document.Operation, secured bool) {
	where := op.Method + " " + op.Path
	path, widened, err := template(op.Path)
	if err == nil {
		_, err = config.ParsePath(im.Prefix + path)
	}
	if err != nil {
		im.note(where, "paths that no route can have, as one %s: left out", err)
		return
	}
	pattern, _ := config.ParsePath(im.Prefix + path)
	r := imported{pattern: pattern, group: first(op.Tags), id: cmp.Or(op.ID, strings.ToLower(op.Method)+" "+op.Path)}
	r.route = config.Route{Product: im.Product, Methods: []string{op.Method}, Path: im.Prefix + path, Streaming: op.Streams}
	if to := im.before + path; to != r.route.Path {
		r.route.Rewrite = &config.Rewrite{Path: to}
	}
	if widened {
		im.note(where, "path segments with text beside a variable, or with two variables: the route takes any text there")
	}
	if im.demands(&r, op, secured, where) {
		r.request = im.request(op, path, where)
	}
	im.kept = append(im.kept, op)
	for _, method := range []string{op.Method, map[string]string{"HEAD": "GET"}[op.Method]} {
		if i, ok := im.at[method+" "+pattern.Regexp()]; ok {
			im.join(&im.routes[i], r, where)
			return
		}
	}
	im.at[op.Method+" "+pattern.Regexp()] = len(im.routes)
	im.routes = append(im.routes, r)
}

// join lets one route stand for two operations that it cannot tell apart: it asks
// for what both ask.
func (im *importer) join(into *imported, r imported, where string) {
	if r.route.Methods[0] == into.route.Methods[0] {
		im.note(where, "operations that no route can tell from another of the same method: they share its route, which asks for what all of them ask")
	}
	if !slices.Equal(into.route.Auth, r.route.Auth) {
		into.route.Auth = stricter(into.route.Auth, r.route.Auth)
		into.route.ForwardCredentials = slices.Contains(into.route.Auth, "session")
	}
	into.needs = set(append(into.needs, r.needs...))
	if into.route.Price != r.route.Price {
		into.route.Price = ""
	}
	joinChecks(into, &r)
	into.route.BodyLimit = max(into.route.BodyLimit, r.route.BodyLimit)
	into.route.Streaming = into.route.Streaming || r.route.Streaming
}

// stricter are the ways in that both lists have; a key where they have none.
func stricter(a, b []string) []string {
	both := slices.DeleteFunc(slices.Clone(a), func(s string) bool { return !slices.Contains(b, s) })
	if len(both) == 0 {
		return []string{"key"}
	}
	return both
}

func first(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[0]
}

// sort puts routes in their groups and, in each, in the order in which edges try
// them, whatever the order of the file: the more specific first.
func (im *importer) sort() {
	slices.SortStableFunc(im.routes, func(a, b imported) int {
		return cmp.Or(cmp.Compare(a.group, b.group), a.pattern.Compare(b.pattern), cmp.Compare(a.route.Methods[0], b.route.Methods[0]))
	})
}

// description is the OpenAPI document of what routes lead to: whole, or without the
// texts of schemas, or without answers, so that it is no larger than MaxDescription.
func (im *importer) description(d *document.Document) []byte {
	doc := d.OpenAPI(im.Prefix, im.kept)
	for _, shorten := range []func(document.Object){nil, dropTexts, dropAnswers} {
		if shorten != nil {
			shorten(doc)
		}
		text, err := json.Marshal(doc)
		if err == nil && len(text) <= MaxDescription {
			return text
		}
	}
	im.note(d.Title, "descriptions of more than %d bytes: not kept, so documentation and tools of agents do not show the operations", MaxDescription)
	return nil
}
