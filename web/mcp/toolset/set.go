package toolset

import "strings"

// Set is the name of the set that t is in: what its scope is about, such as webhooks for
// webhooks:read, or, where it needs none, the first word of its path.
func (t Tool) Set() string {
	if subject, _, ok := strings.Cut(t.Route.Scope, ":"); ok {
		return subject
	}
	set := "other"
	for step := range strings.SplitSeq(t.Path, "/") {
		switch {
		case step == "" || step == "v1" || strings.HasPrefix(step, "{"):
			continue
		case step != "auth":
			return step
		}
		set = step
	}
	return set
}

// ReadOnly reports whether t changes nothing.
func (t Tool) ReadOnly() bool { return t.Method == "GET" }

// Bounds of what Fields names.
const (
	maxFields    = 40
	maxFieldDeep = 3
)

// Fields are the paths of what t answers, such as data.id, as its argument fields takes
// them: 40 at most, three names deep. Lists stand between two names without a sign.
func (t Tool) Fields() []string {
	var out []string
	var walk func(node any, path string, deep int)
	walk = func(node any, path string, deep int) {
		o := t.meant(node)
		if items := t.meant(o["items"]); len(items) > 0 {
			o = items
		}
		inner := child(o, "properties")
		if path != "" && (len(inner) == 0 || deep == maxFieldDeep) && len(out) < maxFields {
			out = append(out, path)
		}
		if deep < maxFieldDeep {
			for _, name := range sorted(inner) {
				walk(inner[name], strings.TrimPrefix(path+"."+name, "."), deep+1)
			}
		}
	}
	walk(t.Output, "", 0)
	return out
}

// meant is the object schema that a node of Output is: what it refers to, and what it is
// beside null.
func (t Tool) meant(node any) object {
	o, _ := node.(object)
	for range maxHops {
		if name, ok := strings.CutPrefix(text(o, "$ref"), defs); ok {
			o = child(child(t.Output, "$defs"), name)
			continue
		}
		ways, _ := o["anyOf"].([]any)
		if len(ways) == 0 {
			if ways, _ = o["allOf"].([]any); len(ways) != 1 {
				return o
			}
		}
		o, _ = ways[0].(object)
	}
	return o
}
