package authorize

import (
	"testing"

	"sluice.dev/sluice/filters/credentials/clientcert"
	"sluice.dev/sluice/filters/credentials/keytable"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/filters/policy"
)

// An open stream ends when a new request of its caller would be refused, by what the route
// enforces.
func TestStreamsEndWithWhatLetThemIn(t *testing.T) {
	t.Parallel()
	const uri = "spiffe://acme/laptop"
	for name, c := range map[string]struct {
		route  string
		shadow policy.Shadow
		key    bool // in place of the certificate
		then   func(*edge)
		want   decision.Code
	}{
		"nothing has changed":         {route: "cert"},
		"the certificate is revoked":  {route: "cert", then: func(e *edge) { e.put(clientcert.Revoked("a1b", []string{"CN=Test CA"})) }, want: decision.InvalidCert},
		"another one is revoked":      {route: "cert", then: func(e *edge) { e.put(clientcert.Revoked("a1c", []string{"CN=Test CA"})) }},
		"revoked beside a key":        {route: "cert.key", key: true, then: func(e *edge) { e.put(clientcert.Revoked("a1b", []string{"CN=Test CA"})) }},
		"the mapping loses its scope": {route: "cert", then: func(e *edge) { e.certificate(clientcert.URI, uri, 50, nil) }, want: decision.ScopeMissing},
		"the same in the shadow":      {route: "cert", shadow: policy.ShadowScope, then: func(e *edge) { e.certificate(clientcert.URI, uri, 50, nil) }},
		"the account owes": {route: "cert", then: func(e *edge) {
			e.certificate(clientcert.URI, uri, 50, func(r *keytable.Record) { r.Flags = keytable.FlagUnpaid }, bitRead)
		}, want: decision.Unpaid},
		"the quota is used up, in the shadow": {route: "cert", shadow: policy.ShadowQuota, then: func(e *edge) {
			e.certificate(clientcert.URI, uri, 50, func(r *keytable.Record) { r.Flags = keytable.FlagQuotaUsed }, bitRead)
		}},
	} {
		e, p := newEdge(), withCertificates(t)
		e.peer = peer(uri, now+60)
		e.certificate(clientcert.URI, uri, 50, nil, bitRead)
		if c.key {
			e.header = "Bearer " + e.key(1, nil)
		}
		v := Check(p, c.route, e, now)
		if !v.OK() {
			t.Fatalf("%s: %+v", name, v.Decision)
		}
		certificate := CertificateOf(v.Route, e, &v.Caller)
		if (certificate == nil) != c.key {
			t.Errorf("%s: certificate %+v", name, certificate)
		}
		if c.then != nil {
			c.then(e)
		}
		route := *v.Route
		route.Shadow = c.shadow
		if d := Recheck(p, &route, e, &v.Caller, v.Token, certificate, now+1); d.Code != c.want {
			t.Errorf("%s: %+v, want %q", name, d, c.want)
		}
		if d := Recheck(p, &route, e, &v.Caller, v.Token, certificate, now+60); !c.key && c.want == "" && d.Code != decision.TokenExpired {
			t.Errorf("%s: %+v after the certificate has expired", name, d)
		}
	}
}
