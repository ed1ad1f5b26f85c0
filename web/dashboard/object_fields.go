package dashboard

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
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
		in("path", "text", "Path", "Literal (/v1/streams), with variables (/v1/streams/{id}), or ending in /* for everything below.", needed),
		in("methods", "list", "Methods", "Such as GET, POST; empty: all."),
		in("hosts", "list", "Host names", "Such as api.example.com or *.example.com; empty: all."),
		in("product", "text", "Product", "", of("select", orNone("none: the edge answers by itself", names(d.Products, func(p config.Product) string { return p.Name })))),
		in("auth", "list", "Who gets in", "", of("checks", []choice{{"key", "API key"}, {"token", "token"}, {"session", "session"}, {"certificate", "client certificate"}, {"none", "anybody"}})),
		in("scope", "text", "Scope", "That the caller needs; empty: none.", of("", choices(d.Scopes...))),
		in("class", "text", "Limit class", "", of("select", orNone("the first class", names(d.Classes, func(c config.Class) string { return c.Name })))),
		in("feature", "text", "Feature", "That the caller's plan needs."),
		in("timeout", "text", "Timeout", "Such as 30s."),
		in("body_limit", "number", "Largest body, in bytes", ""),
		in("streaming", "truth", "Answers are streams", ""),
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

// take removes a member from m and returns it; nil: there is none. Objects that are empty
// then go with it.
func take(m map[string]any, path string) any {
	first, rest, nested := strings.Cut(path, ".")
	if !nested {
		v := m[first]
		delete(m, first)
		return v
	}
	inner, ok := m[first].(map[string]any)
	if !ok {
		return nil
	}
	v := take(inner, rest)
	if len(inner) == 0 {
		delete(m, first)
	}
	return v
}

// put sets a member of m. It fails if something else stands in its way.
func put(m map[string]any, path string, v any) bool {
	first, rest, nested := strings.Cut(path, ".")
	if !nested {
		_, there := m[first]
		m[first] = v
		return !there
	}
	if m[first] == nil {
		m[first] = map[string]any{}
	}
	inner, ok := m[first].(map[string]any)
	return ok && put(inner, rest, v)
}

// show puts a member's value into its input. It reports false for one that the input
// cannot hold.
func (f *objectField) show(v any) bool {
	switch value := v.(type) {
	case nil:
		return true
	case bool:
		f.Value = onIf(value)
		return f.As == "truth"
	case string:
		f.Value = value
		return f.As == "text"
	case json.Number:
		f.Value = value.String()
		return f.As == "number"
	case []any:
		return f.showList(value)
	}
	return false
}

// showList is show for a list.
func (f *objectField) showList(list []any) bool {
	var parts []string
	for _, v := range list {
		switch one := v.(type) {
		case string:
			parts = append(parts, one)
		case map[string]any:
			text := fmt.Sprint(one["address"])
			if w, ok := one["weight"]; ok {
				text += " " + fmt.Sprint(w)
			}
			parts = append(parts, text)
		}
	}
	switch {
	case f.As == "addresses":
		f.Value = strings.Join(parts, "\n")
	case f.Kind == "checks":
		f.Chosen = parts
		for _, name := range parts {
			if !slices.ContainsFunc(f.Choices, func(c choice) bool { return c.Value == name }) {
				f.Choices = append(f.Choices, choice{name, name})
			}
		}
	default:
		f.Value = strings.Join(parts, ", ")
	}
	return f.As == "list" || f.As == "addresses"
}

// read is what an input says of its member; nil: nothing.
func (f *form) read(o objectField) (any, *decision.Detail) {
	text := f.text(o.Path)
	switch o.As {
	case "truth":
		if text != "" {
			return true, nil
		}
	case "list":
		if list := append(f.parts(o.Path), f.at(o.Path).Chosen...); len(list) > 0 {
			return list, nil
		}
	case "addresses":
		return readAddresses(o.Path, text)
	case "number":
		if _, err := strconv.ParseInt(text, 10, 64); text != "" && err != nil {
			return nil, &decision.Detail{Field: o.Path, Issue: "is not a whole number"}
		}
		if text != "" {
			return json.Number(text), nil
		}
	default:
		if text != "" {
			return text, nil
		}
	}
	return nil, nil
}

// readAddresses reads the addresses of a product, a line each.
func readAddresses(path, text string) (any, *decision.Detail) {
	var list []map[string]any
	for line := range strings.Lines(text) {
		parts := strings.Fields(line)
		if len(parts) == 0 {
			continue
		}
		one := map[string]any{"address": parts[0]}
		if len(parts) > 1 {
			if _, err := strconv.ParseUint(parts[1], 10, 32); err != nil || len(parts) > 2 {
				return nil, &decision.Detail{Field: path, Issue: "has a line that is not an address and a weight", Expected: "such as 10.0.0.1:3000 2"}
			}
			one["weight"] = json.Number(parts[1])
		}
		list = append(list, one)
	}
	if list == nil {
		return nil, nil
	}
	return list, nil
}

// moreName is the input of members that have none.
const moreName = "more"

// objectInputs are the inputs for an object of a kind, filled in with what it is.
func objectInputs(kind string, d config.Document, all bool, object map[string]any) []field {
	object = maps.Clone(object)
	var list []field
	for _, o := range objectFields(kind, d, all) {
		if v := take(object, o.Path); !o.show(v) {
			put(object, o.Path, v)
		}
		list = append(list, o.field)
	}
	more := field{Name: moreName, Label: "Everything else", Kind: "code", Hint: "As JSON: the fields of the configuration that have no input above.", Of: []string{moreName}}
	if len(object) > 0 {
		more.Value = indented(object)
	}
	return append(list, more)
}

// readObject is the object that a form says.
func readObject(f *form, kind string, d config.Document, all bool) (json.RawMessage, error) {
	object := map[string]any{}
	var details []decision.Detail
	if text := f.text(moreName); text != "" {
		read := json.NewDecoder(strings.NewReader(text))
		read.UseNumber()
		if err := read.Decode(&object); err != nil || object == nil || read.More() {
			return nil, apierror.Invalid([]decision.Detail{{Field: moreName, Issue: "is not a JSON object", Expected: `such as {"retries": {"limit": 2}}`}})
		}
	}
	for _, o := range objectFields(kind, d, all) {
		v, wrong := f.read(o)
		if wrong != nil {
			details = append(details, *wrong)
		} else if v != nil && !put(object, o.Path, v) {
			details = append(details, decision.Detail{Field: moreName, Issue: "has " + o.Path + ", which has an input of its own"})
		}
	}
	if err := apierror.Invalid(details); err != nil {
		return nil, err
	}
	return json.Marshal(object)
}

// indented is an object as people read it.
func indented(object map[string]any) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if e.Encode(object) != nil {
		return ""
	}
	return strings.TrimSpace(b.String())
}
