package authorize

import (
	"strings"

	"sluice.dev/sluice/filters/credentials/apikey"
	"sluice.dev/sluice/filters/credentials/keytable"
	"sluice.dev/sluice/filters/credentials/token"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/filters/policy"
)

// Kind is what kind of credential a request had.
type Kind uint8

// The kinds.
const (
	None  Kind = iota
	Key        // an API key that there is, or was
	Token      // a good token
	Bad        // a text that is neither, or a token that is not good any more
	// Certificate is a client certificate that there is, or was. It comes with the
	// connection: a route that does not ask for one sees a request without a credential.
	Certificate
)

// Credential is what is known of the credential of a request whose text is not at hand.
type Credential struct {
	Kind Kind
	// Record is a Key's or a Certificate's; of KindNone: it is gone.
	Record keytable.Record
	Bearer token.Bearer // a Token's
	// Code is why a Bad one was refused; empty: as a key or token that is not valid.
	Code decision.Code
}

// CheckKnown decides as Check does, of a request whose credential has been read before
// by an edge that knew all keys. It serves rehearsals, which have the records of an
// edge's decisions and no texts.
func CheckKnown(p *policy.Policy, routeName string, env Env, c Credential, now int64) Verdict {
	route, ok := p.Route(routeName)
	if !ok {
		return decideByAddress(p, nil, env, notReady, now)
	}
	if c.Kind == Certificate && route.Auth&policy.AuthCertificate == 0 {
		c.Kind = None
	}
	switch {
	case route.Deny != "":
		return decideByAddress(p, route, env, decision.Deny(route.Deny), now)
	case route.Auth == policy.AuthNone, c.Kind == None && route.Auth&policy.AuthNone != 0:
		return decideByAddress(p, route, env, decision.Pass, now)
	case c.Kind == None:
		return decideByAddress(p, route, env, decision.Deny(decision.AuthRequired), now)
	case c.Kind == Key && route.Auth&policy.AuthKey != 0, c.Kind == Certificate:
		return checkKnownKey(p, route, env, &c.Record, now)
	case c.Kind == Token && route.Auth&(policy.AuthToken|policy.AuthSession) != 0:
		return checkKnownToken(p, route, env, c.Bearer, now)
	case route.Auth&policy.AuthKey != 0 && c.Code != decision.InvalidToken && c.Code != decision.TokenExpired,
		route.Auth&(policy.AuthToken|policy.AuthSession) == 0:
		return decideByAddress(p, route, env, decision.Deny(decision.InvalidKey), now)
	}
	return checkNoToken(p, route, env, c.Code, now)
}

// What a request presents that Check does not look at, as its route lets nobody in.
const (
	PresentsNothing = "none" // no credential
	PresentsBad     = "bad"  // a text that is no key of ours, nor may be a token
)

// Presented finds whose request it is that was refused for its route, for what is noted
// of it: the record of its key, or what it presents instead; "" for what it would take
// more to know, a token above all. It costs what a look at a key costs.
func Presented(p *policy.Policy, env Env) (owner *keytable.Record, what string) {
	text, d := apikey.Bearer(env.Authorization())
	if key, found := keyOf(p, env, d); found.Code != decision.AuthRequired {
		text, d = key, found
	}
	switch {
	case d.Code == decision.AuthRequired:
		return nil, PresentsNothing
	case d.Code == decision.RepeatedHeader:
		return nil, ""
	case !d.OK():
		return nil, PresentsBad
	}
	if tag, ok := env.Keys().Tag(text); ok {
		if r, found := env.Record(tag); found && r.Kind == keytable.KindKey {
			return &r, ""
		}
	}
	if strings.IndexByte(text, '.') >= 0 || hasImports(env, text) {
		return nil, ""
	}
	return nil, PresentsBad
}

// checkKnownKey is checkKey for a key that was one.
func checkKnownKey(p *policy.Policy, route *policy.Route, env Env, r *keytable.Record, now int64) Verdict {
	found := r.Kind != keytable.KindNone
	if d := apikey.Decide(*r, found, true, now); !d.OK() {
		v := decideByAddress(p, route, env, d, now)
		if found {
			v.Owner = r
		}
		return v
	}
	return authorizeCaller(p, route, env, r, "", now)
}

// checkKnownToken is checkToken for a token that was good.
func checkKnownToken(p *policy.Policy, route *policy.Route, env Env, b token.Bearer, now int64) Verdict {
	account, found := env.Record(keytable.TagOfAccount(b.Account))
	if !found || account.Kind != keytable.KindAccount || !b.Own && route.Auth&policy.AuthToken == 0 {
		return checkNoToken(p, route, env, decision.InvalidToken, now)
	}
	caller := keytable.Record{Kind: keytable.KindToken, Flags: account.Flags, Plan: account.Plan, Expires: uint32(b.Expires),
		ID: b.ID, Account: b.Account, Scopes: b.Scopes}
	return authorizeCaller(p, route, env, &caller, b.Credential, now)
}

// checkNoToken is checkToken for a text that is no good token.
func checkNoToken(p *policy.Policy, route *policy.Route, env Env, why decision.Code, now int64) Verdict {
	if rate := guessWindow(p, env, now, env.Look); !rate.OK {
		return refuseGuess(route, rate)
	}
	guessWindow(p, env, now, env.Take)
	d := decision.Deny(decision.InvalidToken)
	if why == decision.TokenExpired {
		d = decision.Deny(why)
	}
	if route.Auth&policy.AuthSession != 0 {
		d = decision.Pass
	}
	return decideByAddress(p, route, env, d, now)
}
