package config

import (
	"fmt"
	"slices"

	"sluice.dev/sluice/filters/policy"
)

// What a route may have in the shadow.
const (
	ShadowScope = "scope"
	ShadowLimit = "limit"
	ShadowQuota = "quota"
)

// shadow checks what a route has in the shadow: what it asks, of callers it knows.
func (v *validator) shadow(f string, r Route) {
	for i, s := range v.within(f, r.Shadow, 3) {
		at := fmt.Sprintf("%s[%d]", f, i)
		v.oneOf(at, s, ShadowScope, ShadowLimit, ShadowQuota)
		if slices.Contains(r.Shadow[:i], s) {
			v.add(at, "is given twice", "")
		}
		if s == ShadowScope && r.Scope == "" {
			v.add(at, "is of a route that asks for no scope", "a scope beside it")
		}
	}
	if len(r.Shadow) > 0 && len(r.Auth) == 1 && r.Auth[0] == "none" {
		v.add(f, "is of a route that knows no callers", "auth with key, token or session; callers without a credential are limited by address, which is always enforced")
	}
}

// shadows reports whether a limit, scope or quota of r is not enforced.
func (r Route) shadows(what string) bool { return slices.Contains(r.Shadow, what) }

// Shadows reports whether anything in d is not enforced.
func (d Document) Shadows() bool {
	return slices.ContainsFunc(d.Classes, func(c Class) bool { return c.Shadow }) || slices.ContainsFunc(d.Routes, func(r Route) bool { return len(r.Shadow) > 0 })
}

// shadowsLimits reports whether a limit in d is not enforced.
func (d Document) shadowsLimits() bool {
	return slices.ContainsFunc(d.Classes, func(c Class) bool { return c.Shadow }) || slices.ContainsFunc(d.Routes, func(r Route) bool { return r.shadows(ShadowLimit) })
}

// setShadow puts what r has in the shadow into its policy, and returns what that adds
// to the digest of what the route asks.
func (d Document) setShadow(pr *policy.Route, r Route) string {
	if r.shadows(ShadowScope) {
		pr.Shadow |= policy.ShadowScope
	}
	if r.shadows(ShadowQuota) {
		pr.Shadow |= policy.ShadowQuota
	}
	limit := r.shadows(ShadowLimit) || d.Classes[pr.Class].Shadow
	if limit {
		pr.Class += policy.ShadowClass
	}
	if pr.Shadow == 0 && !limit {
		return ""
	}
	return fmt.Sprintf(" shadow %d %t", pr.Shadow, limit)
}
