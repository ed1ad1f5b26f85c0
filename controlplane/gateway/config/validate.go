package config

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/filters/policy"
	"sluice.dev/sluice/filters/scopes"
	"sluice.dev/sluice/platform/apierror"
)

// Limits of a document, so that one push stays bounded.
const (
	maxProducts  = 1000
	maxClasses   = 64
	maxPlans     = 1000
	maxScopes    = 128 // with their wildcards: a key's record has that many bits
	maxPerMin    = 1 << 30
	maxProxies   = 16
	maxMethods   = 32     // of a route
	maxMatchKeys = 200000 // pairs of host and method, of all routes
)

var (
	nameForm   = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,99}$`)
	planForm   = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,39}$`)
	addrForm   = regexp.MustCompile(`^\$\{([a-z][a-z0-9_-]*)\}$`)
	methodForm = regexp.MustCompile(`^[A-Z]{1,20}$`)
	reserved   = []string{Unmapped, Absent, Preflight, Repeated}
)

// Validate returns an invalid_request error that lists every fault of d with
// the path of its field, or nil. A document without faults compiles.
func (d Document) Validate() error { return apierror.Invalid(d.Faults()) }

// Faults returns every fault of d, with the path of its field.
func (d Document) Faults() []decision.Detail { return new(Checker).Faults(d) }

// faults is Faults, but for routes of which was knows that they have none by
// themselves; now is what is known after it.
func (d Document) faults(was map[string]checked) (details []decision.Detail, now map[string]checked) {
	v := &validator{was: was, now: make(map[string]checked, len(d.Routes))}
	v.oneOf("access_log", d.AccessLog, "", "all", "failures", "off")
	v.oneOf("request_log", d.RequestLog, "", "full", "no_path", "off")
	v.limit("anonymous_per_minute", d.AnonymousPerMinute)
	if d.TrustedProxies > maxProxies {
		v.add("trusted_proxies", "is too large", fmt.Sprintf("at most %d", maxProxies))
	}
	v.keyHeaders(d.KeyHeaders)
	v.clientCertificates(d)
	classes := v.classes(d.Classes)
	products := v.products(d.Products)
	v.productSchemas = map[string]map[string]JSONSchema{}
	for _, p := range d.Products {
		v.productSchemas[p.Name] = p.Schemas
	}
	v.plans(d.Plans, classes, products)
	known := v.scopes(d.Scopes)
	v.atMost("scopes", len(d.ScopeNames()), maxScopes)
	v.certificates(d.Certificates)
	v.issuers(d.Issuers, known)
	v.x402(d.X402)
	v.engines(d.Engines)
	v.routes(d.Routes, classes, known, products, d.features())
	v.tables(v.tableBytes)
	v.prices(d)
	v.keyHeaderEdits(d)
	return v.details, v.now
}

// features are those that a plan has.
func (d Document) features() map[string]bool {
	known := map[string]bool{}
	for _, p := range d.Plans {
		for _, f := range p.Features {
			known[f] = true
		}
	}
	return known
}

// validator gathers faults.
type validator struct {
	details   []decision.Detail
	matchKeys int                // how many there are by now
	was, now  map[string]checked // routes without a fault of their own, by name

	productSchemas map[string]map[string]JSONSchema // by name of the product
	schemaBytes    int                              // of all schemas by now
	tableBytes     int                              // of all tables by now
}

func (v *validator) add(field, issue, expected string) {
	v.details = append(v.details, decision.Detail{Field: field, Issue: issue, Expected: expected})
}

func (v *validator) oneOf(field, value string, allowed ...string) {
	if !slices.Contains(allowed, value) {
		v.add(field, "is not a known value", strings.Join(slices.DeleteFunc(allowed, func(s string) bool { return s == "" }), ", "))
	}
}

func (v *validator) limit(field string, n uint32) {
	if n > maxPerMin {
		v.add(field, "is too large", "at most "+strconv.Itoa(maxPerMin))
	}
}

func (v *validator) duration(field string, d Duration) {
	if d == "" {
		return
	}
	if t, err := time.ParseDuration(string(d)); err != nil || t < time.Millisecond || t > 24*time.Hour {
		v.add(field, "is not a duration", "1ms to 24h, such as 1500ms, 30s or 5m")
	}
}

// name checks a name and that it was not seen before; it notes it in seen.
func (v *validator) name(field, name string, seen map[string]bool) {
	if v.nameForm(field, name) && seen[name] {
		v.add(field, "is given twice", "")
	}
	seen[name] = true
}

func (v *validator) nameForm(field, name string) bool {
	ok := nameForm.MatchString(name)
	if !ok {
		v.add(field, "is not a name", "1 to 100 of a-z, 0-9, dot, dash and underscore")
	}
	return ok
}

// atMost reports whether a list is no longer than it may be. The elements of one
// that is are not looked at: what a fault costs must not grow with the list.
func (v *validator) atMost(field string, n, most int) bool {
	if n > most {
		v.add(field, "has too many elements", fmt.Sprintf("at most %d", most))
	}
	return n <= most
}

