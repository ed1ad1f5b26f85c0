// Package oauth lets applications act for people: an OAuth 2.0 authorization
// server with the rules of OAuth 2.1 (contract 2.5; RFC 6749, 7009, 7636,
// 7662, 8414, 9068, 9207, 9700, 9728). docs/oauth.md is its manual.
//
// A person's consent is a grant. Codes, refresh tokens and access tokens belong
// to one, and end with it. Access tokens are JWTs signed by the keys that sign
// sessions, with the same claims, so edges verify both alike; what ends before
// its time is told to edges through the feed. What requests must look like is
// decided by the package rules, what people see by the package page.
package oauth

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"sluice.dev/sluice/controlplane/accounts/sessions"
	"sluice.dev/sluice/filters/credentials/keytable"
	"sluice.dev/sluice/platform/storage/postgres"
)

// Prefixes of identifiers and secrets. The latter let secret scanners find
// leaked ones.
const (
	AppPrefix     = "app_"    // client_id
	GrantPrefix   = "grant_"  // a consent
	TokenPrefix   = "oat_"    // jti of an access token
	secretPrefix  = "slc_"    // client_secret
	codePrefix    = "slcode_" // authorization code
	refreshPrefix = "slr_"    // refresh token
)

// How long things last.
const (
	CodeLife    = 2 * time.Minute
	AccessLife  = time.Hour           // contract 2.7: 3600 seconds
	RefreshLife = 30 * 24 * time.Hour // unused; every use gives a new one
)

// Config says how the server works.
type Config struct {
	// DB keeps applications, grants and tokens.
	DB postgres.DB
	// Sessions signs people in. Its keys sign access tokens. Its DB must be
	// the same database.
	Sessions *sessions.Service
	// Issuer is the claim iss, and the address under which the routes are served,
	// without a trailing slash. Audience is the claim aud: both are those of
	// Sessions.
	Issuer, Audience string
	// Sign makes signing functions; nil: with the keys of Sessions.
	Sign func(context.Context) (Signer, error)
	// Now is the clock; nil: time.Now.
	Now func() time.Time
}

// Signer turns claims into a JWT with typ at+jwt.
type Signer func(jwt.Claims) (string, error)

// Service registers applications, and makes, checks and ends grants and tokens.
type Service struct{ config Config }

// New returns a Service.
func New(c Config) *Service {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Sign == nil {
		c.Sign = keyringSigner(c.DB, c.Sessions.Keyring, c.Now)
	}
	return &Service{c}
}

// now is the time in UTC, to the second: that is what claims can hold.
func (s *Service) now() time.Time { return s.config.Now().UTC().Truncate(time.Second) }

// newID returns an identifier, which is no secret.
func newID(prefix string) string {
	var b [8]byte
	rand.Read(b[:])
	return keytable.FormatID(prefix, binary.LittleEndian.Uint64(b[:]))
}

// newSecret has 256 bits, so a plain hash of it cannot be turned round.
func newSecret(prefix string) string {
	b := make([]byte, 32)
	rand.Read(b)
	return prefix + base64.RawURLEncoding.EncodeToString(b)
}

// hashOf is what is stored of a secret.
func hashOf(secret string) []byte {
	sum := sha256.Sum256([]byte(secret))
	return sum[:]
}
