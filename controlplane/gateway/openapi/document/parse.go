package document

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	"sluice.dev/sluice/filters/decision"
)

var (
	errDeep  = fmt.Errorf("is nested more than %d deep", maxDepth)
	errLarge = fmt.Errorf("has, with all that its references and aliases stand for, more than %d values or %d schemas", maxValues, maxNodes)
)

// Parse reads an object from JSON or YAML, of MaxBytes at most. Numbers stay as they
// were written.
func Parse(text []byte) (Object, error) {
	if len(text) > MaxBytes {
		return nil, fmt.Errorf("has more than %d bytes", MaxBytes)
	}
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	var v any
	var err error
	if trimmed := bytes.TrimSpace(text); len(trimmed) > 0 && trimmed[0] == '{' {
		if v, err = parseJSON(trimmed); err != nil && !errors.Is(err, errDeep) {
			if y, yamlErr := parseYAML(text); yamlErr == nil { // a flow mapping of YAML
				v, err = y, nil
			}
		}
	} else {
		v, err = parseYAML(text)
	}
	if err != nil {
		return nil, err
	}
	root, ok := v.(Object)
	if !ok {
		return nil, errors.New("is not an OpenAPI document: it is no object")
	}
	return root, nil
}

func parseJSON(text []byte) (v any, err error) {
	depth, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case !quoted && (c == '{' || c == '['):
			if depth++; depth > maxDepth {
				return nil, errDeep
			}
		case !quoted && (c == '}' || c == ']'):
			depth--
		}
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	if err = dec.Decode(&v); err != nil {
		return nil, fmt.Errorf("is not valid JSON: %s", decision.Cut(err.Error(), 200))
	}
	if _, err = dec.Token(); err != io.EOF {
		return nil, errors.New("is not valid JSON: something follows the document")
	}
	return v, nil
}

func parseYAML(text []byte) (any, error) {
	var n yaml.Node
	if err := yaml.Unmarshal(text, &n); err != nil {
		return nil, fmt.Errorf("is not valid YAML: %s", decision.Cut(strings.TrimPrefix(err.Error(), "yaml: "), 200))
	}
	if n.Kind != yaml.DocumentNode {
		return nil, errors.New("is empty")
	}
	c := converter{left: maxValues}
	v := c.value(n.Content[0], 0)
	return v, c.err
}

// converter turns nodes of YAML into JSON values. An alias counts as what it stands
// for each time.
type converter struct {
	left int
	err  error
}

func (c *converter) value(n *yaml.Node, depth int) any {
	if c.left--; c.left < 0 && c.err == nil {
		c.err = errLarge
	}
	if depth > maxDepth && c.err == nil {
		c.err = errDeep
	}
	if c.err != nil {
		return nil
	}
	switch n.Kind {
	case yaml.AliasNode:
		return c.value(n.Alias, depth+1)
	case yaml.SequenceNode:
		out := make([]any, len(n.Content))
		for i, x := range n.Content {
			out[i] = c.value(x, depth+1)
		}
		return out
	case yaml.MappingNode:
		return c.mapping(n, depth)
	case yaml.ScalarNode:
		return scalar(n)
	}
	return nil
}

func (c *converter) mapping(n *yaml.Node, depth int) Object {
	out := make(Object, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if key.Kind != yaml.ScalarNode {
			continue
		}
		v := c.value(n.Content[i+1], depth+1)
		if key.Tag != "!!merge" {
			out[key.Value] = v
			continue
		}
		list, ok := v.([]any)
		if !ok {
			list = []any{v}
		}
		for _, from := range list {
			more, _ := from.(Object)
			for k, x := range more {
				if _, ok := out[k]; !ok {
					out[k] = x
				}
			}
		}
	}
	return out
}

// scalar is what a scalar of YAML is in JSON. Times and what JSON has no word for
// stay text.
func scalar(n *yaml.Node) any {
	switch n.ShortTag() {
	case "!!null":
		return nil
	case "!!bool":
		var b bool
		if n.Decode(&b) == nil {
			return b
		}
	case "!!int", "!!float":
		if json.Valid([]byte(n.Value)) {
			return json.Number(n.Value)
		}
		var f float64
		if n.Decode(&f) == nil && f-f == 0 {
			return json.Number(strconv.FormatFloat(f, 'g', -1, 64))
		}
	}
	return n.Value
}
