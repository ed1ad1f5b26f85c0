package config

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"sluice.dev/sluice/deploy"
	"sluice.dev/sluice/filters/decision"
)

// The profiles of a deployment: which of its own products it has.
const (
	ProfilePlatform = "platform" // all of them
	ProfileGateway  = "gateway"  // the control plane's API alone
)

// Profiles are all profiles.
var Profiles = []string{ProfilePlatform, ProfileGateway}

// Builtin is what a document includes to have the platform's own routes: those of
// the profile that the control plane has. builtin/NAME are those of another.
const Builtin = "builtin"

// ofProfile are the platform's own objects by profile, as JSON: who gets a document
// may alter it.
var ofProfile = map[string]func() ([]byte, error){
	ProfilePlatform: sync.OnceValues(func() ([]byte, error) { return embedded(deploy.Document) }),
	ProfileGateway:  sync.OnceValues(func() ([]byte, error) { return embedded(deploy.Gateway) }),
}

func embedded(text []byte) ([]byte, error) {
	d, _, err := ParseYAML(text)
	if err != nil {
		return nil, fmt.Errorf("default configuration: %w", err)
	}
	d.Routes = each(d.Routes, Route.complete)
	return json.Marshal(d)
}

// Expand returns what d stands for: d with what it includes and without what it
// removes, in which everything is said that a short document leaves out. d's own
// objects keep their places in the lists, so that the fields of faults are those of
// d. It returns the faults of include and remove, and of objects that there are
// already; those of the result are for Faults to find.
//
// A class or plan of d goes before the built-in one of its name; a product or route
// may not: whoever names a product "api" must not get the sessions of the
// platform's. profile is that of the control plane; "" is platform.
//
// It takes time and memory linear in d and what is built in.
func (d Document) Expand(profile string) (Document, []decision.Detail) {
	j := joiner{d: d.complete()}
	j.d.Include, j.d.Remove = nil, nil
	base, ok := j.builtin(d.Include, profile)
	if ok {
		j.remove(&base, d.Remove)
		j.join(base)
	}
	for i, name := range d.Remove {
		if !ok || !slices.Contains(j.removed, name) {
			j.add(fmt.Sprintf("remove[%d]", i), "names nothing that is included", "routes.NAME, plans.NAME or classes.NAME, or the beginning of a name and *")
		}
	}
	if j.d.Plans == nil {
		j.d.Plans = []Plan{{Name: DefaultPlan}}
	}
	return j.d, j.faults
}

// joiner puts a built-in document below d.
type joiner struct {
	d       Document
	faults  []decision.Detail
	removed []string // names in remove that were there
}

func (j *joiner) add(field, issue, expected string) {
	j.faults = append(j.faults, decision.Detail{Field: field, Issue: issue, Expected: expected})
}

// builtin returns what include names; ok is false when that is nothing.
func (j *joiner) builtin(include []string, profile string) (base Document, ok bool) {
	for i, name := range include {
		at := fmt.Sprintf("include[%d]", i)
		of, named := strings.CutPrefix(name, Builtin+"/")
		if !named {
			of = profile
		}
		if of == "" {
			of = ProfilePlatform
		}
		read := ofProfile[of]
		switch {
		case read == nil || !named && name != Builtin:
			j.add(at, "is not known here", "builtin, builtin/gateway or builtin/platform; files are for `sluice apply -f`")
		case ok:
			j.add(at, "is one built-in document too many", "one")
		default:
			text, err := read()
			if err == nil {
				err = json.Unmarshal(text, &base)
			}
			if ok = err == nil; !ok {
				j.add(at, "cannot be read", "") // a test reads it
			}
		}
	}
	return base, ok
}

