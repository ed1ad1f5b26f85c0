package certificates

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/platform/limits/growth"
)

// made is a self-signed certificate with its key, PEM, as change has it.
func made(t testing.TB, key crypto.Signer, change func(*x509.Certificate)) (chain, private []byte) {
	t.Helper()
	about := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "test"}, DNSNames: []string{"a.example.com"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	if change != nil {
		change(about)
	}
	cert, err := x509.CreateCertificate(rand.Reader, about, about, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

func newKey(t testing.TB, curve elliptic.Curve) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// pairFor is one for hosts.
func pairFor(t testing.TB, hosts ...string) Pair {
	t.Helper()
	chain, key := made(t, newKey(t, elliptic.P256()), func(c *x509.Certificate) { c.DNSNames = hosts })
	p, err := ReadPair(chain, key, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestReadPair(t *testing.T) {
	t.Parallel()
	good := newKey(t, elliptic.P256())
	weak, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	_, edwards, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		key    crypto.Signer
		change func(*x509.Certificate)
		issue  string // "": it is taken
	}{
		"ECDSA":         {good, nil, ""},
		"P-384":         {newKey(t, elliptic.P384()), nil, ""},
		"a wildcard":    {good, func(c *x509.Certificate) { c.DNSNames = []string{"*.example.com"} }, ""},
		"upper case":    {good, func(c *x509.Certificate) { c.DNSNames = []string{"A.Example.com"} }, ""},
		"short RSA":     {weak, nil, "length"},
		"Ed25519":       {edwards, nil, "kind"},
		"a small curve": {newKey(t, elliptic.P224()), nil, "curve"},
		"no names":      {good, func(c *x509.Certificate) { c.DNSNames = nil }, "alternative name"},
		"no host":       {good, func(c *x509.Certificate) { c.DNSNames = []string{"localhost"} }, "clients can ask for"},
		"too many":      {good, func(c *x509.Certificate) { c.DNSNames = slices.Repeat([]string{"a.example.com"}, 101) }, "too many"},
		"expired":       {good, func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Second) }, "expired"},
		"must-staple": {good, func(c *x509.Certificate) {
			c.ExtraExtensions = []pkix.Extension{{Id: mustStaple, Value: []byte{0x30, 3, 2, 1, 5}}}
		}, "OCSP"},
	} {
		chain, key := made(t, c.key, c.change)
		p, err := ReadPair(slices.Concat([]byte("a comment\n"), chain), key, time.Now())
		if (c.issue == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.issue) {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil && (len(p.Hosts) != 1 || !strings.HasSuffix(p.Hosts[0], "example.com") || strings.Contains(string(p.Chain), "comment")) {
			t.Errorf("%s: %v %s", name, p.Hosts, p.Chain)
		}
	}
	chain, key := made(t, good, nil)
	_, other := made(t, newKey(t, elliptic.P256()), nil)
	for name, c := range map[string][2][]byte{
		"another's key": {chain, other}, "no key": {chain, nil}, "no certificate": {key, key}, "nothing": {nil, nil},
		"too long": {slices.Repeat(chain, 200), key}, "too many in the chain": {slices.Repeat(chain, 11), key},
	} {
		if _, err := ReadPair(c[0], c[1], time.Now()); err == nil || strings.Contains(err.Error(), "PRIVATE") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzReadPair(f *testing.F) {
	chain, key := made(f, newKey(f, elliptic.P256()), nil)
	f.Add(chain, key)
	f.Add([]byte("-----BEGIN CERTIFICATE-----\n"), []byte{})
	now := time.Now()
	f.Fuzz(func(t *testing.T, chain, key []byte) {
		growth.Linear(t, len(chain)+len(key), 200, 256<<10, func() { _, _ = ReadPair(chain, key, now) })
		p, err := ReadPair(chain, key, now)
		if err != nil {
			return
		}
		if again, err := ReadPair(p.Chain, p.Key, now); err != nil || !slices.Equal(again.Hosts, p.Hosts) || len(p.Hosts) == 0 {
			t.Errorf("what was read cannot be read again: %v", err)
		}
	})
}
