package openapi

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Imported describes a product that somebody has put behind the gateway, as OpenAPI
// 3.1 in JSON whose references all lead to its own schemas.
type Imported struct {
	Product string
	Text    []byte
}

// With returns d joined with what was imported: its schemas are named PRODUCT.NAME,
// and its operations PRODUCT_operationId, so that no two are of one name and none
// changes when another product comes. Of two products that describe the same
// operation the first stands, and what d has before all. A text that cannot be read
// is left out, and named in the error; the document is good all the same.
func (d *Document) With(list []Imported) (*Document, error) {
	out := &Document{Paths: maps.Clone(d.Paths), Components: maps.Clone(d.Components), product: maps.Clone(d.product), owners: map[string]string{}}
	schemas, _ := out.Components["schemas"].(object)
	schemas = maps.Clone(schemas)
	if schemas == nil {
		schemas = object{}
	}
	out.Components["schemas"] = schemas
	ids := d.operationIDs()
	var unread []string
	for _, f := range list {
		var doc object
		if err := json.Unmarshal(f.Text, &doc); err != nil {
			unread = append(unread, f.Product)
			continue
		}
		components, _ := doc["components"].(object)
		own, _ := components["schemas"].(object)
		renamed := map[string]string{}
		for _, name := range slices.Sorted(maps.Keys(own)) {
			to := f.Product + "." + name
			for n := 2; schemas[to] != nil; n++ {
				to = fmt.Sprintf("%s.%s_%d", f.Product, name, n)
			}
			renamed["#/components/schemas/"+name] = "#/components/schemas/" + to
			schemas[to] = own[name]
		}
		for _, to := range renamed {
			name := strings.TrimPrefix(to, "#/components/schemas/")
			schemas[name] = pointed(schemas[name], renamed)
		}
		paths, _ := pointed(doc["paths"], renamed).(object)
		for _, path := range slices.Sorted(maps.Keys(paths)) {
			item, _ := paths[path].(object)
			out.addImported(f.Product, path, item, ids)
		}
	}
	if unread != nil {
		return out, fmt.Errorf("descriptions that cannot be read: %s", strings.Join(unread, ", "))
	}
	return out, nil
}

// addImported adds the operations of one path that nothing else describes.
func (d *Document) addImported(product, path string, item object, ids map[string]bool) {
	have, _ := d.Paths[path].(object)
	into := maps.Clone(have)
	if into == nil {
		into = object{}
	}
	for _, verb := range verbs {
		op, ok := item[verb].(object)
		if _, taken := into[verb]; !ok || taken {
			continue
		}
		op = maps.Clone(op)
		id, _ := op["operationId"].(string)
		op["operationId"] = unusedID(product, id, verb, path, ids)
		if _, ok := op["tags"]; !ok {
			op["tags"] = []any{product}
		}
		into[verb] = op
		d.owners[verb+" "+path] = product
	}
	d.Paths[path] = into
}

// maxID is how long an operationId may be that is also the name of a tool.
const maxID = 64

// unusedID names an operation by its product and what its document calls it.
func unusedID(product, id, verb, path string, ids map[string]bool) string {
	if id == "" {
		id = verb + path
	}
	plain := strings.Map(func(c rune) rune {
		if c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '_' {
			return c
		}
		return '_'
	}, strings.ReplaceAll(product, ".", "-")+"_"+id)
	name := plain
	if len(name) > maxID || ids[name] {
		sum := sha256.Sum256([]byte(product + " " + verb + " " + path))
		name = plain[:min(len(plain), maxID-9)] + "_" + hex.EncodeToString(sum[:4])
	}
	ids[name] = true
	return name
}

// operationIDs are those of d.
func (d *Document) operationIDs() map[string]bool {
	ids := map[string]bool{}
	for _, v := range d.Paths {
		item, _ := v.(object)
		for _, verb := range verbs {
			op, _ := item[verb].(object)
			if id, ok := op["operationId"].(string); ok {
				ids[id] = true
			}
		}
	}
	return ids
}

// owner is the product that serves an operation, as its description says.
func (d *Document) owner(verb, path string) string {
	if product, ok := d.owners[verb+" "+path]; ok {
		return product
	}
	return d.product[path]
}
