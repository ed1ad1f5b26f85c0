package importer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/controlplane/gateway/openapi/document"
)

// Head is how a file begins that an import writes.
const Head = `# yaml-language-server: $schema=sluice.schema.json
include: [builtin]  # the gateway's own routes: health, docs, keys
classes:
  - {name: default, per_minute: 600}  # requests of one account in any 60 seconds
`

// maxFile bounds a configuration in YAML, as config.ParseYAML does.
const maxFile = 2 << 20

// LargeError says that a file would be larger than a configuration may be.
type LargeError struct{ Bytes int }

func (e *LargeError) Error() string {
	return fmt.Sprintf("the file would have %d bytes, more than the %d that a configuration in YAML may have: import a part of the document", e.Bytes, maxFile)
}

// Into imports d and puts it into text, as Import and Update do; where schemas would
// make the file too large, with fewer operations validated.
func Into(text []byte, d *document.Document, o Options) (Result, []byte, error) {
	for {
		r, err := Import(d, o)
		if err != nil {
			return r, nil, err
		}
		out, err := Update(text, r)
		large, is := errors.AsType[*LargeError](err)
		if !is || r.Validated == 0 {
			return r, out, err
		}
		o.Checks.Text = max(1, r.checked*15/16*(maxFile>>10)/(large.Bytes>>10))
	}
}

// Update returns the text of a configuration, in YAML, with what was imported put
// into it. What the file says of other things stays as it is, comments included; the
// routes of the product, and the comments above them, are written anew. An empty text
// is a new file.
//
// It takes time linear in text and in what was imported.
func Update(text []byte, r Result) ([]byte, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		text = []byte(Head)
	}
	before, _, err := config.ParseYAML(text)
	if err != nil {
		return nil, err
	}
	want := Merge(before, r)
	f := &lines{all: strings.SplitAfter(string(text), "\n"), result: r}
	if last := len(f.all) - 1; f.all[last] == "" {
		f.all = f.all[:last]
	} else {
		f.all[last] += "\n"
	}
	var root yaml.Node
	if err := yaml.Unmarshal(text, &root); err != nil {
		return nil, err
	}
	if root.Kind == yaml.DocumentNode {
		f.root = root.Content[0]
	}
	if f.root != nil && (f.root.Kind != yaml.MappingNode || f.root.Style&yaml.FlowStyle != 0) {
		return nil, errors.New("is JSON, or YAML in braces: an import writes into YAML of lines; `sluice config show -o yaml` makes it so")
	}
	f.list("classes", elements(before.Classes), elements(want.Classes), func(a any) string { return a.(config.Class).Name })
	f.list("scopes", elements(before.Scopes), elements(want.Scopes), func(a any) string { return a.(string) })
	f.list("products", elements(before.Products), elements(want.Products), func(a any) string { return a.(config.Product).Name })
	f.routes(before, want)
	out := f.text()
	if len(out) > maxFile {
		return nil, &LargeError{len(out)}
	}
	if got, err := reread(out); err != nil || len(config.Diff(got, want)) > 0 {
		return nil, errors.New("the file is laid out in a way that an import cannot edit: put each element of its lists on lines of its own")
	}
	return out, nil
}

// reread reads what was written, to see that it says what it is to say.
func reread(text []byte) (config.Document, error) {
	values, err := document.Parse(text)
	if err != nil {
		return config.Document{}, err
	}
	b, err := json.Marshal(values)
	if err != nil {
		return config.Document{}, err
	}
	return config.ParseJSON(b)
}

func elements[T any](list []T) []any {
	out := make([]any, len(list))
	for i, x := range list {
		out[i] = x
	}
	return out
}

// lines is a file that is edited by its lines.
type lines struct {
	all    []string
	root   *yaml.Node // nil: the file is empty
	edits  []edit
	add    string // what goes to the end
	result Result
}

// edit puts text in the place of lines from to to, counted from 0.
type edit struct {
	from, to int
	text     string
}

