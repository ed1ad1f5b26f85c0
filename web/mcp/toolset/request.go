package toolset

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/http/httpapi"
)

// Request is what a tool's operation is asked.
type Request struct {
	Method string
	Target string // path and query
	Header http.Header
	Body   []byte // nil: none
	// Fields are those of the answer that are asked for; none: all.
	Fields []string
}

// Request builds the request for arguments, which are a JSON object, or nothing.
// It reports the arguments that are unknown, missing from the path, or cannot be
// written where they belong, decision.MaxDetails at most; all else is for the
// operation to judge. It takes time linear in arguments, but for sorting their
// names, and memory of at most 128 bytes for each of theirs.
func (t Tool) Request(arguments []byte) (Request, []decision.Detail) {
	if len(bytes.TrimSpace(arguments)) > 0 {
		if bad := httpapi.CheckJSON(arguments); len(bad) > 0 {
			if bad[0].Field == "body" {
				bad[0].Field = "arguments"
			}
			return Request{}, bad
		}
	}
	given, err := decode(arguments)
	if err != nil {
		return Request{}, []decision.Detail{{Field: "arguments", Issue: "is not a JSON object", Expected: "an object as in inputSchema"}}
	}
	b := builder{path: t.Path, query: url.Values{}, header: http.Header{}}
	for _, a := range t.Arguments {
		v, ok := given[a.Name]
		delete(given, a.Name)
		if ok || a.place == inPath {
			b.put(a, v)
		}
	}
	for _, name := range sorted(given) {
		if b.refuse(name, "is not an argument of this tool", "one of inputSchema"); len(b.faults) > decision.MaxDetails {
			break
		}
	}
	if len(b.faults) > 0 {
		return Request{}, decision.Bounded(b.faults)
	}
	return b.request(t)
}

// decode reads an object and keeps its numbers as they were written.
func decode(text []byte) (given object, err error) {
	if len(bytes.TrimSpace(text)) == 0 {
		return object{}, nil
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	err = dec.Decode(&given)
	if given == nil {
		given = object{}
	}
	return given, err
}

// builder gathers the parts of a request.
type builder struct {
	path   string
	query  url.Values
	header http.Header
	fields object
	whole  any
	shown  []string
	faults []decision.Detail
}

func (b *builder) refuse(field, issue, expected string) {
	b.faults = append(b.faults, decision.Detail{Field: field, Issue: issue, Expected: expected})
}

// put writes an argument's value where it belongs.
func (b *builder) put(a Argument, v any) {
	switch a.place {
	case inBody:
		if b.fields == nil {
			b.fields = object{}
		}
		b.fields[a.target] = v
	case inWhole:
		b.whole = v
	case inPath:
		s, ok := scalar(v)
		if !ok || !segment(s) {
			b.refuse(a.Name, "is not a path segment", "a string without a slash")
			return
		}
		b.path = strings.ReplaceAll(b.path, "{"+a.target+"}", url.PathEscape(s))
	case inQuery:
		b.list(a, v)
	case inAnswer:
		var err error
		if b.shown, err = fieldsOf(v); err != nil {
			b.refuse(a.Name, "is not a list of paths", err.Error())
		}
	case inHeader:
		if s, ok := scalar(v); ok && !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' }) {
			b.header.Set(a.target, s)
		} else if v != nil {
			b.refuse(a.Name, "is not a header value", "printable ASCII")
		}
	}
}

// list writes a query parameter, which may be a list.
func (b *builder) list(a Argument, v any) {
	values, ok := v.([]any)
	if !ok {
		values = []any{v}
	}
	var words []string
	for _, v := range values {
		if s, ok := scalar(v); ok {
			words = append(words, s)
		} else if v != nil {
			b.refuse(a.Name, "is not a query parameter", "a string, number or boolean, or a list of them")
			return
		}
	}
	if a.joined && len(words) > 0 {
		words = []string{strings.Join(words, ",")}
	}
	b.query[a.target] = words
}

// request returns what was gathered.
func (b *builder) request(t Tool) (Request, []decision.Detail) {
	r := Request{Method: t.Method, Target: b.path, Header: b.header, Fields: b.shown}
	if query := b.query.Encode(); query != "" {
		r.Target += "?" + query
	}
	body := b.whole
	if b.fields != nil {
		body = b.fields
	} else if b.whole == nil && t.hasFields() {
		body = object{}
	}
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			b.refuse("arguments", "cannot be written as JSON", "")
		}
		r.Body = text
		r.Header.Set("Content-Type", "application/json")
	}
	return r, b.faults
}

// hasFields reports whether the body is an object that the arguments fill.
func (t Tool) hasFields() bool {
	return slices.ContainsFunc(t.Arguments, func(a Argument) bool { return a.place == inBody })
}

// segment reports whether s is one segment of a path, and stays one when a
// gateway has resolved dots and slashes.
func segment(s string) bool {
	return s != "" && s != "." && s != ".." && !strings.ContainsAny(s, "/\\%") && !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f })
}

// scalar writes a string, number or boolean as text.
func scalar(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case bool:
		return strconv.FormatBool(v), true
	case json.Number:
		return v.String(), true
	}
	return "", false
}

// sorted returns the names in o in order.
func sorted(o object) []string { return slices.Sorted(maps.Keys(o)) }

// String names the tool and its operation, for logs.
func (t Tool) String() string { return fmt.Sprintf("%s (%s %s)", t.Name, t.Method, t.Path) }
