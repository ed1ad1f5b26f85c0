// Package authorize runs the checks of the edge in their fixed order and decides
// what becomes of a request. It calls the pure packages and reaches the outside only
// through Env, so the whole path of a request is tested without Envoy.
package authorize

import (
	"strings"

	"sluice.dev/sluice/filters/credentials/allowlist"
	"sluice.dev/sluice/filters/credentials/apikey"
	"sluice.dev/sluice/filters/credentials/clientcert"
	"sluice.dev/sluice/filters/credentials/keytable"
	"sluice.dev/sluice/filters/credentials/token"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/filters/limits/ratelimit"
	"sluice.dev/sluice/filters/policy"
	"sluice.dev/sluice/filters/scopes"
)

// Env is what Check needs of the machine around it.
type Env interface {
	token.Env
	// Tokens remembers the tokens checked under the present policy.
	Tokens() *token.Table
	// Keys remembers the tags of keys that were found.
	Keys() *apikey.Memo
	// Take counts a request in the window of id.
	Take(k ratelimit.Kind, id ratelimit.ID, l ratelimit.Limit, now int64) ratelimit.Result
	// Look is what Take would return; it counts nothing.
	Look(k ratelimit.Kind, id ratelimit.ID, l ratelimit.Limit, now int64) ratelimit.Result
	// GiveBack takes back what Take has just counted in the window of id.
	GiveBack(k ratelimit.Kind, id ratelimit.ID, now int64)
	// ClientAddress is the address of the client, with its port.
	ClientAddress() string
	// CallerAddress is the address, with a port, of a caller with a good key or,
	// when its id is not empty, token: the client's, unless a service of ours
	// calls in the caller's name and vouches for another.
	CallerAddress(caller *keytable.Record, token string) string
	// Authorization is the request's Authorization header, "" when it has none.
	Authorization() string
	// Header is another header of the request; "" when it has none.
	Header(name string) string
	// Peer is what Envoy says of the client's certificate, see clientcert.Header. It is
	// asked for only on routes that let certificates in.
	Peer() string
	// Certificates remembers those that were read.
	Certificates() *clientcert.Memo
}

// Verdict is what becomes of a request.
type Verdict struct {
	decision.Decision
	Rate   ratelimit.Result // for the headers, whatever the decision
	Known  bool             // Caller has a good key or token
	Caller keytable.Record  // of the key; for a token made from its account's
	Token  string           // id of the session or grant; empty: Caller has a key
	Route  *policy.Route    // nil when the edge has no policy for it
	// Owner is the record of a key that the edge knows and refuses as such; nil: none.
	// It says whose request was refused and lets nobody in.
	Owner *keytable.Record
}

// Check decides what becomes of a request to the named route at now, in unix seconds.
//
// The order: policy, route, credential, address, standing, scope, plan, rate
// limit. A request counts for its account once its credential is known to be
// good, and for its key if that has a limit of its own; else for the client's
// address, so that guessing is limited too. A request that is refused for its
// rate is not counted. What the route has in the shadow is checked and counted in that
// order too; see Verdict.Shadowed.
//
// A key that is no good costs a look-up, a token that is none much more: it is
// taken apart and its signature checked. So tokens that turn out to be no good
// are counted for their address once more, in a window of their own with the
// same limit, and while that is full no token from there is taken apart but those
// that this worker has found good before, under the present policy. The others
// get 429 at once. Keys and tokens that are good are never counted there, nor
// does anything else that an address does fill that window: who shares an address
// with many others, or with somebody who has used up its own window, signs in as
// ever; with somebody who guesses at tokens, up to a minute after the last guess.
func Check(p *policy.Policy, routeName string, env Env, now int64) Verdict {
	if p == nil {
		return Verdict{Decision: notReady}
	}
	route, ok := p.Route(routeName)
	if !ok {
		return decideByAddress(p, nil, env, notReady, now)
	}
	if route.Special() {
		return checkSpecial(p, route, env, now)
	}
	if route.Auth == policy.AuthNone {
		return decideByAddress(p, route, env, decision.Pass, now)
	}
	return checkCredential(p, route, env, env.Authorization(), now)
}

