package policy

import (
	"slices"

	"sluice.dev/sluice/filters/decision"
)

// Shadow is the set of a route's requirements that are checked and counted, and let
// everybody pass. The limit is not among them: it is that of a class in the shadow, see
// ShadowClass. Credentials, addresses and what a plan includes are always enforced.
type Shadow uint8

// The requirements that a route may have in the shadow, besides its limit.
const (
	ShadowScope Shadow = 1 << iota
	ShadowQuota
)

// shadowShift is where the set stands in the byte that it shares with Auth: edges of
// the release before see ways in that they do not know, and enforce.
const shadowShift = 6

// Covers reports whether a refusal of a known caller with code c is one that s lets pass.
func (s Shadow) Covers(c decision.Code) bool {
	return c == decision.ScopeMissing && s&ShadowScope != 0 || c == decision.QuotaUsed && s&ShadowQuota != 0
}

// ShadowClass is how far behind each class its shadow stands, which routes have whose limit
// is not enforced: windows are known by the number of their class, so what is counted
// there never counts against an enforced limit. The two together fit into a byte, and all
// classes of two documents, of 64 each, into the first part while edges have both.
const ShadowClass = 128

// Enforced are the classes of p without those in the shadow.
func (p *Policy) Enforced() []string {
	names := p.Classes[:min(len(p.Classes), ShadowClass)]
	if i := slices.Index(names, ""); i >= 0 {
		names = names[:i]
	}
	return names
}

// AddShadows gives each class of p a shadow with its limits. Lists are made anew.
func (p *Policy) AddShadows() {
	n := len(p.Enforced())
	p.Classes = shadowed(p.Classes[:n])
	p.Plans = slices.Clone(p.Plans)
	for i := range p.Plans {
		p.Plans[i].Limits = shadowed(p.Plans[i].Limits[:n])
	}
}

// shadowed is list, filled up, and list again.
func shadowed[T any](list []T) []T {
	out := make([]T, ShadowClass, ShadowClass+len(list))
	copy(out, list)
	return append(out, list...)
}

// Shown is the name under which answers show the limit of a class; empty for one in the
// shadow, which they do not show.
func (p *Policy) Shown(class uint8) string { return p.shown[class] }

// showClasses fills what Shown looks up.
func (p *Policy) showClasses() {
	p.shown = slices.Clone(p.Classes)
	if len(p.shown) > ShadowClass {
		clear(p.shown[ShadowClass:])
	}
}
