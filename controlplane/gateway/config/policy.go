package config

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"

	"sluice.dev/sluice/filters/credentials/keytable"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/filters/policy"
	"sluice.dev/sluice/filters/scopes"
	"sluice.dev/sluice/platform/apierror"
)

// The routes that every listener has beside the document's.
const (
	Unmapped = "unmapped" // for what no route below /v1/ on the gateway matches
	Absent   = "absent"   // for what none matches anywhere else
	// Repeated takes requests with a header of several values that decides who
	// calls or who pays, whatever their path: the edge would judge one value, and
	// a product might believe another.
	Repeated = "repeated"
	// Preflight is the route of what browsers ask before a page may call another
	// origin: open to anybody, and limited by address.
	Preflight = "preflight"
)

const defaultAnonymousPerMinute = 600

// Numbers are the numbers that edges' key records use in place of names. They
// belong to the database, since a number must never change its meaning.
type Numbers struct {
	Scopes map[string]int    // bit of each scope, wildcards included
	Plans  map[string]uint16 // number of each plan
	// Waiting are scopes that routes do not ask for yet, whatever the document says:
	// the records of credentials that shall have them are still on their way to edges.
	Waiting []string
}

// ScopeNames returns every scope that d's policy needs a bit for, sorted: the
// document's own, the wildcard of each resource, and the admin's.
func (d Document) ScopeNames() []string {
	names := []string{scopes.Admin}
	for _, s := range d.Scopes {
		names = append(names, scopes.Grantors(s)...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// PlanNames returns the names of d's plans in the order of the document.
func (d Document) PlanNames() []string {
	names := make([]string, len(d.Plans))
	for i, p := range d.Plans {
		names[i] = p.Name
	}
	return names
}

// Policy compiles d, which Validate must have passed, for edges. docsBase is the
// public address of the gateway: documentation stands there, and it is the name
// under which this platform issues tokens, for itself. Policy fails when
// n lacks a number, or the result is more than an edge takes.
func (d Document) Policy(version uint64, docsBase string, n Numbers) (*policy.Policy, error) {
	return new(Policies).Policy(d, version, docsBase, n)
}

// general is the policy without its routes.
func (d Document) general(version uint64, docsBase string, n Numbers) (*policy.Policy, error) {
	p := &policy.Policy{Version: version, DocsBase: docsBase, Anonymous: d.AnonymousLimit(), Payment: d.X402.Terms(), KeyHeaders: d.keyHeaders()}
	for _, c := range d.Classes {
		if c.WhenCutOff == CutOffStrict {
			p.Strict = append(p.Strict, byte(len(p.Classes)))
		}
		p.Classes = append(p.Classes, c.Name)
	}
	for _, pl := range d.Plans {
		number, ok := n.Plans[pl.Name]
		if !ok {
			return nil, fmt.Errorf("plan %s has no number", pl.Name)
		}
		p.Plans = append(p.Plans, policy.Plan{Number: number, Name: pl.Name, Limits: d.limits(pl), Products: pl.Products, Features: pl.Features})
	}
	for _, name := range slices.SortedFunc(maps.Keys(n.Scopes), func(a, b string) int { return n.Scopes[a] - n.Scopes[b] }) {
		p.Scopes = append(p.Scopes, policy.Scope{Bit: uint8(n.Scopes[name]), Name: name})
	}
	if d.shadowsLimits() {
		p.AddShadows()
	}
	var err error
	p.Issuers, err = d.issuers(docsBase, n)
	return p, err
}

// builtin are the policies of the routes that every listener has.
var builtin = []policy.Route{
	{Name: Unmapped, Deny: decision.RouteNotMapped},
	{Name: Absent, Deny: decision.NotFound},
	{Name: Preflight, Auth: policy.AuthNone},
	{Name: Repeated, Deny: decision.RepeatedHeader},
}

// fits checks p as an edge will: with its own reader.
func fits(p *policy.Policy) error {
	b := p.Encode()
	if len(b) > policy.MaxBytes {
		return apierror.Invalid([]decision.Detail{{Field: "routes", Issue: fmt.Sprintf("make a policy of %d bytes", len(b)),
			Expected: fmt.Sprintf("at most %d, which is what an edge takes: fewer routes, or shorter names", policy.MaxBytes)}})
	}
	if policy.Parse(b) == nil {
		return fmt.Errorf("policy of version %d is not one that an edge accepts", p.Version)
	}
	return nil
}

// AnonymousLimit is the requests a minute of one address without a credential.
func (d Document) AnonymousLimit() uint32 {
	if d.AnonymousPerMinute == 0 {
		return defaultAnonymousPerMinute
	}
	return d.AnonymousPerMinute
}

func (d Document) limits(pl Plan) []policy.Limit {
	limits := make([]policy.Limit, len(d.Classes))
	for i, c := range d.Classes {
		limits[i] = policy.Limit{PerMinute: c.PerMinute, Burst: c.Burst}
		if l, ok := pl.Limits[c.Name]; ok {
			limits[i] = policy.Limit{PerMinute: l.PerMinute, Burst: l.Burst, Connections: l.Connections, ConnectionsPerKey: l.ConnectionsPerKey}
		}
		limits[i] = c.inherit(limits[i])
		limits[i].Strict = c.WhenCutOff == CutOffStrict
	}
	return limits
}

func (d Document) routePolicy(r Route, n Numbers, checks digests) (policy.Route, error) {
	if slices.Contains(n.Waiting, r.Scope) {
		r.Scope = ""
	}
	pr := policy.Route{Name: r.Name, Product: r.Product, Scope: r.Scope, Class: d.classIndex(r.Class)}
	if r.Price != "" {
		var ok bool
		if pr.Price, ok = d.X402.Atomic(r.Price); !ok {
			return pr, fmt.Errorf("route %s has a price that is not one", r.Name)
		}
	}
	for _, a := range r.Auth {
		pr.Auth |= authBits[a]
	}
	pr.Feature, pr.BodyLimit = r.Feature, r.bodyLimit()
	class, asked := d.Classes[pr.Class].Name, checks.of(d, r)
	if len(r.Upgrades) > 0 {
		asked += " upgrades"
	}
	shadow := d.setShadow(&pr, r)
	pr.Revision = revision(pr, class, asked+shadow)
	if method := r.onlyMethod(); method != "" {
		pr.Revision += " " + method
	}
	if r.Scope == "" {
		return pr, nil
	}
	var err error
	pr.Grants, err = n.bits(scopes.Grantors(r.Scope))
	return pr, err
}

// onlyMethod is the method that r is for; empty when it is for several. HEAD comes with GET.
func (r Route) onlyMethod() string {
	rest := slices.DeleteFunc(slices.Clone(r.Methods), func(m string) bool { return m == "HEAD" && slices.Contains(r.Methods, "GET") })
	if len(rest) != 1 {
		return ""
	}
	return rest[0]
}

// revision is a digest of what a route asks of its callers, and of their requests. Two routes of one
// name and revision are judged alike.
func revision(r policy.Route, class, checks string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %d %q %q %d %q %d%s", r.Product, r.Auth, class, r.Scope, r.Price, r.Feature, r.BodyLimit, checks))
	return hex.EncodeToString(sum[:4])
}

const (
	defaultBodyLimit = 10 << 20
	// DefaultHeld is how much of a body an edge holds for a filter that must see
	// all of it.
	DefaultHeld = 64 << 10
)

// bodyLimit is how many bytes a body may have; 0: any number.
func (r Route) bodyLimit() uint64 {
	switch {
	case r.BodyLimit > 0:
		return r.BodyLimit
	case r.ChatCaps:
		return DefaultHeld
	case r.ChecksBody():
		return DefaultChecked
	case r.LongLived():
		return 0
	default:
		return defaultBodyLimit
	}
}

// bits returns the bits of scopes; it fails when one has none.
func (n Numbers) bits(names []string) (s keytable.Scopes, err error) {
	for _, name := range names {
		bit, ok := n.Scopes[name]
		if !ok {
			return s, fmt.Errorf("scope %s has no bit", name)
		}
		s = s.With(bit)
	}
	return s, nil
}

var authBits = map[string]policy.Auth{"none": policy.AuthNone, "key": policy.AuthKey, "session": policy.AuthSession, "token": policy.AuthToken, AuthCertificate: policy.AuthCertificate}

func (d Document) classIndex(name string) uint8 {
	return uint8(max(0, slices.IndexFunc(d.Classes, func(c Class) bool { return c.Name == name })))
}

// sorted returns the keys of m in order.
func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
