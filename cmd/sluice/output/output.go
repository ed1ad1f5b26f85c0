// Package output shows answers of the APIs: as text for people, or as JSON or YAML
// for programs.
//
// On a terminal, text is what fits a screen: times relative to now, long values cut.
// Written anywhere else it is whole, with times as RFC 3339 in UTC, so that scripts
// read the same whoever runs them.
package output

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/goccy/go-yaml"
)

// Formats are the values of --output.
var Formats = []string{"text", "json", "yaml", "wide"}

// Printer writes answers to Out.
type Printer struct {
	Out      io.Writer
	Format   string // one of Formats; "": text
	Quiet    bool   // only what identifies each object
	Terminal bool   // Out is one
	Now      time.Time
}

// Text says whether answers are shown for people.
func (p Printer) Text() bool { return p.Format != "json" && p.Format != "yaml" }

// Field is one of an object, with what stands for it where it is absent: its default.
// A name may lead into an object, as in usage.requests.
type Field struct{ Name, Default string }

// Fields reads names, each with its default after a =, as in "listener=gateway".
func Fields(names ...string) []Field {
	list := make([]Field, len(names))
	for i, n := range names {
		list[i].Name, list[i].Default, _ = strings.Cut(n, "=")
	}
	return list
}

// Object writes an object as lines `name  value`.
func (p Printer) Object(answer []byte, fields []Field) error {
	if !p.Text() && !p.Quiet {
		return p.Document(answer)
	}
	var v map[string]any
	if err := json.Unmarshal(answer, &v); err != nil {
		return fmt.Errorf("the answer is not a JSON object: %w", err)
	}
	if p.Quiet {
		_, err := fmt.Fprintln(p.Out, p.whole().cell(value(v, fields[0])))
		return err
	}
	t := tabwriter.NewWriter(p.Out, 0, 0, 2, ' ', 0)
	for _, f := range fields {
		fmt.Fprintf(t, "%s\t%s\n", f.Name, p.uncut(value(v, f)))
	}
	return t.Flush()
}

// List writes the objects in data as a table of fields, and of those in wide if that
// is asked for.
func (p Printer) List(answer []byte, fields, wide []Field) error {
	if !p.Text() && !p.Quiet {
		return p.Document(answer)
	}
	var v struct {
		Data []map[string]any `json:"data"`
	}
	if err := json.Unmarshal(answer, &v); err != nil {
		return fmt.Errorf("the answer is not a list: %w", err)
	}
	if p.Quiet {
		for _, item := range v.Data {
			if _, err := fmt.Fprintln(p.Out, p.whole().cell(value(item, fields[0]))); err != nil {
				return err
			}
		}
		return nil
	}
	if p.Format == "wide" {
		fields = slices.Concat(fields, wide)
	}
	t := tabwriter.NewWriter(p.Out, 0, 0, 2, ' ', 0)
	cells := make([]string, len(fields))
	for i, f := range fields {
		cells[i] = strings.ToUpper(f.Name[strings.LastIndexByte(f.Name, '.')+1:])
	}
	fmt.Fprintln(t, strings.Join(cells, "\t"))
	for _, item := range v.Data {
		for i, f := range fields {
			cells[i] = p.cell(value(item, f))
		}
		fmt.Fprintln(t, strings.Join(cells, "\t"))
	}
	return t.Flush()
}

// Document writes the whole answer as it is, only readable.
func (p Printer) Document(answer []byte) error {
	if p.Format == "yaml" {
		return YAML(p.Out, answer)
	}
	var b bytes.Buffer
	if err := json.Indent(&b, bytes.TrimSpace(answer), "", "  "); err != nil {
		return fmt.Errorf("the answer is not JSON: %w", err)
	}
	_, err := fmt.Fprintln(p.Out, b.String())
	return err
}

// YAML writes JSON as YAML, in the order of its fields.
func YAML(w io.Writer, answer []byte) error {
	var d any
	if err := yaml.UnmarshalWithOptions(answer, &d, yaml.UseOrderedMap()); err != nil {
		return fmt.Errorf("the answer is not JSON: %w", err)
	}
	text, err := yaml.MarshalWithOptions(d, yaml.IndentSequence(true))
	if err != nil {
		return err
	}
	_, err = w.Write(text)
	return err
}

// value is what v has of a field; its default where that is absent, null or "".
func value(v map[string]any, f Field) any {
	var at any = v
	for name := range strings.SplitSeq(f.Name, ".") {
		inner, _ := at.(map[string]any)
		at = inner[name]
	}
	if f.Default != "" && (at == nil || at == "") {
		return f.Default
	}
	return at
}
