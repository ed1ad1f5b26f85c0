// Package kong reads Kong's declarative configuration (formats 1.1 to 3.0, as kong.yml
// and decK write it) and makes a document of ours of it, and a table of the hashes of
// its keys. What cannot be expressed is named with its place, and nothing is opened
// for want of it: a route whose condition, or whose plugin that keeps callers out, has
// no equal here is left out.
package kong

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"sluice.dev/sluice/controlplane/accounts/keyfile"
	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/filters/decision"
)

// Severity says what a note is about.
type Severity string

// The severities, the gravest first.
const (
	LeftOut Severity = "left out" // it is not there: requests for it are refused
	ByHand  Severity = "by hand"  // it is there, and something must be done before it is used
	Differs Severity = "differs"  // it behaves in another way
	Ignored Severity = "ignored"  // it does nothing here
)

// Note is one thing that was not translated, or not to the letter.
type Note struct {
	Severity Severity
	Line     int    // in the file; 0: it is about all of it
	Place    string // such as services[0].routes[1]
	Text     string
}

// maxNotes bounds the notes of a file: a note more says that there were more.
const maxNotes = 5000

// Result is what a file became.
type Result struct {
	Document config.Document
	Keys     []keyfile.Row // their accounts are the consumers
	Notes    []Note        // in the order of the file, the gravest of a line first
}

// KeyScope is a scope that every imported key has, since a key must have one. No
// route asks for it.
const KeyScope = "kong:consumer"

// importer is one file on its way.
type importer struct {
	root     *node
	format   int
	now      time.Time
	doc      config.Document
	notes    []Note
	plugins  plugins
	services []*service
	names    map[string]bool // of products and routes that are taken
	acls     map[string]*acl // by what a route allows
	keys     []keyfile.Row
	places   map[string]*node // of products and routes, by name
	once     map[string]bool  // notes of the whole file that are there already
}

// Import reads a file. It fails when that is not one of Kong's; now is what the times to
// live of keys count from that do not say when they were made. The document has no
// faults. No text of a key is in the result, notes included.
//
// It takes time linear in the file but for its YAML reader (see config.ParseYAML), and
// memory of at most 4 KiB for each of its bytes; aliases count as what they stand for,
// of which there may be 200,000 values.
func Import(b []byte, now time.Time) (Result, error) {
	root, err := parseTree(b)
	if err != nil {
		return Result{}, err
	}
	i := &importer{root: root, now: now, names: map[string]bool{}, acls: map[string]*acl{}, places: map[string]*node{}, once: map[string]bool{}}
	if err := i.readFormat(); err != nil {
		return Result{}, err
	}
	i.readPlugins()
	i.readUpstreams()
	i.doc = config.Document{
		Classes:  []config.Class{{Name: "default", PerMinute: defaultPerMinute}},
		Products: []config.Product{},
		Routes:   []config.Route{},
	}
	i.readServices()
	i.readConsumers()
	i.doc.Scopes = i.scopes()
	i.dropFaulty()
	i.doc.Include = []string{config.Builtin}
	i.noteUnused(i.root)
	slices.SortStableFunc(i.notes, func(a, b Note) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(rank[a.Severity], rank[b.Severity]))
	})
	return Result{i.doc, i.keys, i.notes}, nil
}

var rank = map[Severity]int{LeftOut: 0, ByHand: 1, Differs: 2, Ignored: 3}

// readFormat reads what says that this is a file of Kong's.
func (i *importer) readFormat() error {
	version := i.root.str("_format_version")
	for _, name := range []string{"_transform", "_workspace", "_konnect"} {
		i.root.get(name).ignore()
	}
	i.root.get("_info").get("select_tags").ignore() // but defaults would matter
	switch version {
	case "1.1", "1.2":
		i.format = 1
	case "2.1":
		i.format = 2
	case "3.0":
		i.format = 3
	case "":
		return fmt.Errorf("the file has no _format_version: expected Kong's declarative configuration, as `deck gateway dump` writes it")
	default:
		return fmt.Errorf("_format_version is %q: expected 1.1, 2.1 or 3.0", decision.Cut(version, 40))
	}
	return nil
}

// note notes something about n.
func (i *importer) note(s Severity, n *node, text string) {
	if len(i.notes) > maxNotes {
		return
	}
	if len(i.notes) == maxNotes {
		i.notes = append(i.notes, Note{Severity: s, Text: "there are more notes than are shown"})
		return
	}
	i.notes = append(i.notes, Note{s, n.line, decision.Cut(n.path, 200), decision.Cut(text, 400)})
}

