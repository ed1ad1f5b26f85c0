package authorize

import (
	"fmt"
	"strings"
	"testing"

	"sluice.dev/sluice/filters/credentials/apikey"
	"sluice.dev/sluice/filters/credentials/clientcert"
	"sluice.dev/sluice/filters/credentials/keytable"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/filters/policy"
)

const noCertificate = "|||||||"

var peerSum = strings.Repeat("0f", 32)

// peer is what Envoy says of a certificate with a URI, which ends at the given time.
func peer(uri string, end int64) string {
	return fmt.Sprintf("%s|0a1b|%d|%s|||CN=Test CA|CN=laptop,O=Acme", peerSum, end, uri)
}

// certificate adds a record of the certificates with a name.
func (e *edge) certificate(kind clientcert.Kind, name string, account uint64, change func(*keytable.Record), bits ...int) {
	r := keytable.Record{Tag: keytable.TagOfKey(clientcert.Hash(kind, name)), Kind: keytable.KindKey, ID: account, Account: account, Plan: 1}
	for _, b := range bits {
		r.Scopes = r.Scopes.With(b)
	}
	if change != nil {
		change(&r)
	}
	e.put(r)
}

func withCertificates(t *testing.T) *policy.Policy {
	t.Helper()
	p := newPolicy(t)
	p.Routes = append(p.Routes, policy.Route{Name: "cert", Auth: policy.AuthCertificate, Scope: "streams:read", Grants: keytable.Scopes{}.With(bitRead)},
		policy.Route{Name: "cert.key", Auth: policy.AuthCertificate | policy.AuthKey}, policy.Route{Name: "cert.optional", Auth: policy.AuthCertificate | policy.AuthNone},
		policy.Route{Name: "cert.token", Auth: policy.AuthCertificate | policy.AuthToken})
	if p = policy.Parse(p.Encode()); p == nil {
		t.Fatal("the policy is not consistent")
	}
	return p
}