// checkCredential finds whose credential a request brings, in authorization or another header.
func checkCredential(p *policy.Policy, route *policy.Route, env Env, authorization string, now int64) Verdict {
	credential, d := apikey.Bearer(authorization)
	if len(p.KeyHeaders) > 0 && route.Auth&policy.AuthKey != 0 {
		if key, found := keyOf(p, env, d); found.Code != decision.AuthRequired {
			return checkBareKey(p, route, env, key, found, now)
		}
	}
	if !d.OK() {
		return checkWithout(p, route, env, d, now)
	}
	if route.Auth&policy.AuthKey != 0 {
		if tag, ok := env.Keys().Tag(credential); ok {
			return checkKey(p, route, env, credential, tag, now)
		}
		tokens := route.Auth&(policy.AuthToken|policy.AuthSession) != 0
		if (!tokens || !apikey.LooksLikeToken(credential)) && hasImports(env, credential) {
			return checkImported(p, route, env, credential, now)
		}
	}
	mistyped := route.Auth&policy.AuthKey != 0 && strings.IndexByte(credential, '.') < 0 // tokens have dots, keys of ours none
	if route.Auth&(policy.AuthToken|policy.AuthSession) != 0 && !mistyped {
		return checkToken(p, route, env, credential, now)
	}
	return checkWithout(p, route, env, apikey.Malformed(credential), now)
}

var notReady = decision.Decision{Code: decision.EdgeNotReady, RetryAfter: 1}

// checkKey finds the record of a key; a key that the edge does not know is only
// refused once the edge knows all keys.
func checkKey(p *policy.Policy, route *policy.Route, env Env, key string, tag keytable.Tag, now int64) Verdict {
	r, found := env.Record(tag)
	if found {
		env.Keys().Keep(key, tag)
	} else if hasImports(env, key) { // it may be of another installation of ours
		return checkImported(p, route, env, key, now)
	}
	if d := apikey.Decide(r, found, found || env.Ready(), now); !d.OK() {
		v := decideByAddress(p, route, env, d, now)
		if found && r.Kind == keytable.KindKey {
			owner := r // of its own: r stays on the stack for the keys that are good
			v.Owner = &owner
		}
		return v
	}
	return authorizeCaller(p, route, env, &r, "", now)
}

// checkToken checks a token and finds its account. A route that takes session
// tokens gets those that the edge cannot check, since its product checks them too.
func checkToken(p *policy.Policy, route *policy.Route, env Env, text string, now int64) Verdict {
	found := env.Tokens().Find(text)
	if !found.Proven {
		if rate := guessWindow(p, env, now, env.Look); !rate.OK {
			return refuseGuess(route, rate)
		}
	}
	b, d := env.Tokens().Check(p, env, found, now)
	if d.OK() && !b.Own && route.Auth&policy.AuthToken == 0 { // a session is ours
		d = decision.Deny(decision.InvalidToken)
	}
	var account keytable.Record
	if d.OK() {
		var found bool
		account, found = env.Record(keytable.TagOfAccount(b.Account))
		if !found || account.Kind != keytable.KindAccount {
			d = decision.Deny(decision.InvalidToken)
		}
	}
	if !d.OK() {
		if d.Code != decision.EdgeNotReady {
			guessWindow(p, env, now, env.Take)
		}
		if route.Auth&policy.AuthSession != 0 {
			d = decision.Pass
		} else if d.Code == decision.InvalidToken {
			d.Detail = formOfToken(text)
		}
		return decideByAddress(p, route, env, d, now)
	}
	caller := keytable.Record{Kind: keytable.KindToken, Flags: account.Flags, Plan: account.Plan, Expires: uint32(b.Expires),
		ID: b.ID, Account: b.Account, Scopes: b.Scopes}
	return authorizeCaller(p, route, env, &caller, b.Credential, now)
}

// guessWindow looks at, or counts in, the window of the tokens from the client's
// address that were no good.
func guessWindow(p *policy.Policy, env Env, now int64, how func(ratelimit.Kind, ratelimit.ID, ratelimit.Limit, int64) ratelimit.Result) ratelimit.Result {
	r := how(ratelimit.Addresses, ratelimit.GuessID(env.ClientAddress()), ratelimit.Limit{PerMinute: p.Anonymous}, now)
	r.Policy = addressPolicy
	return r
}

// authorizeCaller decides about a request of a known caller, by what its account has
// and may, and counts it for the account.
func authorizeCaller(p *policy.Policy, route *policy.Route, env Env, caller *keytable.Record, token string, now int64) Verdict {
	plan, ok := p.Plan(caller.Plan)
	if !ok { // this policy does not know it yet
		return decideByAddress(p, route, env, notReady, now)
	}
	v := Verdict{Decision: checkEntitlement(plan, route, env, caller, token), Known: true, Caller: *caller, Token: token, Route: route}
	v.Rate = countRequest(p, limitOf(p, plan, route, env, caller), route, env, caller, now)
	return applyRateLimit(v)
}

// Names of the limits that are of no class.
const (
	keyPolicy     = "key"
	addressPolicy = "address"
)

