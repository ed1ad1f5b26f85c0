package authorize

import (
	"strconv"
	"strings"

	"sluice.dev/sluice/filters/credentials/apikey"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/filters/limits/ratelimit"
	"sluice.dev/sluice/filters/policy"
)

// What callers are told of a refusal beside its code: what was wrong, and what to do. It
// is put together when a request is refused, so that those which pass pay nothing for it,
// and has no part of what was sent in it.

// decideNobody decides about a request without a credential.
func decideNobody(p *policy.Policy, route *policy.Route) decision.Decision {
	switch {
	case route.Auth&policy.AuthNone != 0:
		return decision.Pass
	case route.Price > 0: // it may be paid for, and is asked to
		return decision.Deny(decision.AuthRequired)
	}
	return decision.Decision{Code: decision.AuthRequired, Detail: missing(p, route)}
}

// certificateExpected is what a route that takes client certificates expects.
const certificateExpected = "a client certificate in the TLS handshake, over HTTP/1.1 or HTTP/2"

// missing says which credentials a route takes, and where.
func missing(p *policy.Policy, route *policy.Route) decision.Detail {
	kind := ""
	switch key, token := route.Auth&policy.AuthKey != 0, route.Auth&policy.AuthToken != 0; {
	case key && route.Auth&(policy.AuthToken|policy.AuthSession) != 0:
		kind = "API key or token"
	case key:
		kind = "API key"
	case token:
		kind = "access token"
	case route.Auth&policy.AuthSession != 0:
		kind = "session token"
	default:
		return decision.Detail{Field: "certificate", Issue: "is missing", Expected: certificateExpected}
	}
	d := apikey.Missing
	if kind != "API key" {
		d.Expected = apikey.Header + ": Bearer <" + kind + ">"
	}
	if route.Auth&policy.AuthKey != 0 && len(p.KeyHeaders) > 0 {
		d.Expected += ", or the API key alone in " + strings.Join(p.KeyHeaders, " or ")
	}
	if route.Stream == policy.Upgrades {
		d.Expected += ", or the WebSocket protocol " + BearerProtocol + "<" + kind + ">"
	}
	if route.Auth&policy.AuthCertificate != 0 {
		d.Expected += ", or " + certificateExpected
	}
	return d
}

// formOfToken says of a text that is no good token if it has not even the form of one.
// Nothing is said of what has: a forged token teaches nothing.
func formOfToken(text string) (d decision.Detail) {
	const expected = "a JSON Web Token: three parts with dots between them"
	switch {
	case apikey.WellFormed(text):
		return decision.Detail{Field: "token", Issue: "is an API key, which this route does not take", Expected: expected}
	case strings.Count(text, ".") != 2:
		return decision.Detail{Field: "token", Issue: "has not the form of a token", Expected: expected}
	}
	return d
}

// refuseImported refuses a text that is no key of ours and none that was imported. It is
// told what is wrong with it only if it looks like one of ours: of the form of others
// nothing is known.
func refuseImported(text string) decision.Decision {
	if d := apikey.Malformed(text); strings.HasPrefix(text, apikey.Prefix) {
		return d
	}
	return decision.Deny(decision.InvalidKey)
}

// overLimit refuses a request whose window is full: which limit that is, and when to try
// again. A limit in the shadow, which has no name, is told to nobody.
func overLimit(v *Verdict) decision.Decision {
	switch r := v.Rate; {
	case r.Policy == "":
		return decision.Decision{Code: decision.RateLimited, RetryAfter: r.RetryAfter}
	case !v.Known:
		return RefuseAddress(r)
	case v.Caller.Limit > 0 && r.Policy == keyPolicy:
		return rateLimited(r, "key", "may make ", " request", "", "")
	default:
		return rateLimited(r, "account", "may make ", " request", " in the class "+r.Policy, "")
	}
}

// RefuseAddress refuses a request for what its address has sent without a good credential.
func RefuseAddress(r ratelimit.Result) decision.Decision {
	return rateLimited(r, "address", "may make ", " request", " without a valid credential", "a valid credential, or ")
}

// refuseGuess refuses a credential that nobody looks at, for how many from its address
// were no good.
func refuseGuess(route *policy.Route, r ratelimit.Result) Verdict {
	return Verdict{Decision: rateLimited(r, "address", "may send ", " bad credential", "", ""), Route: route, Rate: r}
}

// rateLimited says whose limit it is, of how many of what, and in how many seconds there
// is room for one more.
func rateLimited(r ratelimit.Result, whose, may, what, which, other string) decision.Decision {
	return decision.Decision{Code: decision.RateLimited, RetryAfter: r.RetryAfter, Detail: decision.Detail{
		Field: whose, Issue: may + counted(uint64(r.Limit), what) + " in " + ratelimit.WindowValue + " seconds" + which,
		Expected: other + "another try in " + counted(uint64(r.RetryAfter), " second")}}
}

// counted is n with its unit, such as "2 seconds".
func counted(n uint64, unit string) string {
	if n != 1 {
		unit += "s"
	}
	return strconv.FormatUint(n, 10) + unit
}
