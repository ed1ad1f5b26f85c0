package compile

import (
	"fmt"
	"net/url"

	"sluice.dev/sluice/filters/schema"
)

// maxApplied bounds the schemas that one schema applies to the same value.
const maxApplied = 512

func unescape(s string) (string, bool) {
	plain, err := url.PathUnescape(s)
	return plain, err == nil
}

// applied are the nodes that node n holds against the same value.
func (c *compiler) applied(n uint32) (list []uint32) {
	if g := c.words[n+schema.NodeApply]; g != 0 {
		w := c.words[g : g+schema.ApplyWords]
		list = append(list, c.words[g+schema.ApplyWords:][:w[schema.ApplyAll]+w[schema.ApplyAny]+w[schema.ApplyOne]]...)
		for _, node := range w[schema.ApplyNot : schema.ApplyElse+1] {
			if node != 0 {
				list = append(list, node)
			}
		}
	}
	if g := c.words[n+schema.NodeObject]; g != 0 {
		p := c.words[g+schema.ObjectDependents+1]
		for i := range c.words[g+schema.ObjectDependents] {
			list = append(list, c.words[p+i*schema.DependentWords+1])
		}
	}
	return list
}

// checkCycles finds schemas that would be held against one value for ever, and those
// that hold too many against it.
func (c *compiler) checkCycles() {
	sizes := make(map[uint32]int, len(c.list)) // below zero: being counted
	var size func(n uint32) int
	size = func(n uint32) int {
		if s, ok := sizes[n]; ok {
			return s
		}
		sizes[n] = -1
		sum := 1
		for _, m := range c.applied(n) {
			s := size(m)
			if s < 0 {
				sizes[n] = -2
				return -1
			}
			sum = min(sum+s, 2*maxApplied)
		}
		sizes[n] = sum
		return sum
	}
	for _, m := range c.list {
		c.at = m.at
		switch s := size(m.node); {
		case s < 0:
			c.fault(m.place, "leads to itself without going into a member or an element", "a schema that ends")
			return
		case s > maxApplied:
			c.fault(m.place, "applies too many schemas to one value", fmt.Sprintf("at most %d", maxApplied))
			return
		}
	}
}

// textTypes are the types that a parameter may have, and those of its elements when
// it is an array. A schema that does not say is one of a string.
func (c *compiler) textTypes(p place) (types, items uint32) {
	v := c.roots[p.root]
	types = c.possible(p, v, 0)
	if types&schema.TypeArray != 0 {
		items = c.itemTypes(p, v, 0)
	}
	if types == schema.TypeObject {
		c.fault(place{root: p.root}, "is an object, which parameters cannot be here", "a string, a number, a boolean or an array of them")
	}
	return types &^ schema.TypeObject, items
}

// maxReferences bounds how far types of parameters are looked for.
const (
	maxReferences = 16
	maxLooks      = 10_000 // of one request
)

// possible are the types that a schema lets values have; TypeString when it does not
// say.
func (c *compiler) possible(p place, v any, depth int) uint32 {
	if t, said := c.said(p, v, depth); said {
		return t
	}
	return schema.TypeString
}

func (c *compiler) said(p place, v any, depth int) (types uint32, said bool) {
	o, _ := v.(map[string]any)
	if c.looks++; o == nil || depth > maxReferences || c.looks > maxLooks {
		return 0, false
	}
	types = schema.AnyType
	narrow := func(t uint32, ok bool) {
		if ok {
			types, said = types&t, true
		}
	}
	switch t := o["type"].(type) {
	case string:
		narrow(typeBits[t], true)
	case []any:
		sum := uint32(0)
		for _, t := range t {
			name, _ := t.(string)
			sum |= typeBits[name]
		}
		narrow(sum, true)
	}
	if v, ok := o["const"]; ok {
		narrow(typeOf(v), true)
	}
	if list, ok := o["enum"].([]any); ok {
		sum := uint32(0)
		for _, v := range list {
			sum |= typeOf(v)
		}
		narrow(sum, true)
	}
	if ref, ok := o["$ref"].(string); ok {
		s := &object{compiler: c, place: p}
		if target, v, ok := s.lookup(ref); ok {
			narrow(c.said(target, v, depth+1))
		}
	}
	for _, k := range []string{"allOf", "anyOf", "oneOf"} {
		list, _ := o[k].([]any)
		sum, all := uint32(0), len(list) > 0
		for _, v := range list {
			t, ok := c.said(p, v, depth+1)
			if k == "allOf" {
				narrow(t, ok)
			}
			sum, all = sum|t, all && ok
		}
		if k != "allOf" {
			narrow(sum, all)
		}
	}
	return types, said
}

// itemTypes are the types of an array's elements.
func (c *compiler) itemTypes(p place, v any, depth int) uint32 {
	o, _ := v.(map[string]any)
	if items, ok := o["items"]; ok {
		return c.possible(p, items, depth)
	}
	if ref, ok := o["$ref"].(string); ok && depth < maxReferences {
		s := &object{compiler: c, place: p}
		if target, v, ok := s.lookup(ref); ok {
			return c.itemTypes(target, v, depth+1)
		}
	}
	for _, k := range []string{"allOf", "anyOf", "oneOf"} {
		list, _ := o[k].([]any)
		for _, v := range list {
			if t, said := c.said(p, v, depth+1); said && t&schema.TypeArray != 0 && depth < maxReferences {
				return c.itemTypes(p, v, depth+1)
			}
		}
	}
	return schema.TypeString
}

func typeOf(v any) uint32 {
	switch v.(type) {
	case nil:
		return schema.TypeNull
	case bool:
		return schema.TypeBool
	case string:
		return schema.TypeString
	case map[string]any:
		return schema.TypeObject
	case []any:
		return schema.TypeArray
	}
	return schema.TypeNumber | schema.TypeInteger
}
