package apikeys

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"net/mail"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/filters/credentials/clientcert"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/filters/scopes"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/storage/postgres"
)

// Certificate is by what client certificates are known, in the place of a key's text.
type Certificate struct {
	Kind clientcert.Kind
	Name string
}

// String is the certificate as it is stored and shown, such as uri:spiffe://acme/ci.
func (c Certificate) String() string { return string(c.Kind) + ":" + c.Name }

// certificateRequest says which certificates let in: exactly one field.
type certificateRequest struct {
	PEM    string `json:"pem"` // a certificate, of which the SHA-256 counts
	SHA256 string `json:"sha256"`
	URI    string `json:"uri"`
	DNS    string `json:"dns"`
	Email  string `json:"email"`
	CN     string `json:"cn"`
}

var (
	hexForm = regexp.MustCompile(`^[0-9a-f]{64}$`)
	dnsForm = regexp.MustCompile(`^(\*\.)?[a-z0-9_]([a-z0-9_-]{0,62})(\.[a-z0-9_]([a-z0-9_-]{0,62}))*$`)
)

// read returns what the request names, and when a certificate given as PEM ends.
func (r certificateRequest) read(now time.Time) (c Certificate, end *time.Time, details []decision.Detail) {
	given := 0
	for _, f := range []struct {
		kind  clientcert.Kind
		value string
	}{{clientcert.SHA256, r.SHA256}, {clientcert.URI, r.URI}, {clientcert.DNS, r.DNS}, {clientcert.Email, r.Email}, {clientcert.CN, r.CN}} {
		if f.value != "" {
			given++
			c = Certificate{f.kind, f.value}
		}
	}
	if r.PEM != "" {
		given++
		cert, issue := ParseCertificate([]byte(r.PEM))
		if issue == "" && !cert.NotAfter.After(now) {
			issue = "has expired"
		}
		if issue != "" {
			return c, nil, []decision.Detail{{Field: "certificate.pem", Issue: issue, Expected: "PEM of one certificate"}}
		}
		sum := sha256.Sum256(cert.Raw)
		c, end = Certificate{clientcert.SHA256, hex.EncodeToString(sum[:])}, &cert.NotAfter
	}
	if given != 1 {
		return c, nil, []decision.Detail{{Field: "certificate", Issue: "does not say by what certificates are known", Expected: "one of pem, sha256, uri, dns, email and cn"}}
	}
	c, details = c.checked()
	return c, end, details
}

// escaped are the characters that edges write in another way in a subject.
const escaped = `,+"\<>;`

// checked is c in the one way in which edges look for it.
func (c Certificate) checked() (Certificate, []decision.Detail) {
	expected := fmt.Sprintf("at most %d printable ASCII characters, without %s |", clientcert.MaxName, escaped)
	ok := true
	switch c.Kind {
	case clientcert.SHA256:
		c.Name = strings.ToLower(strings.ReplaceAll(c.Name, ":", ""))
		ok, expected = hexForm.MatchString(c.Name), "the SHA-256 of the certificate, as 64 hexadecimal digits"
	case clientcert.CN:
		ok = !strings.ContainsAny(c.Name, escaped)
	case clientcert.DNS:
		c.Name = strings.ToLower(c.Name)
		if !dnsForm.MatchString(c.Name) {
			ok, expected = false, "a name such as ci.acme.example"
		}
	case clientcert.URI:
		if u, err := url.Parse(c.Name); err != nil || u.Scheme == "" {
			ok, expected = false, "a URI such as spiffe://acme.example/ci"
		}
	case clientcert.Email:
		if a, err := mail.ParseAddress(c.Name); err != nil || a.Address != c.Name {
			ok, expected = false, "an address such as ci@acme.example"
		}
	}
	if ok && clientcert.Usable(c.Name) {
		return c, nil
	}
	return c, []decision.Detail{{Field: "certificate." + string(c.Kind), Issue: "is not a name that a certificate can be known by", Expected: expected}}
}

// ParseCertificate reads PEM of one certificate; issue says what is wrong with it. It
// takes time linear in text.
func ParseCertificate(text []byte) (cert *x509.Certificate, issue string) {
	block, rest := pem.Decode(text)
	if block == nil || block.Type != "CERTIFICATE" {
		return nil, "is not a certificate"
	}
	if more, _ := pem.Decode(rest); more != nil && more.Type == "CERTIFICATE" {
		return nil, "has several certificates in it"
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, "is not a certificate that can be read"
	}
	return cert, ""
}

// checkCertificate is what is asked of a key that is a certificate.
func (s Spec) checkCertificate() []decision.Detail {
	if s.Certificate != nil && slices.Contains(s.Scopes, scopes.Admin) {
		return []decision.Detail{{Field: "scopes", Issue: "have *", Expected: "narrower ones: a certificate never reaches the admin API"}}
	}
	return nil
}

// freeName lets a name be mapped anew that was mapped before, and revoked.
func freeName(ctx context.Context, tx pgx.Tx, hash [sha256.Size]byte) error {
	_, err := tx.Exec(ctx, `UPDATE api_keys SET hash = sha256(convert_to('revoked ' || id, 'UTF8'))
		WHERE hash = $1 AND revoked_at IS NOT NULL AND certificate IS NOT NULL`, hash[:])
	if err != nil {
		return fmt.Errorf("free the name of a certificate: %w", err)
	}
	return nil
}

// mapped is the error for a name that is mapped already.
func mapped(err error) error {
	if postgres.Constraint(err) != "api_keys_hash_key" {
		return err
	}
	return apierror.Errorf(decision.Conflict, "This certificate, or name, is mapped to an account already: revoke that key first.")
}

// notRotated is the error for a certificate that is to be rotated.
func notRotated(k Key) error {
	if k.Certificate == nil {
		return nil
	}
	return apierror.Errorf(decision.Conflict, "A client certificate is not rotated: have another one issued, and create a key for it if it is known by its SHA-256.")
}
