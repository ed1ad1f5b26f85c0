package reference

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/web/docsite"
	"sluice.dev/sluice/web/docsite/search"
)

// object is a JSON object.
type object = map[string]any

// listed is how many operations a page of the list has, and how many tags its
// contents name.
const listed = 200

// index is a document, split into its operations and components, which stay JSON
// until a page needs them.
type index struct {
	api        API
	codes      []decision.Info
	url        string          // of the API, without a slash at its end; "": the document has none
	security   json.RawMessage // of operations that say nothing of it
	components map[string]map[string]json.RawMessage
	operations []*operation // by product, tag, path and method
	byID       map[string]*operation
}

// operation is what the list says of one.
type operation struct {
	ID, Method, Path, Summary string
	Product, Tag              string
	Anchor                    string // of its product and tag
	Deprecated                bool
	root                      string // of the reference
	about                     string // its description
	text                      json.RawMessage
	shared                    json.RawMessage // parameters of its path
}

// Link is where its page is.
func (o *operation) Link() string { return o.root + "/" + url.PathEscape(o.ID) }

// newIndex splits an OpenAPI document. It costs time linear in text, and of memory
// the bytes of text and some 300 for each operation.
func newIndex(text []byte, api API, codes []decision.Info) (*index, error) {
	var doc struct {
		Servers    []struct{ URL string }                `json:"servers"`
		Paths      map[string]map[string]json.RawMessage `json:"paths"`
		Components map[string]map[string]json.RawMessage `json:"components"`
		Security   json.RawMessage                       `json:"security"`
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		return nil, fmt.Errorf("read the OpenAPI document: %w", err)
	}
	x := &index{api: api, codes: codes, components: doc.Components, security: doc.Security, byID: map[string]*operation{}}
	if len(doc.Servers) > 0 {
		x.url = strings.TrimRight(doc.Servers[0].URL, "/")
	}
	for path, item := range doc.Paths {
		for _, verb := range []string{"get", "put", "post", "delete", "options", "head", "patch", "trace"} {
			if raw, ok := item[verb]; ok {
				o := head(verb, path, raw)
				o.shared, o.root = item["parameters"], api.Path
				x.operations = append(x.operations, o)
			}
		}
	}
	slices.SortFunc(x.operations, func(a, b *operation) int {
		return cmp.Or(cmp.Compare(a.Product, b.Product), cmp.Compare(a.Tag, b.Tag), cmp.Compare(a.Path, b.Path), cmp.Compare(a.Method, b.Method))
	})
	x.name()
	return x, nil
}

// head reads what the list says of an operation.
func head(verb, path string, raw json.RawMessage) *operation {
	var h struct {
		ID         string   `json:"operationId"`
		Summary    string   `json:"summary"`
		About      string   `json:"description"`
		Deprecated bool     `json:"deprecated"`
		Tags       []string `json:"tags"`
		Asked      struct {
			Product string `json:"product"`
		} `json:"x-sluice"`
	}
	_ = json.Unmarshal(raw, &h) // what is of another type than it should be is left out
	o := &operation{ID: h.ID, Method: strings.ToUpper(verb), Path: path, Summary: decision.Cut(h.Summary, 300), Deprecated: h.Deprecated, text: raw, about: decision.Cut(h.About, 300)}
	o.Product = cmp.Or(h.Asked.Product, "gateway") // answers by itself
	if len(h.Tags) > 0 {
		o.Tag = decision.Cut(h.Tags[0], 100)
	} else {
		o.Tag = decision.Cut(topic(path), 100)
	}
	if o.Tag == o.Product {
		o.Tag = ""
	}
	return o
}

// topic is what a path is about, where a document has no tags: its first part, after a
// version and what stands before that.
func topic(path string) string {
	parts := strings.Split(strings.TrimPrefix(path, "/"), "/")
	for i, p := range parts {
		if len(p) > 1 && p[0] == 'v' && p[1] >= '0' && p[1] <= '9' && i < 2 && i+1 < len(parts) {
			parts = parts[i+1:]
			break
		}
	}
	if strings.Contains(parts[0], "{") {
		return ""
	}
	return strings.TrimPrefix(parts[0], ".")
}