// remove takes out of base what names name.
func (j *joiner) remove(base *Document, names []string) {
	if len(names) == 0 {
		return
	}
	gone := func(kind, name string) bool {
		found := false
		for _, n := range names {
			prefix, wild := strings.CutSuffix(n, "*")
			if path := kind + "." + name; path == n || wild && strings.HasPrefix(path, prefix) {
				found = true
				j.removed = append(j.removed, n)
			}
		}
		return found
	}
	base.Routes = slices.DeleteFunc(slices.Clone(base.Routes), func(r Route) bool { return gone("routes", r.Name) })
	base.Plans = slices.DeleteFunc(slices.Clone(base.Plans), func(p Plan) bool { return gone("plans", p.Name) })
	base.Classes = slices.DeleteFunc(slices.Clone(base.Classes), func(c Class) bool { return gone("classes", c.Name) })
}

// ownProducts are names with which services of the platform are believed more than
// others, also where the profile has them not: see identityheader.Vouching.
var ownProducts = []string{"media", "runtime"}

// join puts base's objects after d's.
func (j *joiner) join(base Document) {
	d := &j.d
	if d.AccessLog == "" {
		d.AccessLog = base.AccessLog
	}
	if d.RequestLog == "" {
		d.RequestLog = base.RequestLog
	}
	if len(d.KeyHeaders) == 0 {
		d.KeyHeaders = base.KeyHeaders
	}
	if d.AnonymousPerMinute == 0 {
		d.AnonymousPerMinute = base.AnonymousPerMinute
	}
	if d.ClientCertificates == nil {
		d.ClientCertificates = base.ClientCertificates
	}
	if d.Engines == nil {
		d.Engines = base.Engines
	}
	if d.X402 == nil {
		d.X402 = base.X402
	}
	if len(base.Classes) > 0 && len(d.Classes) > 0 && d.Classes[0].Name != base.Classes[0].Name { // the first is that of routes which name none
		base.Routes = each(base.Routes, func(r Route) Route { r.Class = cmp.Or(r.Class, base.Classes[0].Name); return r })
	}
	d.Classes = unless(d.Classes, base.Classes, func(c Class) string { return c.Name })
	d.Plans = unless(d.Plans, base.Plans, func(p Plan) string { return p.Name })
	d.Scopes = unless(d.Scopes, base.Scopes, func(s string) string { return s })
	for i, p := range d.Products {
		if slices.Contains(ownProducts, p.Name) || slices.ContainsFunc(base.Products, func(o Product) bool { return o.Name == p.Name }) {
			j.add(fmt.Sprintf("products[%d].name", i), "is that of a built-in product", "another name")
		}
	}
	d.Products = unless(d.Products, base.Products, func(p Product) string { return p.Name })
	d.Routes = append(slices.Clone(d.Routes), j.free(base.Routes)...)
}

// unless returns list, followed by those of more whose names are not in list.
func unless[T any](list, more []T, name func(T) string) []T {
	have := map[string]bool{}
	for _, v := range list {
		have[name(v)] = true
	}
	list = slices.Clone(list)
	for _, v := range more {
		if !have[name(v)] {
			list = append(list, v)
		}
	}
	return list
}

// free returns those of the built-in routes whose names and requests no route of d
// takes; where one does, that is a fault of d's.
func (j *joiner) free(builtin []Route) (list []Route) {
	owner := map[string]string{} // built-in routes by name and match key
	for _, r := range builtin {
		for _, key := range append(matchKeys(r), "name "+r.Name) {
			owner[key] = r.Name
		}
	}
	taken := map[string]bool{}
	for i, r := range j.d.Routes {
		if o := owner["name "+r.Name]; o != "" {
			taken[o] = true
			j.add(fmt.Sprintf("routes[%d].name", i), "is that of a built-in route", "another name, or remove: [routes."+o+"]")
		}
		if len(r.Hosts) > maxHosts || len(r.Methods) > maxMethods {
			continue // a fault of its own
		}
		other := ""
		for _, key := range matchKeys(r) {
			if o := owner[key]; o != "" && other == "" {
				other = o
			}
		}
		if other != "" {
			taken[other] = true
			j.add(fmt.Sprintf("routes[%d].path", i), "matches the same requests as the built-in route "+other, "another path, method, host or header, or remove: [routes."+other+"]")
		}
	}
	return slices.DeleteFunc(slices.Clone(builtin), func(r Route) bool { return taken[r.Name] })
}
