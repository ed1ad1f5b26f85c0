package rehearsal

import (
	"strings"
	"testing"
	"time"
)

// What is in the shadow refuses nobody, and what a split brings moves nobody.
func TestWhatRefusesNobodyIsNotForetold(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for i := range 40 {
		b.did(t, 1, b.get("/things/7", "get", 10*time.Minute-time.Duration(i)*time.Second))
	}
	with := func(fields string) []byte {
		return []byte(strings.Replace(string(document()), `"path":"/things/{id}","product":"one","scope":"things:read"`, `"path":"/things/{id}","product":"one",`+fields, 1))
	}
	for name, raw := range map[string][]byte{
		"a scope in the shadow": with(`"scope":"things:admin","shadow":["scope"]`),
		"a limit in the shadow": []byte(strings.Replace(string(document()), `"per_minute":60`, `"per_minute":15,"shadow":true`, 1)),
		"a split":               with(`"scope":"things:read","split":[{"product":"other","weight":10}]`),
	} {
		r := b.tried(t, raw)
		if n := r.Refused.Requests + r.Allowed.Requests + r.Moved.Requests + r.Undetermined.Requests; n != 0 || len(r.Limits) != 0 {
			t.Errorf("%s: %+v", name, r)
		}
	}
	if r := b.tried(t, with(`"scope":"things:admin","split":[{"product":"other","weight":10}]`)); r.Refused.Requests != 40 {
		t.Errorf("a split with a scope: %+v", r)
	}
}

// A request that came with a client certificate has no credential where a route asks for
// none, and a key is no certificate.
func TestCertificatesAreForetold(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.did(t, 1, b.get("/things/7", "get", time.Minute))
	const ca = `,"client_certificates":{"ca_file":"/etc/ca.pem"}`
	asking := func(auth string) []byte {
		return []byte(strings.Replace(string(document("", "", ca)), `"path":"/things/{id}",`, `"path":"/things/{id}","auth":[`+auth+`],`, 1))
	}
	if r := b.tried(t, asking(`"certificate"`)); r.Refused.Requests != 1 {
		t.Errorf("a key where a certificate is asked for: %+v", r)
	}
	if _, err := b.Requests.DB.Exec(t.Context(), `UPDATE api_keys SET certificate = 'cn:laptop' WHERE id = $1`, b.key); err != nil {
		t.Fatal(err)
	}
	for _, auth := range []string{`"certificate"`, `"certificate","key"`} {
		if r := b.tried(t, asking(auth)); r.Refused.Requests+r.Undetermined.Requests != 0 {
			t.Errorf("a certificate where %s is asked for: %+v", auth, r)
		}
	}
}
