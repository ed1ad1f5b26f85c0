package certs

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"regexp"
	"time"
)

// Lifetimes of what Make makes: a CA for a year, and certificates for 90 days.
const (
	caLifetime   = 365 * 24 * time.Hour
	leafLifetime = 90 * 24 * time.Hour
	// clockSkew is how far clocks may differ.
	clockSkew = 5 * time.Minute
)

// Gateway is the name of the files with the certificate that clients see.
const Gateway = "gateway"

var edgeForm = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$`)

// MakeConfig says what Make makes.
type MakeConfig struct {
	// Dir is made if it is missing. A CA that it has is used again.
	Dir string
	// Edges are the names of edges.
	Edges []string
	// Hosts are the names and addresses under which clients reach a gateway.
	Hosts []string
	// Now is the clock; nil: time.Now.
	Now func() time.Time
}

// Make writes a certificate authority for development, and certificates of it:
// one for the control plane, one for each edge, and one for gateways. Keys can be
// read by their owner only. It replaces certificates and keeps the CA, so that a
// second call renews them while all run.
func Make(c MakeConfig) error {
	if c.Now == nil {
		c.Now = time.Now
	}
	for _, e := range c.Edges {
		if !edgeForm.MatchString(e) || e == ControlPlane || e == Gateway || e == "ca" {
			return fmt.Errorf("%q cannot be the name of an edge: expected letters, digits, dots and dashes, and not %s, %s or ca", e, ControlPlane, Gateway)
		}
	}
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return err
	}
	ca, err := c.authority()
	if err != nil {
		return err
	}
	err = ca.issue(In(c.Dir, ControlPlane), c.Now(), x509.ExtKeyUsageServerAuth, []string{ControlPlane})
	for _, e := range c.Edges {
		err = errors.Join(err, ca.issue(In(c.Dir, e), c.Now(), x509.ExtKeyUsageClientAuth, []string{e}))
	}
	if len(c.Hosts) > 0 {
		err = errors.Join(err, ca.issue(In(c.Dir, Gateway), c.Now(), x509.ExtKeyUsageServerAuth, c.Hosts))
	}
	return err
}

// authority signs certificates.
type authority struct {
	cert *x509.Certificate
	key  crypto.Signer
}

// authority reads the CA of the folder, or makes it.
func (c MakeConfig) authority() (authority, error) {
	f := In(c.Dir, "ca")
	if _, err := os.Stat(f.Cert); errors.Is(err, os.ErrNotExist) {
		template := &x509.Certificate{
			Subject: pkix.Name{CommonName: "Sluice development CA"}, IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true,
			KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
		}
		if err := sign(template, authority{}, f, c.Now(), caLifetime); err != nil {
			return authority{}, err
		}
	}
	pair, err := tls.LoadX509KeyPair(f.Cert, f.Key)
	if err != nil {
		return authority{}, err
	}
	signer, ok := pair.PrivateKey.(crypto.Signer)
	if !ok || !pair.Leaf.IsCA {
		return authority{}, fmt.Errorf("%s is no certificate authority", f.Cert)
	}
	return authority{pair.Leaf, signer}, nil
}

// issue writes a certificate for names, which may be addresses.
func (a authority) issue(f Files, now time.Time, usage x509.ExtKeyUsage, names []string) error {
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: names[0]}, KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{usage},
	}
	for _, n := range names {
		if ip := net.ParseIP(n); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, n)
		}
	}
	return sign(template, a, f, now, leafLifetime)
}

// sign makes a key, has its certificate signed by a, or by itself when a is
// nobody, and writes both.
func sign(template *x509.Certificate, a authority, f Files, now time.Time, lifetime time.Duration) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	if template.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127)); err != nil {
		return err
	}
	template.NotBefore, template.NotAfter = now.Add(-clockSkew), now.Add(lifetime)
	if a.key == nil {
		a = authority{template, key}
	} else if template.NotAfter.After(a.cert.NotAfter) {
		template.NotAfter = a.cert.NotAfter
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return err
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	return errors.Join(write(f.Key, "PRIVATE KEY", pkcs8, 0o600), write(f.Cert, "CERTIFICATE", der, 0o644))
}

// write replaces a file whole.
func write(name, kind string, der []byte, mode os.FileMode) error {
	tmp := name + ".new"
	if err := os.WriteFile(tmp, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), mode); err != nil {
		return err
	}
	return os.Rename(tmp, name)
}
