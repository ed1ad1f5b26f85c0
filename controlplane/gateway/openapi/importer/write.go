package importer

import (
	"bytes"
	"encoding/json"
	"strings"

	"go.yaml.in/yaml/v3"
	"sluice.dev/sluice/controlplane/gateway/config"
)

// routes writes the routes of the product in the place of those that it had, under
// the names of their groups.
func (f *lines) routes(before, want config.Document) {
	name := f.result.Product.Name
	at := f.value("routes")
	var fresh []config.Route
	for _, r := range want.Routes {
		if r.Product == name {
			fresh = append(fresh, r)
		}
	}
	if at == nil {
		f.add += "routes:" + grouped(fresh, f.result.Groups, "  ")
		return
	}
	starts, ok := f.items("routes", at)
	if !ok {
		f.replace("routes", at, elements(want.Routes))
		return
	}
	put := -1
	for i, r := range before.Routes {
		if r.Product != name {
			continue
		}
		if put < 0 {
			put = starts[i]
		}
		f.edits = append(f.edits, edit{starts[i], starts[i+1], ""})
	}
	if put < 0 {
		put = starts[len(starts)-1]
	}
	f.edits = append([]edit{{put, put, strings.TrimPrefix(grouped(fresh, f.result.Groups, indent(at)), "\n")}}, f.edits...)
}

// grouped writes routes with the name of each group above its first one.
func grouped(routes []config.Route, groups map[string]string, indent string) string {
	if len(routes) == 0 {
		return " []\n"
	}
	var b strings.Builder
	b.WriteString("\n")
	last := ""
	for _, r := range routes {
		if g := groups[r.Name]; g != last && g != "" {
			b.WriteString(indent + "# " + strings.Join(strings.Fields(g), " ") + "\n")
			last = g
		}
		b.WriteString(block([]any{r}, indent)[1:])
	}
	return b.String()
}

// block writes the elements of a list on lines of their own, after a line break.
func block(list []any, indent string) string {
	if len(list) == 0 {
		return " []\n"
	}
	var b strings.Builder
	b.WriteString("\n")
	for _, x := range list {
		text, err := marshal(x)
		if err != nil {
			return " []\n" // values of our own types can be written
		}
		for i, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
			mark := "  "
			if i == 0 {
				mark = "- "
			}
			b.WriteString(indent + mark + line + "\n")
		}
	}
	return b.String()
}

// marshal writes a value of the configuration as YAML, its fields in the order of
// their type, and lists of plain values on one line.
func marshal(v any) (string, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return "", err
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	n, err := node(dec)
	if err != nil {
		return "", err
	}
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(n); err != nil {
		return "", err
	}
	return b.String(), enc.Close()
}

// node reads the next JSON value as YAML, in its order.
func node(dec *json.Decoder) (*yaml.Node, error) {
	t, err := dec.Token()
	if err != nil {
		return nil, err
	}
	n := &yaml.Node{}
	switch t := t.(type) {
	case json.Delim:
		n.Kind = yaml.MappingNode
		if t == '[' {
			n.Kind, n.Style = yaml.SequenceNode, yaml.FlowStyle
		}
		for dec.More() {
			x, err := node(dec)
			if err != nil {
				return nil, err
			}
			if n.Kind == yaml.SequenceNode && x.Kind != yaml.ScalarNode {
				n.Style = 0
			}
			n.Content = append(n.Content, x)
		}
		_, err = dec.Token()
		return n, err
	case json.Number:
		n.Kind, n.Tag, n.Value = yaml.ScalarNode, "!!int", t.String()
		return n, nil
	}
	return n, n.Encode(t)
}