// countRequest counts a request in the window of its key, if the key has a limit of
// its own, and in its account's, unless one of them is full; it returns the one
// that is, or else the one with the fewest requests left.
func countRequest(p *policy.Policy, l ratelimit.Limit, route *policy.Route, env Env, caller *keytable.Record, now int64) ratelimit.Result {
	own := caller.Kind == keytable.KindKey && caller.Limit > 0
	var key ratelimit.Result
	if own {
		key = env.Take(ratelimit.Accounts, ratelimit.KeyID(caller.ID), ratelimit.Limit{PerMinute: caller.Limit}, now)
		if key.Policy = keyPolicy; !key.OK {
			return key
		}
	}
	account := env.Take(ratelimit.Accounts, ratelimit.AccountID(caller.Account, route.Class), l, now)
	account.Policy = p.Shown(route.Class)
	switch {
	case own && !account.OK:
		if account.Policy != "" { // in the shadow it passes, and counts for its key
			env.GiveBack(ratelimit.Accounts, ratelimit.KeyID(caller.ID), now)
		}
	case own && key.Remaining < account.Remaining:
		return key
	}
	return account
}

// checkEntitlement checks, in this order, from where a caller comes, whether its account
// is in good standing, its scopes, and what its plan includes.
func checkEntitlement(plan *policy.Plan, route *policy.Route, env Env, caller *keytable.Record, token string) decision.Decision {
	if caller.Flags&keytable.FlagAllowlist != 0 {
		if d := checkAddress(env, caller, token); !d.OK() {
			return d
		}
	}
	if d := apikey.Standing(caller.Flags); !d.OK() && route.Auth&policy.AuthSession == 0 {
		return unlessShadowed(d, plan, route, env, caller)
	}
	if d := scopes.Decide(caller.Scopes, route.Grants, route.Scope); !d.OK() {
		return unlessShadowed(d, plan, route, env, caller)
	}
	return checkPlan(plan, route)
}

// checkPlan checks what the caller's plan includes.
func checkPlan(plan *policy.Plan, route *policy.Route) decision.Decision {
	if !plan.Includes(route.Sold()) {
		return decision.Decision{Code: decision.PlanTooLow,
			Detail: decision.Detail{Field: "plan", Issue: plan.Name + " does not include this product", Expected: route.Sold()}}
	}
	if !plan.Has(route.Feature) {
		return decision.Decision{Code: decision.PlanTooLow,
			Detail: decision.Detail{Field: "plan", Issue: plan.Name + " does not have this feature", Expected: route.Feature}}
	}
	return decision.Pass
}

// checkAddress checks the caller's address against the account's allowlist.
func checkAddress(env Env, caller *keytable.Record, token string) decision.Decision {
	list, _, whole := keytable.Join(keytable.TagOfAllowlist(caller.Account), env.Record)
	if !whole { // it is just arriving
		return notReady
	}
	return allowlist.Decide(env.CallerAddress(caller, token), list)
}

// limitOf is the account's own limit in the route's class, or its plan's.
func limitOf(p *policy.Policy, plan *policy.Plan, route *policy.Route, env Env, r *keytable.Record) ratelimit.Limit {
	if r.Flags&keytable.FlagLimits != 0 {
		own, ok := env.Record(keytable.TagOfLimit(r.Account, p.Classes[route.Class]))
		if ok && own.Kind == keytable.KindLimit {
			return ratelimit.Limit{PerMinute: own.Limit, Strict: plan.Limits[route.Class].Strict}
		}
	}
	l := plan.Limits[route.Class]
	return ratelimit.Limit{PerMinute: l.PerMinute, Burst: l.Burst, Strict: l.Strict}
}

// decideByAddress ends a request that has no good key with d, which may also let it
// pass, and counts it for its address.
func decideByAddress(p *policy.Policy, route *policy.Route, env Env, d decision.Decision, now int64) Verdict {
	v := Verdict{Decision: d, Route: route}
	v.Rate = env.Take(ratelimit.Addresses, ratelimit.AddressID(env.ClientAddress()), ratelimit.Limit{PerMinute: p.Anonymous}, now)
	v.Rate.Policy = addressPolicy
	return applyRateLimit(v)
}

// applyRateLimit turns a request that would pass, or guesses at credentials, into
// 429 when its window is full. Other refusals keep their reason.
func applyRateLimit(v Verdict) Verdict {
	guess := v.Code == decision.InvalidKey || v.Code == decision.InvalidToken || v.Code == decision.AuthRequired || v.Code == decision.InvalidCert
	if !v.Rate.OK && (v.OK() || guess || v.Known && v.Route.Shadow.Covers(v.Code) && v.Rate.Policy != "") {
		v.Decision = overLimit(&v)
	}
	return v
}