// within returns list, or nothing when it is longer than it may be.
func (v *validator) within(field string, list []string, most int) []string {
	if !v.atMost(field, len(list), most) {
		return nil
	}
	return list
}

func (v *validator) classes(list []Class) map[string]bool {
	seen := map[string]bool{}
	if len(list) == 0 {
		v.add("classes", "is empty", "at least one rate class")
	}
	v.atMost("classes", len(list), maxClasses)
	for i, c := range list {
		f := fmt.Sprintf("classes[%d]", i)
		v.name(f+".name", c.Name, seen)
		if c.PerMinute == 0 {
			v.add(f+".per_minute", "is missing", "a positive integer")
		}
		v.limit(f+".per_minute", c.PerMinute)
		v.limit(f+".burst", c.Burst)
		v.cutOff(f+".when_cut_off", c.WhenCutOff)
		v.connections(f, c.Connections, c.ConnectionsPerKey)
	}
	return seen
}

func (v *validator) plans(list []Plan, classes, products map[string]bool) {
	seen, currency := map[string]bool{}, currencyOf(list)
	v.atMost("plans", len(list), maxPlans)
	for i, p := range list {
		f := fmt.Sprintf("plans[%d]", i)
		v.name(f+".name", p.Name, seen)
		if nameForm.MatchString(p.Name) && !planForm.MatchString(p.Name) {
			v.add(f+".name", "is not the name of a plan", "1 to 40 of a-z, 0-9, dash and underscore, a letter first")
		}
		for _, class := range sorted(p.Limits) {
			at, l := f+".limits."+class, p.Limits[class]
			if !classes[class] {
				v.add(at, "is not a known rate class", "a name from classes")
			}
			if l.PerMinute == 0 {
				v.add(at+".per_minute", "is missing", "a positive integer")
			}
			v.limit(at+".per_minute", l.PerMinute)
			v.limit(at+".burst", l.Burst)
			v.connections(at, l.Connections, l.ConnectionsPerKey)
		}
		v.words(f+".features", p.Features)
		for j, product := range v.within(f+".products", p.Products, maxProducts) {
			if !products[product] || slices.Contains(p.Products[:j], product) {
				v.add(fmt.Sprintf("%s.products[%d]", f, j), "is not a known product, or is given twice", "a name from products")
			}
		}
		v.tokens(f+".tokens", p.Tokens)
		if p.Quota != nil && p.Quota.Requests < 0 {
			v.add(f+".quota.requests", "is negative", "a positive integer, or nothing")
		}
		v.media(f+".media", p.Media)
		v.price(f+".price", p.Price, currency)
	}
}

// tokens checks a budget: one that allows nothing would be a plan without chat,
// which products say better.
func (v *validator) tokens(f string, b *TokenBudget) {
	if b == nil {
		return
	}
	if b.Daily < 0 {
		v.add(f+".daily", "is negative", "a positive integer, or nothing")
	}
	if b.Monthly < 0 || b.Monthly > 0 && b.Monthly < b.Daily {
		v.add(f+".monthly", "is out of range", "a positive integer that is not below daily, or nothing")
	}
}

func (v *validator) scopes(list []string) map[string]bool {
	seen := map[string]bool{}
	for i, s := range list {
		f := fmt.Sprintf("scopes[%d]", i)
		if !scopes.Valid(s) || strings.HasSuffix(s, "*") {
			v.add(f, "is not a scope", "resource:action; wildcards exist by themselves")
		} else if seen[s] {
			v.add(f, "is given twice", "")
		}
		seen[s] = true
	}
	return seen
}

func (v *validator) routes(list []Route, classes, scopes, products, features map[string]bool) {
	v.atMost("routes", len(list), policy.MaxRoutes-len(reserved))
	seen := make(map[string]bool, len(list))
	matchKeys := make([][]string, len(list))
	for i, r := range list {
		matchKeys[i] = v.checkRoute(i, r)
		if seen[r.Name] && nameForm.MatchString(r.Name) {
			v.add(fmt.Sprintf("routes[%d].name", i), "is given twice", "")
		}
		seen[r.Name] = true
		v.known(i, "class", r.Class, classes, "is not a known rate class", "a name from classes")
		v.known(i, "scope", r.Scope, scopes, "is not a known scope", "a name from scopes")
		v.known(i, "product", r.Product, products, "is not a known product", "a name from products")
		v.known(i, "feature", r.Feature, features, "is in no plan", "a name from a plan's features")
	}
	v.splits(list, products)
	v.overlaps(list, matchKeys)
	v.caches(list)
}

// known checks the name of another object in route i.
func (v *validator) known(i int, field, name string, names map[string]bool, issue, expected string) {
	if name != "" && !names[name] {
		v.add(fmt.Sprintf("routes[%d].%s", i, field), issue, expected)
	}
}
