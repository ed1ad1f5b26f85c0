package dashboard

import (
	"fmt"
	"slices"
	"strings"

	"sluice.dev/sluice/controlplane/gateway/config"
)

// objectField is an input of the form of a route, product, plan or class: a member of the
// object's JSON. All members that have no input stand together in one, as JSON, so that
// everything of an object can be changed.
type objectField struct {
	field
	Path string // of the member, with dots between objects
	As   string // what it is in JSON: text, number, truth, list, addresses
}

// in is an input for a member.
func in(path, as, label, hint string, more ...func(*field)) objectField {
	f := objectField{field: field{Name: path, Label: label, Hint: hint, Of: []string{path}}, Path: path, As: as}
	switch as {
	case "truth":
		f.Kind = "check"
	case "number":
		f.Kind, f.Max = "number", 20
	case "addresses":
		f.Kind = "area"
	}
	for _, change := range more {
		change(&f.field)
	}
	return f
}

// needed makes an input one that must be filled in.
func needed(f *field) { f.Required = true }

// depends makes an input one of which others say whether it must be filled in.
func depends(f *field) { f.Depends = true }

// of gives an input what can be chosen; with checks several.
func of(kind string, list []choice) func(*field) {
	return func(f *field) { f.Kind, f.Choices = kind, list }
}

// orNone puts a choice of nothing before the others.
func orNone(label string, list []choice) []choice {
	return slices.Concat([]choice{{"", label}}, list)
}

// objectFields are the inputs of a kind of object in a document. all is false where there
// are no products of the platform.
func objectFields(kind string, d config.Document, all bool) []objectField {
	switch kind {
	case "routes":
		return routeFields(d, all)
	case "products":
		return productFields()
	case "plans":
		return planFields(d, all)
	}
	return []objectField{
		in("per_minute", "number", "Requests a minute", "For plans that do not say otherwise.", needed),
		in("burst", "number", "Burst", "Requests above that in a short burst."),
		in("shadow", "truth", "Count what the limit would refuse, and refuse nothing", ""),
		in("when_cut_off", "text", "While edges cannot reach the others", "", of("select", orNone("as by default: available", choices(config.CutOffAvailable, config.CutOffStrict)))),
		in("connections", "number", "Open connections of an account", "0 or empty: any number."),
		in("connections_per_key", "number", "Open connections of a key", "0 or empty: any number."),
	}
}

// names are the names of objects, as choices.
func names[T any](list []T, name func(T) string) (out []choice) {
	for _, v := range list {
		out = append(out, choice{name(v), name(v)})
	}
	return out
}

func routeFields(d config.Document, all bool) []objectField {
	list := []objectField{
		in("path", "text", "Path", "Literal (/v1/orders), with variables (/v1/orders/{id}), or ending in /* for everything below.", needed),
		in("methods", "list", "Methods", "Such as GET, POST; empty: all."),
		in("hosts", "list", "Host names", "Such as api.example.com or *.example.com; empty: all."),
		in("product", "text", "Product", "", of("select", orNone("none: the edge answers by itself", names(d.Products, func(p config.Product) string { return p.Name })))),
		in("auth", "list", "Who gets in", "", of("checks", []choice{{"key", "API key"}, {"token", "token"}, {"session", "session"}, {"certificate", "client certificate"}, {"none", "anybody"}})),
		in("scope", "text", "Scope", "That the caller needs; empty: none.", of("", choices(d.Scopes...))),
		in("class", "text", "Limit class", "", of("select", orNone("the first class", names(d.Classes, func(c config.Class) string { return c.Name })))),
		in("feature", "text", "Feature", "That the caller's plan needs."),
		in("timeout", "text", "Timeout", "Such as 30s."),
		in("body_limit", "number", "Largest body, in bytes", ""),
		in("streaming", "truth", "Answers last, such as server-sent events", ""),
		in("compress", "truth", "Compress answers", ""),
	}
	if all {
		list = append(list, in("price", "text", "Price of a request without a key", "In whole units of the token, such as 0.01."))
	}
	return list
}

func productFields() []objectField {
	return []objectField{
		in("upstream", "text", "Address", "http://HOST:PORT, https://NAME, grpc://HOST:PORT or grpcs://NAME; in place of the addresses below.", depends),
		in("upstreams", "addresses", "Addresses", "A line each: host:port, and a weight if they differ.", depends),
		in("host", "text", "Host header", "That the product gets; empty: what the client sent."),
		in("health_path", "text", "Path of health checks", "Empty: none."),
		in("connect_timeout", "text", "Time to connect", "Such as 500ms; empty: 1s."),
		in("max_requests", "number", "Requests at once, of one edge", "Empty: 16384."),
		in("http2", "truth", "Speaks HTTP/2", ""),
		in("grpc", "truth", "Speaks gRPC", ""),
	}
}

func planFields(d config.Document, all bool) []objectField {
	var list []objectField
	for _, c := range d.Classes {
		if strings.Contains(c.Name, ".") {
			continue // stands with everything else: dots part the names of members
		}
		list = append(list, in("limits."+c.Name+".per_minute", "number", "Requests a minute of class "+c.Name, fmt.Sprintf("Empty: %d, as the class says.", c.PerMinute)))
	}
	list = append(list,
		in("products", "list", "Products", "None chosen: all.", of("checks", names(d.Products, func(p config.Product) string { return p.Name }))),
		in("features", "list", "Features", "That routes may ask for."),
		in("quota.requests", "number", "Requests a month", "Empty: any number."))
	if all {
		list = append(list, in("tokens.daily", "number", "Chat tokens a day", "Empty: any number."), in("tokens.monthly", "number", "Chat tokens a month", "Empty: any number."))
	}
	return append(list,
		in("price.monthly", "text", "Fee of a month", "A decimal number, such as 29.00."),
		in("price.currency", "text", "Currency", "Three capital letters, such as EUR.", depends))
}
