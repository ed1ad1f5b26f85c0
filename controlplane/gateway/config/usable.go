package config

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"sluice.dev/sluice/filters/decision"
)

// place is where in a document a fault is: routes, 3, path.
type place struct {
	list string
	at   int // in the list; below zero: the fault is not in a list
	rest string
}

var placeForm = regexp.MustCompile(`^([a-z0-9_]+)(?:\[(\d+)\])?\.?`)

func placeOf(field string) place {
	m := placeForm.FindStringSubmatch(field)
	if m == nil {
		return place{"", -1, field}
	}
	p := place{m[1], -1, field[len(m[0]):]}
	if m[2] != "" {
		p.at, _ = strconv.Atoi(m[2])
	}
	return p
}

// maxRounds bounds how often what is left of a document is looked at again: a
// route that is closed for its class, which went for its name, ends a chain.
const maxRounds = 5

// Usable returns what of d can be served, and every fault of d. A version that
// was right when it was stored may have faults by the rules of a newer release;
// then one bad object must not hold up the others:
//
//   - a product without a fault is as it was, another has no address: its routes answer 503;
//   - a route answers 503 to everybody, so that none which is less specific takes
//     its requests; it is gone when the fault is in what it matches;
//   - plans keep what edges can read of them;
//   - an engine is off;
//   - classes, scopes, issuers, certificates, client_certificates and x402 go, and with them, as above, routes that
//     need them.
//
// ok is false when nothing can be made of d.
func (d Document) Usable() (usable Document, faults []decision.Detail, ok bool) {
	return new(Checker).Usable(d)
}

// Usable is d.Usable, with what c remembers.
func (c *Checker) Usable(d Document) (usable Document, faults []decision.Detail, ok bool) {
	faults = c.Faults(d)
	usable = d
	left := faults
	for range maxRounds {
		if len(left) == 0 {
			return usable, faults, true
		}
		usable = usable.withoutFaulty(left)
		left = slices.DeleteFunc(usable.Faults(), func(f decision.Detail) bool {
			p := placeOf(f.Field)
			return p.at >= 0 && (p.list == "products" || p.list == "plans")
		})
	}
	return usable, faults, false
}

// withoutFaulty returns d without what is at fault.
func (d Document) withoutFaulty(faults []decision.Detail) Document {
	bad := map[string]map[int][]string{} // by list and place in it: the fields at fault
	for _, f := range faults {
		p := placeOf(f.Field)
		if bad[p.list] == nil {
			bad[p.list] = map[int][]string{}
		}
		bad[p.list][p.at] = append(bad[p.list][p.at], p.rest)
	}
	if bad["access_log"] != nil {
		d.AccessLog = ""
	}
	if bad["request_log"] != nil {
		d.RequestLog = "off" // what it was to keep is not known
	}
	if bad["anonymous_per_minute"] != nil {
		d.AnonymousPerMinute = 0
	}
	if bad["trusted_proxies"] != nil {
		d.TrustedProxies = 0
	}
	if bad["key_headers"] != nil {
		d.KeyHeaders = nil
	}
	if bad["client_certificates"] != nil {
		d.ClientCertificates = nil
	}
	d.Engines = d.Engines.withoutFaulty(bad["engines"][-1])
	if bad["x402"] != nil {
		d.X402 = nil
	}
	d.Classes = keep(d.Classes, bad["classes"], nil)
	d.Scopes = keep(d.Scopes, bad["scopes"], nil)
	d.Certificates = keep(d.Certificates, bad["certificates"], nil)
	d.Issuers = keep(d.Issuers, bad["issuers"], nil)
	d.Plans = keep(d.Plans, bad["plans"], Plan.withoutFaultyLimits)
	d.Products = keep(d.Products, bad["products"], Product.nameOnly)
	d.Routes = keep(d.Routes, bad["routes"], Route.unavailable)
	return d
}

// keep returns the elements of list that have no fault, and what lesser makes of
// the others; nil: nothing.
func keep[T any](list []T, bad map[int][]string, lesser func(T, []string) (T, bool)) []T {
	if len(bad) == 0 {
		return list
	}
	var out []T
	for i, v := range list {
		fields, ok := bad[i], true
		if fields != nil {
			if ok = lesser != nil; ok {
				v, ok = lesser(v, fields)
			}
		}
		if ok {
			out = append(out, v)
		}
	}
	return out
}

// withoutFaultyLimits is a plan with those of its limits that can be read.
func (p Plan) withoutFaultyLimits(fields []string) (Plan, bool) {
	lesser := Plan{Name: p.Name, Products: p.Products, Features: p.Features, Limits: map[string]Limit{}}
	for class, l := range p.Limits {
		if !slices.ContainsFunc(fields, func(f string) bool { return f == "limits."+class || strings.HasPrefix(f, "limits."+class+".") }) {
			lesser.Limits[class] = l
		}
	}
	return lesser, !slices.Contains(fields, "name")
}

// nameOnly is a product with nothing but its name.
func (p Product) nameOnly(fields []string) (Product, bool) {
	return Product{Name: p.Name}, !slices.Contains(fields, "name")
}

// matchField begins the fields that say which requests a route is for.
var matchField = regexp.MustCompile(`^(name|listener|path|methods|hosts|headers)\b`)

// unavailable is a route that answers 503.
func (r Route) unavailable(fields []string) (Route, bool) {
	return Route{Name: r.Name, Listener: r.Listener, Hosts: r.Hosts, Methods: r.Methods, Path: r.Path, Headers: r.Headers,
		Auth: []string{"none"}, Respond: &Respond{Status: 503}}, !slices.ContainsFunc(fields, matchField.MatchString)
}

// byName returns the path of a field of d with the names of objects in place of
// their numbers, such as routes.streams.list.product, and the path of its object.
func (d Document) byName(field string) (path, owner string) {
	p := placeOf(field)
	name := ""
	if p.at >= 0 {
		name = d.nameAt(p.list, p.at)
	}
	switch {
	case name != "":
		owner = p.list + "." + name
	case p.list == "x402" || p.list == "client_certificates" || p.list == "engines":
		owner = p.list
	default:
		return field, "settings"
	}
	return strings.TrimSuffix(owner+"."+p.rest, "."), owner
}

// nameAt is the name of an element of d; empty: there is none.
func (d Document) nameAt(list string, i int) string {
	switch {
	case list == "classes" && i < len(d.Classes):
		return d.Classes[i].Name
	case list == "plans" && i < len(d.Plans):
		return d.Plans[i].Name
	case list == "products" && i < len(d.Products):
		return d.Products[i].Name
	case list == "routes" && i < len(d.Routes):
		return d.Routes[i].Name
	case list == "scopes" && i < len(d.Scopes):
		return d.Scopes[i]
	case list == "certificates" && i < len(d.Certificates):
		return d.Certificates[i].Name
	case list == "issuers" && i < len(d.Issuers):
		return d.Issuers[i].Issuer
	}
	return ""
}

// splitFaults parts the faults of d, which replaces before with its faults known, in
// those that are new and those that were there: of objects that the change leaves
// as they are.
func splitFaults(before, d Document, known, faults []decision.Detail) (fresh, old []decision.Detail) {
	had := map[string]bool{}
	for _, f := range known {
		path, _ := before.byName(f.Field)
		had[path+" "+f.Issue] = true
	}
	was, is := flatten(before), flatten(d)
	for _, f := range faults {
		path, owner := d.byName(f.Field)
		if had[path+" "+f.Issue] && same(was[owner], is[owner]) {
			old = append(old, f)
		} else {
			fresh = append(fresh, f)
		}
	}
	return fresh, old
}
