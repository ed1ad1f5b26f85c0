package importer

import (
	"slices"

	"sluice.dev/sluice/controlplane/gateway/config"
)

// newClassPerMinute is the limit of a class that a document names and the
// configuration does not have.
const newClassPerMinute = 600

// Merge puts what was imported into a configuration. A product that is there keeps
// what Options do not say, and a route that is there by name keeps what a document
// cannot say: hosts, headers, CORS, its timeout, its feature and whether it streams.
// Schemas of a product whose routes validate requests are those of the document.
// Routes of the product that the document no longer has are gone, and so are scopes
// that only they asked for; a configuration that does not list its scopes goes on
// without.
func Merge(d config.Document, r Result) config.Document {
	d.Products = slices.Clone(d.Products)
	if i := slices.IndexFunc(d.Products, func(p config.Product) bool { return p.Name == r.Product.Name }); i < 0 {
		d.Products = append(d.Products, r.Product)
	} else {
		p := d.Products[i]
		if r.Product.Upstream != "" && p.Upstream != r.Product.Upstream {
			p.Upstream, p.Upstreams, p.TLS, p.Host = r.Product.Upstream, nil, nil, ""
		}
		if r.Validated > 0 || validates(d, p.Name) { // otherwise they are somebody's own
			p.Schemas = r.Product.Schemas
		}
		d.Products[i] = p
	}
	had, scopes := map[string]config.Route{}, map[string]bool{}
	var routes []config.Route
	at := -1
	for _, old := range d.Routes {
		if old.Product != r.Product.Name {
			routes = append(routes, old)
			scopes[old.Scope] = true
			continue
		}
		if had[old.Name] = old; at < 0 {
			at = len(routes)
		}
	}
	if at < 0 {
		at = len(routes)
	}
	fresh := make([]config.Route, len(r.Routes))
	for i, n := range r.Routes {
		if old, ok := had[n.Name]; ok {
			n = kept(old, n)
		}
		fresh[i] = n
	}
	d.Routes = slices.Insert(routes, at, fresh...)
	for _, old := range had { // scopes that nobody else asks for are gone with their routes
		if !scopes[old.Scope] && !slices.Contains(r.Scopes, old.Scope) {
			d.Scopes = slices.DeleteFunc(slices.Clone(d.Scopes), func(s string) bool { return s == old.Scope })
		}
	}
	for _, s := range r.Scopes {
		if d.Scopes != nil && !slices.Contains(d.Scopes, s) {
			d.Scopes = append(slices.Clip(d.Scopes), s)
		}
	}
	d.Classes = slices.Clone(d.Classes)
	if len(d.Classes) == 0 && len(r.Classes) > 0 { // the first class is that of routes which name none
		d.Classes = []config.Class{{Name: "default", PerMinute: newClassPerMinute}}
	}
	for _, name := range r.Classes {
		if !slices.ContainsFunc(d.Classes, func(c config.Class) bool { return c.Name == name }) {
			d.Classes = append(d.Classes, config.Class{Name: name, PerMinute: newClassPerMinute})
		}
	}
	return d
}

// kept is the route n with what old has that no document says.
func kept(old, n config.Route) config.Route {
	n.Hosts, n.Headers, n.CORS, n.Feature = old.Hosts, old.Headers, old.CORS, old.Feature
	n.Streaming = n.Streaming || old.Streaming
	if n.Timeout == "" {
		n.Timeout = old.Timeout
	}
	if n.Class == "" {
		n.Class = old.Class
	}
	if n.BodyLimit == 0 {
		n.BodyLimit = old.BodyLimit
	}
	if !n.ForwardCredentials {
		n.ForwardCredentials = old.ForwardCredentials
	}
	return n
}

// TakenScopes are the scopes of d that something besides a product asks for.
func TakenScopes(d config.Document, product string) []string {
	own := map[string]bool{}
	for _, r := range d.Routes {
		if r.Product == product {
			own[r.Scope] = true
		}
	}
	for _, r := range d.Routes {
		if r.Product != product {
			delete(own, r.Scope)
		}
	}
	return slices.DeleteFunc(slices.Clone(d.Scopes), func(s string) bool { return own[s] })
}

// Room is how many names of scopes a product may have in d, beside those of others.
func Room(d config.Document, product string) int {
	others := config.Document{Scopes: TakenScopes(d, product)}
	return max(4, 128-len(others.ScopeNames()))
}
