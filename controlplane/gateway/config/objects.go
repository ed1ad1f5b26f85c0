package config

import (
	"encoding/json"
	"slices"

	"sluice.dev/sluice/platform/http/httpapi"
)

// Kinds are the lists of a document whose objects have names and can be read
// and changed one at a time.
var Kinds = []string{"classes", "plans", "products", "routes"}

// kind is one of Kinds: how its objects are reached in a document.
type kind interface {
	// index returns the place of the object with a name; below zero: none.
	index(d Document, name string) int
	// at returns the object at place i.
	at(d Document, i int) any
	// read decodes an object, completes it and gives it its name. Faults are those of
	// ParseJSON, with fields relative to the object. given is the name in raw.
	read(raw []byte, name string) (object any, given string, err error)
	// with returns d with the object at place i, or at the end for i below zero.
	with(d Document, i int, object any) Document
	// without returns d without the object at place i.
	without(d Document, i int) Document
	// all returns the objects, for JSON.
	all(d Document) any
}

// kinds gives each of Kinds.
var kinds = map[string]kind{
	"classes":  list[Class]{func(d *Document) *[]Class { return &d.Classes }, func(c *Class) *string { return &c.Name }},
	"plans":    list[Plan]{func(d *Document) *[]Plan { return &d.Plans }, func(p *Plan) *string { return &p.Name }},
	"products": list[Product]{func(d *Document) *[]Product { return &d.Products }, func(p *Product) *string { return &p.Name }},
	"routes":   list[Route]{func(d *Document) *[]Route { return &d.Routes }, func(r *Route) *string { return &r.Name }},
}

// list implements kind for one list of a document.
type list[T any] struct {
	of   func(*Document) *[]T
	name func(*T) *string
}

func (l list[T]) index(d Document, name string) int {
	return slices.IndexFunc(*l.of(&d), func(v T) bool { return *l.name(&v) == name })
}

func (l list[T]) at(d Document, i int) any { return (*l.of(&d))[i] }

func (l list[T]) all(d Document) any { return append([]T{}, *l.of(&d)...) }

func (l list[T]) read(raw []byte, name string) (any, string, error) {
	var v T
	if err := httpapi.Unmarshal(raw, &v); err != nil {
		return nil, "", err
	}
	given := *l.name(&v)
	*l.name(&v) = name
	if c, ok := any(v).(interface{ complete() T }); ok {
		v = c.complete()
	}
	return v, given, nil
}

func (l list[T]) with(d Document, i int, object any) Document {
	s := slices.Clone(*l.of(&d))
	if i < 0 {
		s = append(s, object.(T))
	} else {
		s[i] = object.(T)
	}
	*l.of(&d) = s
	return d
}

func (l list[T]) without(d Document, i int) Document {
	*l.of(&d) = slices.Delete(slices.Clone(*l.of(&d)), i, i+1)
	return d
}

// same reports whether two objects, or documents, say the same. Unset and empty
// lists are equal.
func same(a, b any) bool {
	x, errA := json.Marshal(a)
	y, errB := json.Marshal(b)
	return errA == nil && errB == nil && string(x) == string(y)
}
