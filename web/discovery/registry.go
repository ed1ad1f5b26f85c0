package discovery

import (
	"maps"
	"slices"
	"time"

	"sluice.dev/sluice/controlplane/gateway/config"
)

// States of a surface.
const (
	Available    = "available"     // calls are served
	NeedsEngine  = "needs_engine"  // calls answer 501 until there is what it needs
	NotAvailable = "not_available" // the configuration has no route to it
)

// Placeholder is the product whose routes answer 501: a surface that leads there
// has no engine. An operator who has one gives the routes to another product.
const Placeholder = "placeholder"

// Registry is the product registry; registry.schema.json describes it.
type Registry struct {
	Schema    string                  `json:"$schema"`
	Name      string                  `json:"name"`
	Version   int64                   `json:"version"` // of the configuration in force
	UpdatedAt time.Time               `json:"updated_at"`
	Links     Links                   `json:"links"`
	Auth      []AuthMethod            `json:"auth_methods"`
	Scopes    []string                `json:"scopes"`
	Classes   []config.Class          `json:"rate_classes"`
	Plans     []Plan                  `json:"plans"`
	Products  []Product               `json:"products"`
	Health    map[string]HealthStatus `json:"health"` // of each backend
}

// Links are where to go on.
type Links struct {
	Gateway   string `json:"gateway"`
	OpenAPI   string `json:"openapi"`
	Docs      string `json:"documentation"`
	MCP       string `json:"mcp"`
	Manifest  string `json:"mcp_manifest"`
	AgentCard string `json:"agent_card"`
	X402      string `json:"x402,omitempty"` // empty: nothing is for sale
	OAuth     string `json:"oauth"`
	Health    string `json:"health"`
}

// AuthMethod is a way in.
type AuthMethod struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Header      string `json:"header"`
	Obtain      string `json:"obtain"`
}

// Plan is what an account can have.
type Plan struct {
	Name     string                  `json:"name"`
	Limits   map[string]config.Limit `json:"limits"`
	Products []string                `json:"products"` // backends; none: all
}

// Product is a surface, with its operations.
type Product struct {
	Name        string         `json:"name"`
	Kind        string         `json:"kind"`
	Title       string         `json:"title"`
	Description string         `json:"description"`
	State       string         `json:"state"`
	Needs       string         `json:"needs,omitempty"`  // what it lacks
	Engine      *Engine        `json:"engine,omitempty"` // what does its work, where the backend says
	Backends    []string       `json:"backends"`
	Auth        []string       `json:"auth_methods"`
	Scopes      []string       `json:"scopes"`
	Prices      []ProductPrice `json:"prices"`
	Docs        string         `json:"documentation"`
	Health      string         `json:"health"` // ok, failing or unknown
	Routes      []ProductRoute `json:"routes"`
}

// ProductPrice is what a request costs a caller without a credential.
type ProductPrice struct {
	Route   string `json:"route"`
	Amount  string `json:"amount"` // whole units of Asset
	Asset   string `json:"asset"`
	Network string `json:"network"`
}

// ProductRoute is one way to call a surface.
type ProductRoute struct {
	Name    string   `json:"name"`
	Methods []string `json:"methods"` // none: all
	URL     string   `json:"url"`     // may have {variables}, or end in *
	Auth    []string `json:"auth_methods"`
	Scope   string   `json:"scope,omitempty"`
	Class   string   `json:"rate_class"`
	Price   string   `json:"price,omitempty"`
}

// Addresses are where the platform stands, for clients.
type Addresses struct {
	Gateway string // without a trailing slash
	Runtime string
}

// methods of authentication, by the names that routes use for them.
var methods = map[string]AuthMethod{
	"key":     {"key", "An API key of an account", "Authorization: Bearer <API_KEY>", "/v1/auth/keys"},
	"token":   {"token", "An access token, of OAuth 2.0 or of a trusted issuer", "Authorization: Bearer <token>", "/.well-known/oauth-authorization-server"},
	"session": {"session", "A person's session token", "Authorization: Bearer <token>", "/v1/auth/sessions"},
	"x402":    {"x402", "Payment for one request, without an account", "X-PAYMENT", "/.well-known/x402"},
	"none":    {"none", "Open to everyone", "", ""},
}

