package config

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Change is one difference between two documents.
type Change struct {
	Kind string `json:"kind"` // added, removed or changed
	// Path names what differs by the names of things, not by their places:
	// routes.streams.list, or routes.streams.list.scope.
	Path string          `json:"path"`
	From json.RawMessage `json:"from,omitempty"`
	To   json.RawMessage `json:"to,omitempty"`
}

// Diff returns what must change in a to make it b, in the order of paths. The
// order of elements in a document's lists does not count, but for classes: the
// first one is that of routes which name none.
func Diff(a, b Document) []Change {
	a.Routes, b.Routes = differing(a.Routes, b.Routes)
	x, y := flatten(a), flatten(b)
	for path, from := range x { // most of it is as it was: then its fields need not be looked at
		if to, ok := y[path]; ok && reflect.DeepEqual(from, to) {
			delete(x, path)
			delete(y, path)
		}
	}
	var out []Change
	for _, path := range slices.Sorted(maps.Keys(union(x, y))) {
		from, had := x[path]
		to, has := y[path]
		switch {
		case !had:
			out = append(out, Change{Kind: "added", Path: path, To: text(fields(to))})
		case !has:
			out = append(out, Change{Kind: "removed", Path: path, From: text(fields(from))})
		default:
			out = append(out, fieldChanges(path, fields(from), fields(to))...)
		}
	}
	return out
}

// object is an element of a document as JSON fields.
type object map[string]json.RawMessage

// flatten maps each element of d to its path.
func flatten(d Document) map[string]any {
	m := map[string]any{"settings": struct {
		AccessLog    string `json:"access_log"`
		RequestLog   string `json:"request_log"`
		Anonymous    uint32 `json:"anonymous_per_minute"`
		DefaultClass string `json:"default_class"`
		KeyHeaders   string `json:"key_headers"`
		Proxies      uint32 `json:"trusted_proxies"`
	}{d.AccessLog, d.RequestLog, d.AnonymousLimit(), d.defaultClass(), strings.Join(d.KeyHeaders, ", "), d.TrustedProxies}}
	if d.X402 != nil {
		m["x402"] = d.X402
	}
	if d.Engines != nil {
		m["engines"] = d.Engines
	}
	if d.ClientCertificates != nil {
		m["client_certificates"] = d.ClientCertificates
	}
	for _, c := range d.Certificates {
		m["certificates."+c.Name] = c
	}
	for _, is := range d.Issuers {
		m["issuers."+is.Issuer] = is
	}
	for _, c := range d.Classes {
		m["classes."+c.Name] = c
	}
	for _, p := range d.Plans {
		m["plans."+p.Name] = p
	}
	for _, s := range d.Scopes {
		m["scopes."+s] = struct{}{}
	}
	for _, p := range d.Products {
		m["products."+p.Name] = p
	}
	for _, r := range d.Routes {
		m["routes."+r.Name] = r
	}
	return m
}

func (d Document) defaultClass() string {
	if len(d.Classes) == 0 {
		return ""
	}
	return d.Classes[0].Name
}

// fields returns the JSON fields of a struct of this package, all of which
// encode.
func fields(v any) object {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	var o object
	if err := json.Unmarshal(b, &o); err != nil {
		panic(err)
	}
	delete(o, "name")
	return o
}

func fieldChanges(path string, from, to object) []Change {
	var out []Change
	for _, name := range slices.Sorted(maps.Keys(union(from, to))) {
		a, had := from[name]
		b, has := to[name]
		switch at := path + "." + name; {
		case !had:
			out = append(out, Change{Kind: "added", Path: at, To: b})
		case !has:
			out = append(out, Change{Kind: "removed", Path: at, From: a})
		case string(a) != string(b):
			out = append(out, Change{Kind: "changed", Path: at, From: a, To: b})
		}
	}
	return out
}

// text encodes o; an element without fields has none to show.
func text(o object) json.RawMessage {
	if len(o) == 0 {
		return nil
	}
	b, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	return b
}

func union[V any](a, b map[string]V) map[string]V {
	u := maps.Clone(a)
	maps.Copy(u, b)
	return u
}