// text is the file with all edits made.
func (f *lines) text() []byte {
	slices.SortStableFunc(f.edits, func(a, b edit) int { return a.from - b.from })
	var b strings.Builder
	at := 0
	for _, e := range f.edits {
		b.WriteString(strings.Join(f.all[at:e.from], ""))
		b.WriteString(e.text)
		at = e.to
	}
	b.WriteString(strings.Join(f.all[at:], ""))
	b.WriteString(f.add)
	return []byte(b.String())
}

// value is what stands under a key of the root; nil: nothing.
func (f *lines) value(key string) *yaml.Node {
	if f.root == nil {
		return nil
	}
	for i := 0; i+1 < len(f.root.Content); i += 2 {
		if f.root.Content[i].Value == key {
			return f.root.Content[i+1]
		}
	}
	return nil
}

// end is the line after what stands under a key: that of the next key, or of the
// comments above it.
func (f *lines) end(key string) int {
	for i := 0; i+3 < len(f.root.Content); i += 2 {
		if f.root.Content[i].Value == key {
			return f.above(f.root.Content[i+2].Line - 1)
		}
	}
	return len(f.all)
}

// above is the first of the comments that stand directly above a line.
func (f *lines) above(line int) int {
	for line > 0 && strings.HasPrefix(strings.TrimSpace(f.all[line-1]), "#") {
		line--
	}
	return line
}

// items are the lines on which the elements of a list begin, comments included, and
// after them the end of the list; ok is false when they are not on lines of their own.
func (f *lines) items(key string, list *yaml.Node) (starts []int, ok bool) {
	if list.Kind != yaml.SequenceNode || list.Style&yaml.FlowStyle != 0 || len(list.Content) == 0 {
		return nil, false
	}
	for _, n := range list.Content {
		line := n.Line - 1
		for line > 0 && !strings.HasPrefix(strings.TrimSpace(f.all[line]), "-") {
			line--
		}
		starts = append(starts, f.above(line))
	}
	end := f.end(key)
	for end > 0 && strings.TrimSpace(f.all[end-1]) == "" { // blank lines go with what follows
		end--
	}
	return append(starts, end), true
}

// indent is what stands before the dashes of a list.
func indent(list *yaml.Node) string { return strings.Repeat(" ", list.Column-1) }

// list brings a list of the file from what it was to what it is to be, by the names
// of its elements.
func (f *lines) list(key string, before, want []any, name func(any) string) {
	at := f.value(key)
	if at == nil {
		if len(want) == 0 {
			return
		}
		f.add += key + ":" + block(want, "  ")
		return
	}
	starts, ok := f.items(key, at)
	if !ok {
		if !same(before, want) {
			f.replace(key, at, want)
		}
		return
	}
	have := map[string]any{}
	for _, x := range want {
		have[name(x)] = x
	}
	for i, x := range before {
		now, stays := have[name(x)]
		delete(have, name(x))
		if !stays {
			f.edits = append(f.edits, edit{starts[i], starts[i+1], ""})
		} else if !same(x, now) {
			f.edits = append(f.edits, edit{starts[i], starts[i+1], block([]any{now}, indent(at))[1:]})
		}
	}
	for _, x := range want {
		if _, fresh := have[name(x)]; fresh {
			f.edits = append(f.edits, edit{starts[len(starts)-1], starts[len(starts)-1], block([]any{x}, indent(at))[1:]})
		}
	}
}

// replace writes a list anew whose elements are not on lines of their own.
func (f *lines) replace(key string, at *yaml.Node, want []any) {
	for i := 0; i+1 < len(f.root.Content); i += 2 {
		if f.root.Content[i] == nil || f.root.Content[i+1] != at {
			continue
		}
		from, end := f.root.Content[i].Line-1, f.end(key)
		for end > from+1 && strings.TrimSpace(f.all[end-1]) == "" {
			end--
		}
		f.edits = append(f.edits, edit{from, end, key + ":" + block(want, "  ")})
	}
}

// same reports whether two values are the same configuration.
func same(a, b any) bool {
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	return bytes.Equal(x, y)
}
