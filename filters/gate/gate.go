// Package gate runs the checks of the edge in their fixed order and says what
// becomes of a request. It calls the pure packages and reaches the outside only
// through Env, so the whole path of a request is tested without Envoy.
package gate

import (
	"crypto/sha256"

	"sluice.dev/sluice/filters/auth"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/filters/keytable"
	"sluice.dev/sluice/filters/policy"
	"sluice.dev/sluice/filters/ratelimit"
	"sluice.dev/sluice/filters/scopes"
)

// Env is what the gate needs of the machine around it.
type Env interface {
	// Record finds the record with tag t.
	Record(t keytable.Tag) (keytable.Record, bool)
	// Ready reports whether the table of records has been loaded once.
	Ready() bool
	// Take counts a request in the window of id.
	Take(k ratelimit.Kind, id ratelimit.ID, l ratelimit.Limit, now int64) ratelimit.Result
	// ClientAddress is the address of the client, with its port.
	ClientAddress() string
	// Authorization is the request's Authorization header, "" when it has none.
	Authorization() string
}

// Verdict is what becomes of a request.
type Verdict struct {
	decision.Decision
	Rate   ratelimit.Result // for the headers, whatever the decision
	Known  bool             // Caller is the record of a good key
	Caller keytable.Record
	Route  *policy.Route // nil when the edge has no policy for it
}

// Check judges a request to the named route at now, in unix seconds.
//
// The order: policy, route, credential, scope, rate limit. Every request counts
// in one window: the account's once its key is known to be good, else the
// client address's, so that guessing keys is limited too. A request that is
// refused for its rate is not counted.
func Check(p *policy.Policy, routeName string, env Env, now int64) Verdict {
	if p == nil {
		return Verdict{Decision: notReady}
	}
	route, ok := p.Route(routeName)
	if !ok {
		return refuse(p, nil, env, notReady, now)
	}
	if route.Deny != "" {
		return refuse(p, route, env, decision.Deny(route.Deny), now)
	}
	if route.Auth == policy.AuthNone {
		return refuse(p, route, env, decision.Pass, now)
	}
	header := env.Authorization()
	if header == "" && route.Auth&policy.AuthNone != 0 {
		return refuse(p, route, env, decision.Pass, now)
	}
	credential, d := auth.Bearer(header)
	if !d.OK() {
		return refuse(p, route, env, d, now)
	}
	if route.Auth&policy.AuthKey != 0 && auth.WellFormed(credential) {
		return checkKey(p, route, env, credential, now)
	}
	if route.Auth&policy.AuthSession != 0 {
		// The product behind verifies session tokens.
		return refuse(p, route, env, decision.Pass, now)
	}
	return refuse(p, route, env, decision.Deny(decision.InvalidKey), now)
}

var notReady = decision.Decision{Code: decision.EdgeNotReady, RetryAfter: 1}

func checkKey(p *policy.Policy, route *policy.Route, env Env, key string, now int64) Verdict {
	r, found := env.Record(keytable.TagOfKey(sha256.Sum256([]byte(key))))
	d := auth.Decide(r, found, found || env.Ready(), now)
	if !d.OK() && (!found || d.Code == decision.TokenExpired || d.Code == decision.InvalidKey) {
		return refuse(p, route, env, d, now)
	}
	limit, ok := limitOf(p, route, env, r)
	if !ok { // a key of a plan that this policy does not know yet
		return refuse(p, route, env, notReady, now)
	}
	v := Verdict{Decision: d, Known: true, Caller: r, Route: route}
	if v.OK() {
		v.Decision = scopes.Decide(r.Scopes, route.Grants, route.Scope)
	}
	v.Rate = env.Take(ratelimit.Accounts, ratelimit.AccountID(r.Account, route.Class), limit, now)
	return limited(v)
}

// limitOf is the account's own limit in the route's class, or its plan's.
func limitOf(p *policy.Policy, route *policy.Route, env Env, r keytable.Record) (ratelimit.Limit, bool) {
	if r.Flags&keytable.FlagLimits != 0 {
		own, ok := env.Record(keytable.TagOfLimit(r.Account, p.Classes[route.Class]))
		if ok && own.Kind == keytable.KindLimit {
			return ratelimit.Limit{PerMinute: own.Limit}, true
		}
	}
	plan, ok := p.Plan(r.Plan)
	if !ok {
		return ratelimit.Limit{}, false
	}
	l := plan.Limits[route.Class]
	return ratelimit.Limit{PerMinute: l.PerMinute, Burst: l.Burst}, true
}

// refuse ends a request that has no good key with d, which may also let it
// pass, and counts it for its address.
func refuse(p *policy.Policy, route *policy.Route, env Env, d decision.Decision, now int64) Verdict {
	v := Verdict{Decision: d, Route: route}
	v.Rate = env.Take(ratelimit.Addresses, ratelimit.AddressID(env.ClientAddress()), ratelimit.Limit{PerMinute: p.Anonymous}, now)
	return limited(v)
}

// limited turns a request that would pass, or guesses at credentials, into 429
// when its window is full. Other refusals keep their reason.
func limited(v Verdict) Verdict {
	guess := v.Code == decision.InvalidKey || v.Code == decision.AuthRequired
	if !v.Rate.OK && (v.OK() || guess) {
		v.Decision = decision.Decision{Code: decision.RateLimited, RetryAfter: v.Rate.RetryAfter}
	}
	return v
}
