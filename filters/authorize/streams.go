package authorize

import (
	"strings"

	"sluice.dev/sluice/filters/credentials/apikey"
	"sluice.dev/sluice/filters/credentials/clientcert"
	"sluice.dev/sluice/filters/credentials/keytable"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/filters/policy"
	"sluice.dev/sluice/filters/scopes"
)

// ProtocolsHeader is where browsers, which cannot set Authorization on a WebSocket, name
// the protocols that a page speaks, and BearerProtocol begins the one that is a credential.
const (
	ProtocolsHeader = "sec-websocket-protocol"
	BearerProtocol  = "sluice.bearer."
)

// maxProtocols bounds a list of protocols that is looked at, in bytes.
const maxProtocols = 8192

// checkSpecial decides about a request to a route that refuses everybody, or whose
// connections are watched. One of the latter that would pass gets decision.Watched: a
// place must be found for it.
func checkSpecial(p *policy.Policy, route *policy.Route, env Env, now int64) Verdict {
	if route.Deny != "" {
		return decideByAddress(p, route, env, decision.Deny(route.Deny), now)
	}
	v := checkStream(p, route, env, now)
	if v.OK() {
		v.Decision = decision.Decision{Code: decision.Watched}
	}
	return v
}

func checkStream(p *policy.Policy, route *policy.Route, env Env, now int64) Verdict {
	if route.Auth == policy.AuthNone {
		return decideByAddress(p, route, env, decision.Pass, now)
	}
	authorization := env.Authorization()
	if authorization == "" && route.Stream == policy.Upgrades {
		if credential, _ := CutBearer(env.Header(ProtocolsHeader)); credential != "" {
			authorization = "Bearer " + credential
		}
	}
	return checkCredential(p, route, env, authorization, now)
}

// CutBearer takes credentials out of a list of protocols: it returns the first, "" when
// there is none, and the list without any, which is what the product may see. It takes time
// and memory linear in the header, of which it takes no more than 8 KiB for a list.
func CutBearer(header string) (credential, rest string) {
	if len(header) > maxProtocols {
		return "", ""
	}
	if !strings.Contains(header, BearerProtocol) {
		return "", header
	}
	var kept []string
	for name := range strings.SplitSeq(header, ",") {
		name = strings.Trim(name, " \t")
		if bearer, ok := strings.CutPrefix(name, BearerProtocol); !ok {
			kept = append(kept, name)
		} else if credential == "" {
			credential = bearer
		}
	}
	return credential, strings.Join(kept, ", ")
}

// Recheck decides whether a caller whose stream is open may go on, as a new request of the
// same credential may: it is still good, its account in good standing, and the route is still
// within its scopes and plan. Neither its rate nor its address counts. p and route are those
// under which the stream began; what the route has in the shadow ends none. certificate is
// the caller's, see CertificateOf; nil: it came with another credential.
func Recheck(p *policy.Policy, route *policy.Route, env Env, caller *keytable.Record, token string, certificate *clientcert.Certificate, now int64) decision.Decision {
	if caller.Expired(now) {
		return decision.Deny(decision.TokenExpired)
	}
	if certificate != nil {
		if d := judge(certificate, true, env, now); !d.OK() {
			return d
		}
	}
	present, d := presentRecord(env, caller, token, now)
	if !d.OK() {
		return d
	}
	plan, ok := p.Plan(present.Plan)
	if !ok { // this policy does not know it: requests under the next one are judged by that
		return decision.Pass
	}
	if d := apikey.Standing(present.Flags); !d.OK() && route.Auth&policy.AuthSession == 0 && !route.Shadow.Covers(d.Code) {
		return d
	}
	if d := scopes.Decide(present.Scopes, route.Grants, route.Scope); !d.OK() && !route.Shadow.Covers(d.Code) {
		return d
	}
	return checkPlan(plan, route)
}

// presentRecord is what the edge knows of a caller by now.
func presentRecord(env Env, caller *keytable.Record, token string, now int64) (keytable.Record, decision.Decision) {
	if token == "" {
		r, found := env.Record(caller.Tag)
		return r, apikey.Decide(r, found, found || env.Ready(), now)
	}
	if r, found := env.Record(keytable.TagOfToken(token)); found && r.Kind == keytable.KindToken {
		return r, decision.Deny(decision.InvalidToken)
	}
	account, found := env.Record(keytable.TagOfAccount(caller.Account))
	if !found || account.Kind != keytable.KindAccount {
		return account, decision.Deny(decision.InvalidToken)
	}
	account.Scopes = caller.Scopes
	return account, decision.Pass
}
