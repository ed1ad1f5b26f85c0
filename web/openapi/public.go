package openapi

import (
	"maps"
	"slices"
	"strings"

	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/filters/decision"
)

// verbs are the keys of a path item that stand for operations.
var verbs = []string{"get", "put", "post", "delete", "options", "head", "patch", "trace"}

// Info says what a document describes and where it is served.
type Info struct {
	Title, Version, Description string
	URL                         string // of the gateway; empty: the one it was read from
}

// Public returns the description of what d's routes on the gateway lead to, as
// an OpenAPI 3.1 document. Each operation has the security of its route and, as
// x-sluice, the route's name, product, scope and class. Operations that no route
// leads to are left out.
func (d *Document) Public(c config.Document, info Info) map[string]any {
	routes, leads := config.NewMatcher(c, config.Gateway), servedBy(c)
	paths := object{}
	for path, v := range d.Paths {
		item, _ := v.(object)
		item, _ = shown(item)
		kept, found := object{}, false
		for k, x := range item {
			op, isObject := x.(object)
			if !isObject || !slices.Contains(verbs, k) {
				kept[k] = x
				continue
			}
			r, ok := routes.Find(strings.ToUpper(k), path)
			if !ok || r.Respond == nil && !leads(r.Product, d.owner(k, path)) {
				continue
			}
			kept[k], found = asked(op, r), true
		}
		if found {
			paths[path] = kept
		}
	}
	url := info.URL
	if url == "" {
		url = "/"
	}
	components := pruned(paths, d.Components)
	components["securitySchemes"] = schemes
	if !slices.ContainsFunc(c.Routes, func(r config.Route) bool { return r.Price != "" }) {
		unpaid := maps.Clone(schemes)
		delete(unpaid, "payment")
		components["securitySchemes"] = unpaid
	}
	return object{
		"openapi": "3.1.0",
		"info":    object{"title": info.Title, "version": info.Version, "description": info.Description},
		"servers": []any{object{"url": url}}, "tags": tags(paths),
		"paths": paths, "components": components,
	}
}

// servedBy returns a function that reports whether a product of c is the one that a
// fragment describes: by its name, or because it leads to ${that name}.
func servedBy(c config.Document) func(product, described string) bool {
	at := map[string]bool{}
	for _, p := range c.Products {
		for _, u := range p.Upstreams {
			at[p.Name+" "+u.Address] = true
		}
	}
	return func(product, described string) bool {
		return product == described || at[product+" ${"+described+"}"]
	}
}

// schemes are the ways in which routes let callers in.
var schemes = object{
	"key":     object{"type": "http", "scheme": "bearer", "description": "An API key: slk_…"},
	"token":   object{"type": "http", "scheme": "bearer", "bearerFormat": "JWT", "description": "An access token of this platform or of an issuer that it trusts"},
	"payment": object{"type": "apiKey", "in": "header", "name": "X-PAYMENT", "description": "A payment for one call, by the x402 protocol"},
	"session": object{"type": "http", "scheme": "bearer", "bearerFormat": "JWT", "description": "A person's session, from POST /v1/auth/sessions"},
}

// asked returns op with what its route asks of a caller.
func asked(op object, r config.Route) object {
	out := make(object, len(op)+2)
	for k, v := range op {
		out[k] = v
	}
	security := []any{}
	for _, a := range r.Auth {
		if a == "none" {
			security = append(security, object{})
			continue
		}
		security = append(security, object{a: []any{}})
	}
	if r.Price != "" {
		security = append(security, object{"payment": []any{}})
	}
	out["security"] = security
	x := object{"route": r.Name}
	for k, v := range map[string]string{"product": r.Product, "scope": r.Scope, "class": r.Class, "feature": r.Feature, "price": r.Price} {
		if v != "" {
			x[k] = v
		}
	}
	out["x-sluice"] = x
	out["responses"] = refusals(op["responses"], r)
	return out
}

// refusals adds to the responses of an operation those that the edge gives.
func refusals(described any, r config.Route) object {
	out := object{}
	if have, ok := described.(object); ok {
		for k, v := range have {
			out[k] = v
		}
	}
	add := func(status string, code decision.Code) {
		if _, ok := out[status]; !ok {
			out[status] = object{"description": decision.Lookup(code).Message, "content": errorContent}
		}
	}
	if !slices.Contains(r.Auth, "none") {
		add("401", decision.AuthRequired)
	}
	if r.Scope != "" {
		add("403", decision.ScopeMissing)
	}
	if r.Price != "" {
		out["402"] = quote
	}
	add("429", decision.RateLimited)
	add("503", decision.EdgeNotReady)
	return out
}

// quote is what a caller without a credential gets from a route that has a
// price; see docs/x402.md.
var quote = object{"description": "What one call costs, by the x402 protocol", "content": object{"application/json": object{"schema": object{
	"type": "object", "required": []any{"x402Version", "error", "accepts"},
	"properties": object{"x402Version": object{"type": "integer"}, "error": object{"type": "string"}, "accepts": object{"type": "array", "items": object{"type": "object"}}},
}}}}

var errorContent = object{"application/json": object{"schema": object{"$ref": "#/components/schemas/Error"}}}

// pruned returns the components that paths, or other components in use, refer to.
func pruned(paths, all object) object {
	out := object{}
	var walk func(v any)
	take := func(ref string) {
		rest, ok := strings.CutPrefix(ref, "#/components/")
		kind, name, ok2 := strings.Cut(rest, "/")
		if !ok || !ok2 {
			return
		}
		of, _ := all[kind].(object)
		into, _ := out[kind].(object)
		if _, done := into[name]; done || of[name] == nil {
			return
		}
		if into == nil {
			into = object{}
			out[kind] = into
		}
		into[name] = of[name]
		walk(of[name])
	}
	walk = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, x := range v {
				walk(x)
			}
		case object:
			if ref, ok := v["$ref"].(string); ok {
				take(ref)
			}
			for _, x := range v {
				walk(x)
			}
		}
	}
	walk(paths)
	take("#/components/schemas/Error")
	return out
}
