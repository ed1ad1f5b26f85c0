// Package signing makes and checks the tokens that stand in playback and
// download URLs: short-lived JWTs (HS256) that name one resource and one use.
package signing

import (
	"errors"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
)

// Use is what a token opens; a token for one use opens nothing else.
type Use string

// The uses.
const (
	Playback Use = "playback" // subject: a playback id
	Download Use = "download" // subject: an asset id
	Status   Use = "status"   // subject: an asset id
)

// maxLength bounds a token before it is looked at, in bytes.
const maxLength = 2048

// Grant is what a token says.
type Grant struct {
	Use     Use
	Subject string
	Viewer  string // the caller's own name for the viewer; may be empty
	Expires time.Time
}

// claims is the body of the JWT.
type claims struct {
	jwt.RegisteredClaims
	Viewer string `json:"viewer,omitempty"`
}

// Sign returns the token for g under key.
func Sign(key []byte, g Grant) (string, error) {
	c := claims{Viewer: g.Viewer, RegisteredClaims: jwt.RegisteredClaims{
		Subject: g.Subject, Audience: jwt.ClaimStrings{string(g.Use)}, ExpiresAt: jwt.NewNumericDate(g.Expires)}}
	return jwt.NewWithClaims(jwt.SigningMethodHS256, c).SignedString(key)
}

// Verify returns the grant of token if key signed it for this use and subject
// and it holds at now. It fails with AUTH_001 when it has expired, else with
// invalid_token.
func Verify(key []byte, token string, use Use, subject string, now time.Time) (Grant, error) {
	if token == "" || len(token) > maxLength {
		return Grant{}, &apierror.Error{Code: decision.InvalidToken}
	}
	var c claims
	_, err := jwt.ParseWithClaims(token, &c, func(*jwt.Token) (any, error) { return key, nil },
		jwt.WithValidMethods([]string{jwt.SigningMethodHS256.Alg()}), jwt.WithAudience(string(use)), jwt.WithSubject(subject),
		jwt.WithExpirationRequired(), jwt.WithTimeFunc(func() time.Time { return now }))
	switch {
	case err == nil:
		return Grant{Use: use, Subject: subject, Viewer: c.Viewer, Expires: c.ExpiresAt.Time}, nil
	case errors.Is(err, jwt.ErrTokenExpired) && !errors.Is(err, jwt.ErrTokenInvalidAudience) && !errors.Is(err, jwt.ErrTokenInvalidSubject):
		return Grant{}, &apierror.Error{Code: decision.TokenExpired}
	default:
		return Grant{}, &apierror.Error{Code: decision.InvalidToken}
	}
}
