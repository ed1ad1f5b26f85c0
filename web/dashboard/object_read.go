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
