package config

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"path/filepath"
	"slices"
)

// ClientCertificates says which certificates of clients edges believe, on routes with
// certificate among their auth. It needs edges that speak TLS.
type ClientCertificates struct {
	// CA is PEM of the authorities whose certificates are believed, or CAFile a file of
	// it on the edge's machine, which is read again when another is moved in its place.
	CA     string `json:"ca,omitempty"`
	CAFile string `json:"ca_file,omitempty"`
	// Depth is how many authorities a certificate may have above it, the believed one
	// included. 0: 4.
	Depth uint32 `json:"depth,omitempty"`
}

const (
	// AuthCertificate is how a route's auth says that client certificates let in.
	AuthCertificate = "certificate"

	defaultDepth   = 4
	maxDepth       = 10
	maxAuthorities = 100
	maxCABytes     = 256 << 10
)

// Authorities is how many authorities a certificate may have above it.
func (c ClientCertificates) Authorities() uint32 {
	if c.Depth == 0 {
		return defaultDepth
	}
	return c.Depth
}

// AsksForCertificate reports whether client certificates let into r.
func (r Route) AsksForCertificate() bool { return slices.Contains(r.Auth, AuthCertificate) }

// clientCertificates checks the authorities, and that routes that go by them have any.
func (v *validator) clientCertificates(d Document) {
	const f = "client_certificates"
	c := d.ClientCertificates
	if c == nil {
		for i, r := range d.Routes {
			if j := slices.Index(r.Auth, AuthCertificate); j >= 0 {
				v.add(fmt.Sprintf("routes[%d].auth[%d]", i, j), "needs client_certificates, which the document lacks", "client_certificates with ca or ca_file")
			}
		}
		return
	}
	switch {
	case c.CA == "" && c.CAFile == "":
		v.add(f+".ca", "is missing", "PEM of the authorities, or ca_file")
	case c.CA != "" && c.CAFile != "":
		v.add(f+".ca_file", "stands beside ca", "one of the two")
	case c.CAFile != "" && (!filepath.IsAbs(c.CAFile) || len(c.CAFile) > 512 || c.CAFile != filepath.Clean(c.CAFile)):
		v.add(f+".ca_file", "is not the path of a file", "a whole path on the edge's machine, such as /etc/sluice/clients.pem")
	case c.CA != "":
		if issue := authorities([]byte(c.CA)); issue != "" {
			v.add(f+".ca", issue, fmt.Sprintf("PEM of 1 to %d certificates of authorities, at most %d KiB", maxAuthorities, maxCABytes>>10))
		}
	}
	if c.Depth > maxDepth {
		v.add(f+".depth", "is too large", fmt.Sprintf("at most %d", maxDepth))
	}
}

// authorities says what is wrong with PEM of authorities; "": nothing. It takes time
// linear in text, of which it looks at no more than maxCABytes.
func authorities(text []byte) (issue string) {
	if len(text) > maxCABytes {
		return "is too large"
	}
	count := 0
	for {
		block, rest := pem.Decode(text)
		if block == nil {
			break
		}
		if count++; count > maxAuthorities {
			return "has too many certificates in it"
		}
		if block.Type != "CERTIFICATE" {
			return "has something in it that is no certificate"
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return fmt.Sprintf("has certificate %d in it, which cannot be read", count)
		}
		if !cert.IsCA {
			return fmt.Sprintf("has certificate %d in it, which is not an authority's", count)
		}
		text = rest
	}
	if count == 0 || len(bytes.TrimSpace(text)) > 0 && bytes.Contains(text, []byte("-----BEGIN")) {
		return "has no certificate in it, or one that is cut off"
	}
	return ""
}