// noteOnce notes something about the whole file, once.
func (i *importer) noteOnce(s Severity, text string) {
	if !i.once[text] {
		i.once[text] = true
		i.note(s, nothing, text)
	}
}

// metadata are fields that say nothing about requests.
var metadata = map[string]bool{"id": true, "created_at": true, "updated_at": true, "tags": true, "ws_id": true, "instance_name": true, "_comment": true}

// noteUnused notes every value that nobody has looked at, at its root.
func (i *importer) noteUnused(n *node) {
	for _, name := range n.names {
		f := n.fields[name]
		switch {
		case f.kind == null || metadata[name]:
		case !f.used:
			i.note(Ignored, f, name+" is not translated")
		default:
			i.noteUnused(f)
		}
	}
	for _, item := range n.items {
		switch {
		case item.used:
			i.noteUnused(item)
		case item.kind == object:
			i.note(Ignored, item, "this is not translated")
		}
	}
}

var (
	notInNames = regexp.MustCompile(`[^a-z0-9._-]+`)
	notInWords = regexp.MustCompile(`[^a-z0-9_]+`)
)

// name makes a name of ours that no other thing of that kind has; base may be
// anything.
func (i *importer) name(kind, base, fallback string) string {
	base = strings.Trim(notInNames.ReplaceAllString(strings.ToLower(decision.Cut(base, 200)), "-"), "-._")
	if base == "" {
		base = fallback
	}
	base = base[:min(len(base), 80)]
	name := base
	for n := 2; i.names[kind+name]; n++ {
		name = fmt.Sprintf("%s-%d", base, n)
		if n > 3 { // many are of one name: their number tells them apart at once
			name = fmt.Sprintf("%s-%d", base, len(i.names)+n)
		}
	}
	i.names[kind+name] = true
	return name
}

// word makes a word of a scope.
func word(s string) string {
	return strings.Trim(notInWords.ReplaceAllString(strings.ToLower(s), "_"), "_")
}

// dropFaulty takes products and routes out that the document's own rules refuse, such
// as two routes for the same requests, and notes why.
func (i *importer) dropFaulty() {
	for range 20 {
		whole, _ := i.doc.Expand("")
		faults := whole.Faults()
		if len(faults) == 0 {
			return
		}
		products, routes := map[int]string{}, map[int]string{}
		for _, f := range faults {
			i.sortFault(f, products, routes)
		}
		if len(products)+len(routes) == 0 { // of what all routes share: then none is safe
			i.noteOnce(LeftOut, "everything: "+faults[0].Field+" "+faults[0].Issue)
			i.doc.Routes, i.doc.Products, i.doc.KeyHeaders, i.doc.Scopes = []config.Route{}, []config.Product{}, nil, []string{}
			i.doc.Classes = i.doc.Classes[:1]
			return
		}
		gone := map[string]bool{}
		i.doc.Products = i.without(products, func(at int) string { gone[i.doc.Products[at].Name] = true; return i.doc.Products[at].Name })
		for at, r := range i.doc.Routes {
			if gone[r.Product] && routes[at] == "" {
				routes[at] = "its service is left out"
			}
		}
		var kept []config.Route
		for at, r := range i.doc.Routes {
			if why := routes[at]; why != "" {
				i.note(LeftOut, i.placeOf(r.Name), "route "+r.Name+": "+why)
				continue
			}
			kept = append(kept, r)
		}
		i.doc.Routes = append([]config.Route{}, kept...)
	}
}

var faultPlace = regexp.MustCompile(`^(products|routes)\[(\d+)\]\.?(.*)$`)

// sortFault notes to which product or route a fault belongs.
func (i *importer) sortFault(f decision.Detail, products, routes map[int]string) {
	m := faultPlace.FindStringSubmatch(f.Field)
	if m == nil {
		return
	}
	var at int
	if _, err := fmt.Sscan(m[2], &at); err != nil {
		return
	}
	of := routes
	if m[1] == "products" {
		of = products
	}
	of[at] = strings.TrimSpace(m[3] + " " + f.Issue)
}

// without returns the products but those at fault, which it notes by their names.
func (i *importer) without(bad map[int]string, name func(at int) string) []config.Product {
	kept := []config.Product{}
	for at, p := range i.doc.Products {
		if why := bad[at]; why != "" {
			i.note(LeftOut, i.placeOf(name(at)), "service "+p.Name+": "+why)
			continue
		}
		kept = append(kept, p)
	}
	return kept
}

// placeOf is where a product or route comes from.
func (i *importer) placeOf(name string) *node {
	if n := i.places[name]; n != nil {
		return n
	}
	return nothing
}
