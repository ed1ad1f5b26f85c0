package authorize

import (
	"sluice.dev/sluice/filters/credentials/apikey"
	"sluice.dev/sluice/filters/credentials/clientcert"
	"sluice.dev/sluice/filters/credentials/keytable"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/filters/policy"
)

// checkWithout decides about a request whose Authorization header is no credential of
// the route, for the reason d.
//
// A key or token is of the request, a certificate of the connection, which one program
// may use for many callers. So a route that takes both goes by the key or token where
// there is one, and refuses it when it is bad: it does not fall back on the certificate.
// A route that takes certificates alone does not look at the header.
func checkWithout(p *policy.Policy, route *policy.Route, env Env, d decision.Decision, now int64) Verdict {
	const others = policy.AuthKey | policy.AuthToken | policy.AuthSession
	if route.Auth&policy.AuthCertificate != 0 && (d.Code == decision.AuthRequired || route.Auth&others == 0) {
		return checkCertificate(p, route, env, now)
	}
	if d.Code == decision.AuthRequired {
		d = decideNobody(p, route)
	}
	return decideByAddress(p, route, env, d, now)
}

// checkCertificate finds the record of the client's certificate, which Envoy has
// verified when the connection began: its end and its revocation count now.
func checkCertificate(p *policy.Policy, route *policy.Route, env Env, now int64) Verdict {
	c, ok := env.Certificates().Read(env.Peer())
	d := judge(&c, ok, env, now)
	if d.Code == decision.AuthRequired {
		d = decideNobody(p, route)
	}
	if !d.OK() || !c.Present {
		return decideByAddress(p, route, env, d, now)
	}
	r, found := recordOf(&c, env)
	if d = apikey.Decide(r, found, true, now); d.OK() {
		return authorizeCaller(p, route, env, &r, "", now)
	}
	switch d.Code {
	case decision.InvalidKey:
		d = refuseCertificate("is mapped to no account", "a certificate of which a name or the SHA-256 was mapped to one")
	case decision.TokenExpired:
		d.Detail = decision.Detail{Field: "certificate", Issue: "is mapped to its account no longer: the mapping has expired"}
	}
	v := decideByAddress(p, route, env, d, now)
	if found && r.Kind == keytable.KindKey {
		owner := r // of its own: r stays on the stack for the certificates that are good
		v.Owner = &owner
	}
	return v
}

// judge decides about a certificate by itself. Only an edge that has the whole table
// knows that one is not revoked.
func judge(c *clientcert.Certificate, ok bool, env Env, now int64) decision.Decision {
	switch {
	case !ok:
		return refuseCertificate("cannot be read", "at most 16 KiB of names, and none with | in it")
	case !c.Present:
		return decision.Deny(decision.AuthRequired)
	case now >= c.Expires:
		return decision.Decision{Code: decision.TokenExpired, Detail: decision.Detail{
			Field: "certificate", Issue: "has expired since the connection began", Expected: "a new certificate, and a new connection"}}
	case !env.Ready():
		return notReady
	}
	if r, found := env.Record(c.Revoked); found && c.IsRevoked(&r) {
		return refuseCertificate("is revoked", "another certificate")
	}
	return decision.Pass
}

// CertificateOf returns the client's certificate if a known caller without a token was let
// in by it; nil: by something else.
func CertificateOf(route *policy.Route, env Env, caller *keytable.Record) *clientcert.Certificate {
	if route.Auth&policy.AuthCertificate == 0 {
		return nil
	}
	c, ok := env.Certificates().Read(env.Peer())
	if !ok || !c.Present {
		return nil
	}
	if r, found := recordOf(&c, env); !found || r.Tag != caller.Tag {
		return nil
	}
	return &c
}

// refuseCertificate says what is wrong with a certificate.
func refuseCertificate(issue, expected string) decision.Decision {
	return decision.Decision{Code: decision.InvalidCert, Detail: decision.Detail{Field: "certificate", Issue: issue, Expected: expected}}
}

// recordOf returns the first record that knows the certificate, by the order of
// clientcert.Kinds.
func recordOf(c *clientcert.Certificate, env Env) (r keytable.Record, found bool) {
	for _, tag := range c.Names {
		if r, found = env.Record(tag); found {
			return r, true
		}
	}
	return keytable.Record{}, false
}
