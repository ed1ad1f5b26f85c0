// Package certificate makes the certificates that MoQ clients see where there is no
// other: self-signed, on the curve P-256, and valid for less than the 14 days that
// WebTransport allows for certificates that a page knows by their hash
// (serverCertificateHashes).
//
// They follow from the product's signing key and the date: whoever serves MoQ and
// whoever tells players the hash agree without a word, restarts keep the certificate,
// and no private key is stored.
package certificate

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/big"
	"net"
	"sync"
	"time"

	"sluice.dev/sluice/media/playback/signing"
)

// Each certificate is shown for one period, and valid from one day before it to two
// days after it, so that clocks may differ and open pages go on.
const (
	period = 10 * 24 * time.Hour
	before = 24 * time.Hour
	after  = 48 * time.Hour
)

// Source makes them. Every field is required. It may be used at once, and must not
// be copied.
type Source struct {
	Keys *signing.Keys
	Now  func() time.Time

	mu   sync.Mutex
	made map[int64]*tls.Certificate // by period; two at most
}

// Get is the certificate to show now; it fits tls.Config.GetCertificate.
func (s *Source) Get(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	return s.Shown(hello.Context())
}

// Shown is the same for those without a client.
func (s *Source) Shown(ctx context.Context) (*tls.Certificate, error) { return s.of(ctx, s.now()) }

// Hashes are the SHA-256 of the certificate that is shown now and of the one that
// follows, as hexadecimal digits: a page that stays open knows both.
func (s *Source) Hashes(ctx context.Context) (list []string, err error) {
	for n := s.now(); len(list) < 2; n++ {
		c, err := s.of(ctx, n)
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(c.Certificate[0])
		list = append(list, hex.EncodeToString(sum[:]))
	}
	return list, nil
}

// now is the number of the present period.
func (s *Source) now() int64 { return s.Now().Unix() / int64(period/time.Second) }

// of is the certificate of a period.
func (s *Source) of(ctx context.Context, n int64) (*tls.Certificate, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.made[n]; c != nil {
		return c, nil
	}
	secret, err := s.Keys.Key(ctx)
	if err != nil {
		return nil, err
	}
	c, err := Make(secret, n)
	if err != nil {
		return nil, err
	}
	if s.made == nil {
		s.made = map[int64]*tls.Certificate{}
	}
	s.made[n] = c
	for old := range s.made {
		if old < n-1 {
			delete(s.made, old)
		}
	}
	return c, nil
}

// Make is the certificate of the period n. The same secret and period make the same
// certificate, to the byte: the key is derived (RFC 5869), and the signature
// deterministic (RFC 6979).
func Make(secret []byte, n int64) (*tls.Certificate, error) {
	key, err := derive(secret, n)
	if err != nil {
		return nil, fmt.Errorf("derive the key of a certificate: %w", err)
	}
	began := time.Unix(n*int64(period/time.Second), 0).UTC()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(n + 1), Subject: pkix.Name{CommonName: "MoQ"},
		NotBefore: began.Add(-before), NotAfter: began.Add(period + after),
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	raw, err := x509.CreateCertificate(nil, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("sign a certificate: %w", err)
	}
	return &tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key}, nil
}

// derive is the private key of a period. One text in 2^32 is no number below the
// curve's order; the next one is taken then.
func derive(secret []byte, n int64) (key *ecdsa.PrivateKey, err error) {
	for try := range 8 {
		info := binary.BigEndian.AppendUint64([]byte("moq certificate "), uint64(n))
		raw, err := hkdf.Key(sha256.New, secret, nil, string(append(info, byte(try))), 32)
		if err != nil {
			return nil, err
		}
		if key, err = ecdsa.ParseRawPrivateKey(elliptic.P256(), raw); err == nil {
			return key, nil
		}
	}
	return nil, err
}
