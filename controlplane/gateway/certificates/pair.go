package certificates

import (
	"crypto/ecdsa"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/asn1"
	"encoding/hex"
	"encoding/pem"
	"slices"
	"strings"
	"time"

	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
)

// Bounds of what is read.
const (
	maxChain  = 64 << 10
	maxKey    = 16 << 10
	maxInPart = 10  // certificates of a chain
	maxHosts  = 100 // of a certificate
	maxRSA    = 4096
	minRSA    = 2048
)

// Pair is a certificate with its chain and its key, which fit.
type Pair struct {
	Chain, Key []byte // PEM
	Leaf       *x509.Certificate
	Hosts      []string // names of the leaf, sorted
}

// mustStaple asks for a stapled answer of OCSP (RFC 7633), which edges do not give.
var mustStaple = asn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 1, 24}

// ReadPair reads a chain, the certificate first, and its key, and names what keeps
// edges from showing them. What it accepts every edge accepts.
//
// It takes time and memory linear in what it reads, which is bounded.
func ReadPair(chain, key []byte, now time.Time) (Pair, error) {
	var p Pair
	bad := func(field, issue, expected string) error {
		return apierror.Invalid([]decision.Detail{{Field: field, Issue: issue, Expected: expected}})
	}
	if len(chain) > maxChain || len(key) > maxKey {
		return p, bad("certificate", "is too long", "64 KiB of chain and 16 KiB of key at most")
	}
	for rest := chain; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type == "CERTIFICATE" {
			p.Chain = append(p.Chain, pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: block.Bytes})...)
		}
	}
	if n := strings.Count(string(p.Chain), "BEGIN CERTIFICATE"); n == 0 || n > maxInPart {
		return p, bad("certificate", "is not a chain of PEM certificates", "1 to 10 blocks CERTIFICATE, that of the host first")
	}
	pair, err := tls.X509KeyPair(p.Chain, key)
	if err != nil { // its text may show what was read as a key
		return p, bad("private_key", "cannot be read, or is not that of the certificate", "an unencrypted PEM key that fits the first certificate")
	}
	p.Leaf = pair.Leaf
	if issue := unfit(p.Leaf, now); issue != "" {
		return p, bad("certificate", issue, "RSA of 2048 to 4096 bits or ECDSA on P-256, P-384 or P-521, for 1 to 100 names, in force, without must-staple")
	}
	der, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		return p, err
	}
	p.Key = pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
	p.Hosts = hostsOf(p.Leaf)
	return p, nil
}

// unfit says why edges could not show c; "": they can.
func unfit(c *x509.Certificate, now time.Time) string {
	switch key := c.PublicKey.(type) {
	case *rsa.PublicKey:
		if n := key.N.BitLen(); n < minRSA || n > maxRSA {
			return "has a key of a length that edges do not take"
		}
	case *ecdsa.PublicKey:
		if key.Curve.Params().BitSize < 256 {
			return "has a key on a curve that edges do not take"
		}
	default:
		return "has a key of a kind that edges do not take"
	}
	switch {
	case len(c.DNSNames) == 0 || len(c.DNSNames) > maxHosts:
		return "has no subject alternative name of a host, or too many"
	case !slices.ContainsFunc(c.DNSNames, func(h string) bool { return config.ValidHost(strings.ToLower(h)) }):
		return "has no name that clients can ask for"
	case now.After(c.NotAfter):
		return "has expired"
	}
	for _, e := range c.Extensions {
		if e.Id.Equal(mustStaple) {
			return "asks for stapled OCSP"
		}
	}
	return ""
}

// hostsOf are the names of a certificate that clients can ask for, sorted.
func hostsOf(c *x509.Certificate) (list []string) {
	for _, h := range c.DNSNames {
		if h = strings.ToLower(h); config.ValidHost(h) {
			list = append(list, h)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// covers reports whether a certificate is for all of hosts.
func covers(c *x509.Certificate, hosts []string) bool {
	have := hostsOf(c)
	return !slices.ContainsFunc(hosts, func(h string) bool { return !slices.Contains(have, h) })
}

// fingerprint is the SHA-256 of a certificate.
func fingerprint(c *x509.Certificate) string {
	sum := sha256.Sum256(c.Raw)
	return hex.EncodeToString(sum[:])
}