func TestCertificates(t *testing.T) {
	t.Parallel()
	const uri = "spiffe://acme/laptop"
	good := peer(uri, now+1)
	mapped := func(e *edge) { e.certificate(clientcert.URI, uri, 50, nil, bitRead) }
	cases := map[string]struct {
		route, peer, header string
		set                 func(*edge)
		want                decision.Code
		issue               string // in the detail
		account             uint64 // of the caller
	}{
		"mapped":              {route: "cert", peer: good, set: mapped, account: 50},
		"mapped by SHA-256":   {route: "cert", peer: good, set: func(e *edge) { e.certificate(clientcert.SHA256, peerSum, 51, nil, bitRead) }, account: 51},
		"by its common name":  {route: "cert", peer: good, set: func(e *edge) { e.certificate(clientcert.CN, "laptop", 52, nil, bitRead) }, account: 52},
		"SHA-256 goes first":  {route: "cert", peer: good, set: func(e *edge) { mapped(e); e.certificate(clientcert.SHA256, peerSum, 51, nil, bitRead) }, account: 51},
		"none":                {route: "cert", peer: noCertificate, want: decision.AuthRequired, issue: "is missing"},
		"the edge says none":  {route: "cert", want: decision.InvalidCert, issue: "cannot be read"},
		"not mapped":          {route: "cert", peer: good, want: decision.InvalidCert, issue: "is mapped to no account"},
		"as another kind":     {route: "cert", peer: good, set: func(e *edge) { e.certificate(clientcert.CN, uri, 50, nil, bitRead) }, want: decision.InvalidCert, issue: "is mapped to no account"},
		"expired":             {route: "cert", peer: peer(uri, now), set: mapped, want: decision.TokenExpired, issue: "has expired since the connection began"},
		"its mapping expired": {route: "cert", peer: good, set: func(e *edge) { e.certificate(clientcert.URI, uri, 50, func(r *keytable.Record) { r.Expires = now }) }, want: decision.TokenExpired, issue: "is mapped to its account no longer: the mapping has expired"},
		"revoked":             {route: "cert", peer: good, set: func(e *edge) { mapped(e); e.put(clientcert.Revoked("a1b", []string{"CN=Test CA"})) }, want: decision.InvalidCert, issue: "is revoked"},
		"of another issuer":   {route: "cert", peer: good, set: func(e *edge) { mapped(e); e.put(clientcert.Revoked("a1b", []string{"CN=Other"})) }, account: 50},
		"revocations unknown": {route: "cert", peer: good, set: func(e *edge) { mapped(e); e.ready = false }, want: decision.EdgeNotReady},
		"lacks the scope":     {route: "cert", peer: good, set: func(e *edge) { e.certificate(clientcert.URI, uri, 50, nil) }, want: decision.ScopeMissing, issue: "is missing", account: 50},
		"unpaid": {route: "cert", peer: good, set: func(e *edge) {
			e.certificate(clientcert.URI, uri, 50, func(r *keytable.Record) { r.Flags = keytable.FlagUnpaid })
		}, want: decision.Unpaid, account: 50},
		"any header beside it":    {route: "cert", peer: good, header: "Basic x", set: mapped, account: 50},
		"a key for a certificate": {route: "cert", peer: noCertificate, header: "good", want: decision.AuthRequired, issue: "is missing"},
		"key or certificate":      {route: "cert.key", peer: good, set: mapped, account: 50},
		"the key goes first":      {route: "cert.key", peer: good, header: "good", set: mapped, account: 101},
		"a bad key stays bad":     {route: "cert.key", peer: good, header: "Bearer slk_x", set: mapped, want: decision.InvalidKey},
		"a bad token stays bad":   {route: "cert.token", peer: good, header: "Bearer eyJ.x.y", set: mapped, want: decision.InvalidToken},
		"neither":                 {route: "cert.key", peer: noCertificate, want: decision.AuthRequired, issue: "is missing"},
		"optional, without":       {route: "cert.optional", peer: noCertificate},
		"optional, good":          {route: "cert.optional", peer: good, set: mapped, account: 50},
		"optional, not mapped":    {route: "cert.optional", peer: good, want: decision.InvalidCert, issue: "is mapped to no account"},
		"a route that asks not":   {route: "any", peer: good, set: mapped, want: decision.AuthRequired},
	}
	for name, c := range cases {
		e := newEdge()
		e.peer = c.peer
		if e.header = c.header; c.header == "good" {
			e.header = "Bearer " + e.key(1, nil)
		}
		if c.set != nil {
			c.set(e)
		}
		v := Check(withCertificates(t), c.route, e, now)
		if v.Code != c.want || v.Known != (c.account != 0) || v.Caller.Account != c.account || c.issue != "" && c.want != decision.ScopeMissing && v.Detail.Issue != c.issue {
			t.Errorf("%s: %q %+v, of %d; want %q, %q, of %d", name, v.Code, v.Detail, v.Caller.Account, c.want, c.issue, c.account)
		}
	}
}

// A mapping that has ended says whose request was refused.
func TestOwnerOfAnExpiredMapping(t *testing.T) {
	t.Parallel()
	e := newEdge()
	e.peer = peer("spiffe://x", now+1)
	e.certificate(clientcert.URI, "spiffe://x", 50, func(r *keytable.Record) { r.Expires = now })
	if v := Check(withCertificates(t), "cert", e, now); v.Owner == nil || v.Owner.Account != 50 {
		t.Errorf("%+v", v)
	}
}

// A certificate's name and a key's text never have the same record.
func TestANameIsNoKey(t *testing.T) {
	t.Parallel()
	text := apikey.FormatKey(1, [apikey.SecretBytes]byte{1})
	for _, kind := range clientcert.Kinds() {
		if clientcert.Hash(kind, text) == apikey.Hash(text) {
			t.Error(kind)
		}
	}
	e := newEdge()
	e.certificate(clientcert.CN, "laptop", 50, nil)
	for _, header := range []string{"Bearer laptop", "Bearer cn:laptop", "Bearer certificate\x00cn\x00laptop"} {
		e.header = header
		if v := Check(withCertificates(t), "cert.key", e, now); v.OK() {
			t.Error(header)
		}
	}
}

// Certificates that are mapped to nobody are counted for their address.
func TestStrangersAreLimited(t *testing.T) {
	t.Parallel()
	p, e := withCertificates(t), newEdge()
	e.peer = peer("spiffe://x", now+1)
	for i, want := range []decision.Code{decision.InvalidCert, decision.InvalidCert, decision.InvalidCert, decision.RateLimited} {
		if v := Check(p, "cert", e, now); v.Code != want {
			t.Errorf("request %d: %q, want %q", i, v.Code, want)
		}
	}
}