// entries are the operations as search finds them.
func (x *index) entries() []search.Entry {
	list := make([]search.Entry, len(x.operations))
	for i, o := range x.operations {
		list[i] = search.Entry{
			Title: decision.Cut(cmp.Or(o.Summary, o.ID), 200), Page: decision.Cut(o.Method+" "+o.Path, 200), Kind: "API", Link: o.Link(),
			Text: decision.Cut(o.ID, 100) + " " + o.Product + " " + o.Tag + " " + o.about,
		}
	}
	return list
}

// name gives each operation an identifier, and each group an anchor, of its own.
func (x *index) name() {
	anchors := map[string]bool{}
	for i, o := range x.operations {
		if o.ID == "" || x.byID[o.ID] != nil {
			o.ID = strings.ToLower(o.Method) + slug(o.Path)
			for x.byID[o.ID] != nil {
				o.ID += "-" + strconv.Itoa(i)
			}
		}
		x.byID[o.ID] = o
		if i > 0 && x.operations[i-1].Product == o.Product && x.operations[i-1].Tag == o.Tag {
			o.Anchor = x.operations[i-1].Anchor
			continue
		}
		o.Anchor = strings.Trim(slug(o.Product+" "+o.Tag), "-")
		if anchors[o.Anchor] {
			o.Anchor += "-" + strconv.Itoa(i)
		}
		anchors[o.Anchor] = true
	}
}

// slug is text as a part of an address.
func slug(text string) string {
	return strings.Map(func(c rune) rune {
		if c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9' || c == '.' || c == '_' {
			return c
		}
		return '-'
	}, text)
}

// group is operations of one product and tag that stand on one page of the list.
type group struct {
	root                 string
	Product, Tag, Anchor string
	Page                 int  // of the list, where it begins
	First                bool // of its product
	Count                int  // of operations on all pages
	Operations           []*operation
}

// Link leads to the group in the list.
func (g *group) Link() string {
	if g.Page == 1 {
		return g.root + "#" + g.Anchor
	}
	return g.root + "?page=" + strconv.Itoa(g.Page) + "#" + g.Anchor
}

// groups are all groups, with their operations.
func (x *index) groups() (list []*group) {
	for i, o := range x.operations {
		if i == 0 || o.Anchor != x.operations[i-1].Anchor {
			first := i == 0 || o.Product != x.operations[i-1].Product
			list = append(list, &group{root: x.api.Path, Product: o.Product, Tag: o.Tag, Anchor: o.Anchor, Page: i/listed + 1, First: first})
		}
		g := list[len(list)-1]
		g.Count++
		g.Operations = append(g.Operations, o)
	}
	return list
}

// list is a page of the list, of listed operations; the first is 1. Before them are
// the contents of all pages.
func (x *index) list(n int) (docsite.Page, error) {
	last := max(1, (len(x.operations)+listed-1)/listed)
	if n < 1 || n > last {
		return docsite.Page{}, missing
	}
	all, at := x.groups(), 0
	var here []*group
	for _, g := range all {
		from, to := max(0, (n-1)*listed-at), min(len(g.Operations), n*listed-at)
		if from < to {
			part := *g
			part.Operations = g.Operations[from:to]
			here = append(here, &part)
		}
		at += g.Count
	}
	return x.rendered("list", x.api.Title, struct {
		API
		URL                        string
		Total, More                int
		Page, Last, Former, Follow int
		Contents, Groups           []*group
	}{x.api, x.url, len(x.operations), max(0, len(all)-listed), n, last, n - 1, (n + 1) % (last + 1), all[:min(len(all), listed)], here})
}

// component is what a reference leads to, and its name; nil: there is none.
func (x *index) component(ref string) (raw json.RawMessage, name string) {
	kind, name, _ := strings.Cut(strings.TrimPrefix(ref, "#/components/"), "/")
	return x.components[kind][strings.NewReplacer("~1", "/", "~0", "~").Replace(name)], name
}

// sorted are the keys of o.
func sorted(o object) []string { return slices.Sorted(maps.Keys(o)) }
