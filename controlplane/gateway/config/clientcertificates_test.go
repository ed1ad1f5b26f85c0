package config

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/filters/policy"
)

// certificatePEM is a certificate, of an authority or not.
func certificatePEM(t testing.TB, isCA bool) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: isCA, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

// asking is a document with a route into which certificates let.
func asking(c *ClientCertificates, route string) (Document, error) {
	d, _, err := ParseYAML([]byte("products: [{name: shop, upstream: 'http://127.0.0.1:1'}]\nroutes: [{name: a, path: /a, product: shop, " + route + "}]\n"))
	if err != nil {
		return d, err
	}
	d.ClientCertificates = c
	d, _ = d.Expand("")
	return d, d.Validate()
}

func TestClientCertificates(t *testing.T) {
	t.Parallel()
	ca, leaf := certificatePEM(t, true), certificatePEM(t, false)
	good := &ClientCertificates{CA: ca}
	for name, c := range map[string]struct {
		with  *ClientCertificates
		route string
		want  string // in the error; "": none
	}{
		"certificate":           {good, "auth: [certificate]", ""},
		"two authorities":       {&ClientCertificates{CA: ca + "\n" + ca, Depth: 1}, "auth: [certificate]", ""},
		"beside others":         {good, "auth: [key, token, certificate]", ""},
		"a file":                {&ClientCertificates{CAFile: "/etc/sluice/clients.pem"}, "auth: [certificate]", ""},
		"forwarded":             {good, "auth: [certificate], forward_certificate: true", ""},
		"nothing asks":          {good, "auth: [key]", ""},
		"absent":                {nil, "auth: [certificate]", "routes[0].auth[0] needs client_certificates"},
		"none":                  {&ClientCertificates{}, "auth: [certificate]", "client_certificates.ca is missing"},
		"both":                  {&ClientCertificates{CA: ca, CAFile: "/a"}, "auth: [certificate]", "client_certificates.ca_file stands beside ca"},
		"a file beside":         {&ClientCertificates{CAFile: "clients.pem"}, "auth: [certificate]", "client_certificates.ca_file is not the path"},
		"no authority":          {&ClientCertificates{CA: leaf}, "auth: [certificate]", "which is not an authority's"},
		"no PEM":                {&ClientCertificates{CA: "x"}, "auth: [certificate]", "has no certificate in it"},
		"a private key":         {&ClientCertificates{CA: strings.ReplaceAll(ca, "CERTIFICATE", "PRIVATE KEY")}, "auth: [certificate]", "that is no certificate"},
		"cut off":               {&ClientCertificates{CA: ca + ca[:40]}, "auth: [certificate]", "or one that is cut off"},
		"too many":              {&ClientCertificates{CA: strings.Repeat(ca, 101)}, "auth: [certificate]", "too many certificates"},
		"too large":             {&ClientCertificates{CA: strings.Repeat(" ", 257<<10)}, "auth: [certificate]", "is too large"},
		"too deep":              {&ClientCertificates{CA: ca, Depth: 11}, "auth: [certificate]", "client_certificates.depth is too large"},
		"forwarded beside keys": {good, "auth: [key, certificate], forward_certificate: true", "routes[0].forward_certificate stands beside"},
		"open, with a scope":    {good, "auth: [certificate, none], scope: 'a:b'", "routes[0].scope"},
	} {
		d, err := asking(c.with, c.route)
		text := ""
		if err != nil {
			b, _ := json.Marshal(err)
			text = err.Error() + string(b)
		}
		found := false
		for _, f := range d.Faults() {
			found = found || strings.Contains(f.Field+" "+f.Issue, c.want)
		}
		if (err != nil) != (c.want != "") || c.want != "" && !found {
			t.Errorf("%s: %s, want %q", name, text, c.want)
		}
	}
}

// A document whose authorities are at fault closes the routes that go by them, and no
// other.
func TestRoutesWithoutAuthoritiesAreClosed(t *testing.T) {
	t.Parallel()
	d, _ := asking(&ClientCertificates{CA: "x"}, "auth: [certificate]")
	d.Routes = append(d.Routes, Route{Name: "b", Path: "/b", Product: "shop", Auth: []string{"key"}})
	usable, _, ok := d.Usable()
	if !ok || usable.ClientCertificates != nil || usable.Routes[0].Respond == nil || usable.Routes[0].Respond.Status != 503 || usable.Routes[1].Product != "shop" {
		t.Errorf("%v %+v", ok, usable.Routes)
	}
}

func TestCertificatesInPolicyAndDifference(t *testing.T) {
	t.Parallel()
	ca := certificatePEM(t, true)
	d, err := asking(&ClientCertificates{CA: ca}, "auth: [key, certificate]")
	if err != nil {
		t.Fatal(err)
	}
	p, err := d.Policy(1, "", ProvisionalNumbers(d))
	if err != nil || p.Routes[0].Auth != policy.AuthKey|policy.AuthCertificate {
		t.Errorf("%+v %v", p, err)
	}
	other, err := asking(&ClientCertificates{CA: ca, Depth: 2}, "auth: [certificate], forward_certificate: true")
	if err != nil || d.Routes[0].Equal(other.Routes[0]) || d.Equal(other) {
		t.Error(err)
	}
	var paths []string
	for _, c := range Diff(d, other) {
		paths = append(paths, c.Path)
	}
	if got := strings.Join(paths, " "); got != "client_certificates.depth routes.a.auth routes.a.forward_certificate" {
		t.Error(got)
	}
	b, err := json.Marshal(other)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := ParseJSON(b); err != nil || !again.Equal(other) {
		t.Errorf("%v\n%+v\n%+v", err, again, other)
	}
}

func FuzzAuthorities(f *testing.F) {
	f.Add([]byte(certificatePEM(f, true)))
	f.Add([]byte("-----BEGIN CERTIFICATE-----\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if issue := authorities(b); issue == "" && !x509.NewCertPool().AppendCertsFromPEM(b) {
			t.Fatalf("%q", b)
		}
	})
}
