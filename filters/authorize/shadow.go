package authorize

import (
	"sluice.dev/sluice/filters/credentials/keytable"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/filters/policy"
)

// Shadowed reports whether v is a refusal for nothing but what its route has in the
// shadow: the request passes, and v says with what it would have been refused first, and
// how. It is asked of refusals alone, so that nothing that passes pays for it.
func (v *Verdict) Shadowed() bool {
	if v.Code == decision.RateLimited {
		return v.Known && v.Rate.Policy == "" // only limits in the shadow have no name
	}
	return v.Known && v.Route.Shadow.Covers(v.Code)
}

// unlessShadowed is d, which refuses a request, unless that is in the shadow and the checks
// behind it refuse the request for what is enforced.
func unlessShadowed(d decision.Decision, plan *policy.Plan, route *policy.Route, env Env, caller *keytable.Record) decision.Decision {
	if !route.Shadow.Covers(d.Code) {
		return d
	}
	enforced, known := *route, *caller
	if route.Shadow&policy.ShadowScope != 0 {
		enforced.Scope, enforced.Grants = "", keytable.Scopes{}
	}
	if route.Shadow&policy.ShadowQuota != 0 {
		known.Flags &^= keytable.FlagQuotaUsed
	}
	enforced.Shadow = 0
	known.Flags &^= keytable.FlagAllowlist // was checked before
	if later := checkEntitlement(plan, &enforced, env, &known, ""); !later.OK() {
		return later
	}
	return d
}
