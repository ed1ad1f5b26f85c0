// Package document reads OpenAPI documents of others: Swagger 2, OpenAPI 3.0 and
// 3.1, in JSON or YAML. It brings them into one form, OpenAPI 3.1 in which the only
// references are those to schemas of the document itself, and names what it had to
// leave out.
//
// Documents are outside input: bytes, depth, what aliases and references stand for,
// and files beside a document are bounded, and nothing is fetched.
package document

import (
	"encoding/json"
	"errors"
	"strings"

	"sluice.dev/sluice/filters/decision"
)

// Object is a JSON object.
type Object = map[string]any

// Document is what a document describes.
type Document struct {
	Version    string // of OpenAPI, as the document says: "2.0", "3.0.3"
	Title      string
	About      string // the description
	Release    string // of the API
	Base       string // path of the first server, without a last slash; may be empty
	Secured    bool   // whether the document speaks of security at all
	Operations []Operation
	Notes      []Note
	Extensions Object // x-sluice-* of the root
	schemas    Object // by name, in the form of 3.1
}

// Operation is one method of one path.
type Operation struct {
	Method     string // in capitals
	Path       string // template, with the path of the server before it
	ID         string // operationId; may be empty
	Summary    string
	Tags       []string
	Security   []Alternative // one of which must hold; empty: open to anybody
	Extensions Object        // x-sluice-* of the operation, its path and the root: the nearest counts
	Streams    bool          // an answer is text/event-stream
	MaxBody    uint64        // of a binary body whose schema has a maxLength; 0: not said
	Node       Object        // the operation object, in the form of 3.1
}

// Alternative is what must hold at once for a caller to be let in. None: nothing.
type Alternative []Need

// Need is one scheme of an Alternative.
type Need struct {
	Scheme string
	// Type is apiKey, http, oauth2, openIdConnect, mutualTLS, or empty for a scheme
	// that the document does not define.
	Type   string
	Basic  bool // the scheme basic of http
	Scopes []string
}

// Note names something that the form of this package, or Sluice, cannot express.
type Note struct {
	What  string   // what it is, and what became of it
	Where []string // operations, paths or references: the first ones
	Count int      // of all places
}

// Bounds of what is read.
const (
	MaxBytes  = 32 << 20 // of a document with all files beside it
	maxDepth  = 200      // of nesting
	maxValues = 2 << 20  // that a YAML text has, with those that aliases stand for
	maxNodes  = 1 << 20  // schemas, media types and answers, with those that references stand for
	maxFiles  = 2000     // beside the document
	maxWhere  = 20       // places of a note
	maxNotes  = 200
)

// Open returns a file beside the document, by its path relative to the document's
// folder, of at most limit bytes and one more.
type Open func(path string, limit int64) ([]byte, error)

// Read reads a document. open is asked for files that references name; nil: there
// are none. References to other hosts are never followed.
//
// It takes time and memory linear in the text, in the files, and in what aliases and
// references stand for, of which together there are at most MaxBytes bytes, maxValues
// values and maxNodes schemas; a document beyond that is refused.
func Read(text []byte, open Open) (*Document, error) {
	root, err := Parse(text)
	if err != nil {
		return nil, err
	}
	r := &reader{open: open, left: maxNodes, bytes: MaxBytes - len(text), files: map[string]*file{"": {root: root}},
		names: map[string]string{}, taken: map[string]bool{}, schemas: Object{}, noted: map[string]int{}}
	f := r.files[""]
	d := &Document{Version: version(root), schemas: r.schemas}
	if d.Version == "" {
		return nil, errors.New("is not an OpenAPI document: it has neither openapi: 3.x nor swagger: 2.0")
	}
	f.two = d.Version == "2.0"
	r.siblings = !f.two && !strings.HasPrefix(d.Version, "3.0")
	info := child(root, "info")
	d.Title, d.About, d.Release = str(info["title"]), str(info["description"]), scalarText(info["version"])
	d.Extensions = extensions(root)
	r.operations(d, f)
	r.drain()
	if r.err != nil {
		return nil, r.err
	}
	r.outside(root)
	d.Notes = r.notes
	return d, nil
}

// version is the version of OpenAPI that root says it is; empty: none that is known.
func version(root Object) string {
	if scalarText(root["swagger"]) == "2.0" || scalarText(root["swagger"]) == "2" {
		return "2.0"
	}
	if v := scalarText(root["openapi"]); strings.HasPrefix(v, "3.") {
		return v
	}
	return ""
}

// Schema is the schema that a reference of the one form leads to, and its name.
func (d *Document) Schema(ref string) (name string, schema any, ok bool) {
	name, ok = strings.CutPrefix(ref, schemaRef)
	if ok {
		schema, ok = d.schemas[name]
	}
	return name, schema, ok
}

// OpenAPI returns the description of some operations, with prefix before their
// paths, as OpenAPI 3.1.
func (d *Document) OpenAPI(prefix string, operations []Operation) Object {
	paths := Object{}
	for _, op := range operations {
		item := child(paths, prefix+op.Path)
		item[strings.ToLower(op.Method)] = op.Node
		paths[prefix+op.Path] = item
	}
	return Object{
		"openapi": "3.1.0",
		"info":    Object{"title": d.Title, "version": d.Release, "description": d.About},
		"paths":   paths, "components": Object{"schemas": reached(paths, d.schemas)},
	}
}

// note adds a place to the note of that text.
func (r *reader) note(where, what string) {
	what = decision.Cut(what, 300)
	i, ok := r.noted[what]
	if !ok {
		if len(r.notes) >= maxNotes {
			return
		}
		i = len(r.notes)
		r.noted[what] = i
		r.notes = append(r.notes, Note{What: what})
	}
	r.notes[i].Count++
	if where != "" && len(r.notes[i].Where) < maxWhere {
		r.notes[i].Where = append(r.notes[i].Where, decision.Cut(where, 200))
	}
}

// child is the object under a name; an empty one when there is none.
func child(o Object, name string) Object {
	if c, ok := o[name].(Object); ok {
		return c
	}
	return Object{}
}

func str(v any) string {
	s, _ := v.(string)
	return s
}

// scalarText is a string or number as text: versions are both.
func scalarText(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case json.Number:
		return v.String()
	}
	return ""
}

// texts are the strings of a list.
func texts(v any) (out []string) {
	list, _ := v.([]any)
	for _, x := range list {
		if s, ok := x.(string); ok {
			out = append(out, s)
		}
	}
	return out
}

// extensions are the keys of o that are for us.
func extensions(o Object) Object {
	out := Object{}
	for k, v := range o {
		if strings.HasPrefix(k, "x-sluice-") {
			out[k] = v
		}
	}
	return out
}

// Prune takes the schemas out of a description that nothing refers to.
func Prune(doc Object) {
	all := child(child(doc, "components"), "schemas")
	doc["components"] = Object{"schemas": reached(doc["paths"], all)}
}

// reached are the schemas that from refers to, and those that they refer to.
func reached(from any, all Object) Object {
	schemas := Object{}
	var due []string
	var take func(v any)
	take = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, x := range v {
				take(x)
			}
		case Object:
			if name, ok := strings.CutPrefix(str(v["$ref"]), schemaRef); ok && schemas[name] == nil && all[name] != nil {
				schemas[name] = all[name]
				due = append(due, name)
			}
			for _, x := range v {
				take(x)
			}
		}
	}
	for take(from); len(due) > 0; {
		name := due[len(due)-1]
		due = due[:len(due)-1]
		take(schemas[name])
	}
	return schemas
}
