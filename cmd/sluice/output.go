package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
)

// printer writes answers of the admin API for people or, with --output json,
// for programs.
type printer struct{ format string }

// flag adds --output to c and checks it before c runs.
func (p *printer) flag(c *cobra.Command) {
	c.Flags().StringVarP(&p.format, "output", "o", "text", "text or json")
	c.PreRunE = func(*cobra.Command, []string) error {
		if !slices.Contains([]string{"text", "json"}, p.format) {
			return fmt.Errorf("--output is %q: expected text or json", p.format)
		}
		return nil
	}
}

// one writes an object as lines `name  value`, in the order of fields.
func (p *printer) one(w io.Writer, answer []byte, fields ...string) error {
	if p.format == "json" {
		return indent(w, answer)
	}
	var v map[string]any
	if err := json.Unmarshal(answer, &v); err != nil {
		return fmt.Errorf("the answer is not a JSON object: %w", err)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, f := range fields {
		fmt.Fprintf(t, "%s\t%s\n", f, cell(v[f]))
	}
	return t.Flush()
}

// list writes the objects in data as a table of fields.
func (p *printer) list(w io.Writer, answer []byte, fields ...string) error {
	if p.format == "json" {
		return indent(w, answer)
	}
	var v struct {
		Data []map[string]any `json:"data"`
	}
	if err := json.Unmarshal(answer, &v); err != nil {
		return fmt.Errorf("the answer is not a list: %w", err)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, strings.ToUpper(strings.Join(fields, "\t")))
	for _, item := range v.Data {
		cells := make([]string, len(fields))
		for i, f := range fields {
			cells[i] = cell(item[f])
		}
		fmt.Fprintln(t, strings.Join(cells, "\t"))
	}
	return t.Flush()
}

// indent writes the answer as it is, only readable.
func indent(w io.Writer, answer []byte) error {
	var b bytes.Buffer
	if err := json.Indent(&b, bytes.TrimSpace(answer), "", "  "); err != nil {
		return fmt.Errorf("the answer is not JSON: %w", err)
	}
	_, err := fmt.Fprintln(w, b.String())
	return err
}

// cell is a value in one line.
func cell(v any) string {
	switch v := v.(type) {
	case nil:
		return "-"
	case []any:
		parts := make([]string, len(v))
		for i, x := range v {
			parts[i] = cell(x)
		}
		return strings.Join(parts, ",")
	case float64:
		return fmt.Sprintf("%.15g", v)
	default:
		return fmt.Sprint(v)
	}
}
