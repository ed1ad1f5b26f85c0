package importer

import (
	"bytes"
	"encoding/json"
	"strconv"
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
	compactChecks(n)
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(n); err != nil {
		return "", err
	}
	return b.String(), enc.Close()
}

// numeral writes a number of JSON as YAML: readers take it for text where an integer is
// larger than machines have, or has an exponent and no point.
func numeral(s string) string {
	if strings.ContainsRune(s, '.') || !strings.ContainsRune(s, 'e') && fitsInteger(s) {
		return s
	}
	whole, exponent, found := strings.Cut(s, "e")
	if found {
		exponent = "e" + exponent
	}
	return whole + ".0" + exponent
}

func fitsInteger(s string) bool {
	_, err := strconv.ParseInt(s, 10, 64)
	_, unsigned := strconv.ParseUint(s, 10, 64)
	return err == nil || unsigned == nil
}

// keepsDigits reports whether a file keeps a number: readers of YAML make a float64 of
// what is no integer of 64 bits.
func keepsDigits(s string) bool {
	f, err := strconv.ParseFloat(s, 64)
	return fitsInteger(s) || err == nil && digits(s) == digits(strconv.FormatFloat(f, 'e', -1, 64))
}

// digits are those of a number that count, wherever its point is.
func digits(s string) string {
	s, _, _ = strings.Cut(strings.ToLower(s), "e")
	return strings.Trim(strings.NewReplacer("-", "", "+", "", ".", "").Replace(s), "0")
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
		n.Kind, n.Value = yaml.ScalarNode, numeral(t.String())
		return n, nil
	}
	err = n.Encode(t)
	if text, ok := t.(string); ok && looksNested(text) {
		n.Style = yaml.DoubleQuotedStyle
	}
	return n, err
}

// looksNested reports whether a reader could take a text that is not in quotes for deep
// nesting; see config.TooDeep.
func looksNested(text string) bool {
	const most = 100
	return strings.Count(text, "[")+strings.Count(text, "{") > strings.Count(text, "]")+strings.Count(text, "}") ||
		strings.Count(text, "-")+strings.Count(text, ":")+strings.Count(text, "?") > most
}

// maxFlow bounds what of a schema stands on one line, in bytes.
const maxFlow = 100

// compactChecks writes the small parts of schemas and requests on one line each.
func compactChecks(element *yaml.Node) {
	if element.Kind != yaml.MappingNode {
		return
	}
	for i := 0; i+1 < len(element.Content); i += 2 {
		switch v := element.Content[i+1]; element.Content[i].Value {
		case "schemas":
			for j := 1; j < len(v.Content); j += 2 {
				compact(v.Content[j])
			}
		case "request":
			compact(v)
		}
	}
}

// compact writes what is small in n on one line, and what is not on many. It returns
// about how many bytes n has on one.
func compact(n *yaml.Node) int {
	if n.Kind == yaml.ScalarNode {
		return len(n.Value) + 2
	}
	size := 2
	for _, x := range n.Content {
		size += compact(x) + 1
	}
	n.Style = 0
	if size <= maxFlow {
		flow(n)
	}
	return size
}

func flow(n *yaml.Node) {
	if n.Kind != yaml.ScalarNode {
		n.Style = yaml.FlowStyle
	}
	for _, x := range n.Content {
		flow(x)
	}
}
