package authorize

import (
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

// unlessShadowed is d, which refuses a request, unless that is in the shadow s and later,
// what the checks behind it say, refuses the request for what is enforced.
func unlessShadowed(d, later decision.Decision, s policy.Shadow) decision.Decision {
	if s.Covers(d.Code) && !later.OK() && !s.Covers(later.Code) {
		return later
	}
	return d
}