// Build makes the registry of a version. health holds what backends were found
// to be like.
func Build(v config.Version, at Addresses, health map[string]Report) Registry {
	d := v.Document
	gw := at.Gateway
	r := Registry{
		Schema: gw + schemaPath, Name: "Sluice", Version: v.Number, UpdatedAt: v.CreatedAt.UTC(),
		Links: Links{Gateway: gw, OpenAPI: gw + "/openapi.json", Docs: gw + "/docs/errors", MCP: gw + "/mcp", Manifest: gw + manifestPath,
			AgentCard: gw + cardPath, X402: gw + "/.well-known/x402", OAuth: gw + "/.well-known/oauth-authorization-server", Health: gw + "/v1/health"},
		Scopes: nonNil(d.Scopes), Classes: nonNil(d.Classes), Plans: []Plan{}, Products: []Product{}, Health: map[string]HealthStatus{},
	}
	for _, name := range []string{"key", "token", "session", "x402", "none"} {
		m := methods[name]
		if m.Obtain != "" {
			m.Obtain = gw + m.Obtain
		}
		r.Auth = append(r.Auth, m)
	}
	for _, p := range d.Plans {
		limits := maps.Clone(p.Limits)
		if limits == nil {
			limits = map[string]config.Limit{}
		}
		r.Plans = append(r.Plans, Plan{p.Name, limits, nonNil(p.Products)})
	}
	for name, report := range health {
		r.Health[name] = report.Status
	}
	by := map[string]surface{}
	for _, s := range surfacesOf(d) {
		by[s.Name] = s
		r.Products = append(r.Products, product(s, by[s.ServedBy], d, at, health))
	}
	return r
}

// onlyConfigured leaves out what a deployment without products of ours does not have:
// surfaces without a route, and payments.
func (r *Registry) onlyConfigured() {
	r.Products = slices.DeleteFunc(r.Products, func(p Product) bool { return p.State == NotAvailable })
	r.Auth = slices.DeleteFunc(r.Auth, func(m AuthMethod) bool { return m.Name == "x402" })
	r.Links.X402 = ""
}

// product describes one surface; host is the surface that serves it when it has
// no paths of its own.
func product(s, host surface, d config.Document, at Addresses, health map[string]Report) Product {
	p := Product{Name: s.Name, Kind: s.Kind, Title: s.Title, Description: s.Description, Docs: at.Gateway + "/openapi.json",
		Backends: []string{}, Auth: []string{}, Scopes: []string{}, Prices: []ProductPrice{}, Routes: []ProductRoute{}}
	if p.Kind == "" {
		p.Kind = KindProduct
	}
	for i, r := range working(s.routes(d)) {
		base := at.Gateway
		if r.ListenerName() == config.Runtime {
			base = at.Runtime
		}
		if i == 0 {
			p.Docs = base + "/openapi.json"
		}
		p.add(r, base, d)
	}
	for _, r := range host.routes(d) {
		p.Backends = with(p.Backends, r.Product)
	}
	p.State, p.Needs = state(s, p.Backends, health)
	p.Health = overall(p.Backends, health)
	for _, b := range p.Backends {
		if e, ok := health[b].Engines[s.Name]; ok {
			p.Engine = &e
		}
	}
	return p
}

// working returns the routes that lead to more than the placeholder, or all when
// none does.
func working(routes []config.Route) []config.Route {
	served := slices.DeleteFunc(slices.Clone(routes), func(r config.Route) bool { return r.Product == Placeholder })
	if len(served) == 0 {
		return routes
	}
	return served
}

// add adds a route to p.
func (p *Product) add(r config.Route, base string, d config.Document) {
	class := r.Class
	if class == "" && len(d.Classes) > 0 {
		class = d.Classes[0].Name
	}
	route := ProductRoute{Name: r.Name, Methods: nonNil(r.Methods), URL: base + r.Path, Auth: slices.Clone(r.Auth), Scope: r.Scope, Class: class, Price: r.Price}
	if x := d.X402; x != nil && r.Price != "" {
		asset := x.Asset
		if asset == "" {
			asset = "USDC"
		}
		route.Auth = with(route.Auth, "x402")
		p.Prices = append(p.Prices, ProductPrice{r.Name, r.Price, asset, x.Network})
	}
	for _, a := range route.Auth {
		p.Auth = with(p.Auth, a)
	}
	if r.Scope != "" {
		p.Scopes = with(p.Scopes, r.Scope)
	}
	if r.Product != "" {
		p.Backends = with(p.Backends, r.Product)
	}
	p.Routes = append(p.Routes, route)
}

// state says whether calls of a surface are served. A backend's own word about
// a surface counts most.
func state(s surface, backends []string, health map[string]Report) (state, needs string) {
	served := slices.ContainsFunc(backends, func(b string) bool { return b != Placeholder })
	said := ""
	for _, b := range backends {
		if word := health[b].Surfaces[s.Name]; word != "" {
			said = word
		}
	}
	switch {
	case len(backends) == 0:
		return NotAvailable, s.Needs
	case said == Available || said == "" && served && s.ServedBy == "":
		return Available, ""
	}
	return NeedsEngine, s.Needs
}

// with returns list with s, once.
func with(list []string, s string) []string {
	if s == "" || slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}

// nonNil turns nil into an empty list, which JSON shows as one.
func nonNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
