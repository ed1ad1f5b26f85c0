package sessions

import (
	"context"
	"crypto/ecdsa"
	"errors"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
)

// tokenType is the header that keeps access tokens apart from other JWTs
// (RFC 9068 section 2.1).
const tokenType = "at+jwt"

// maxToken bounds a token that is looked at, in bytes.
const maxToken = 8192

// Claims are what a session's token says.
type Claims struct {
	jwt.RegisteredClaims          // iss, aud, sub (user), iat, exp, jti (session)
	Account              string   `json:"account"`
	Scopes               []string `json:"scopes"`
}

// sign returns the token of c.
func sign(key signingKey, c Claims) (string, error) {
	t := jwt.NewWithClaims(jwt.SigningMethodES256, c)
	t.Header["typ"], t.Header["kid"] = tokenType, key.kid
	return t.SignedString(key.private)
}

// lookup finds the public key with an id.
type lookup func(ctx context.Context, kid string) (*ecdsa.PublicKey, bool, error)

// verify returns the claims of a token that one of our keys signed, for issuer
// and audience, and that has not ended. It fails with AUTH_001 when it has, and
// with invalid_token for any other fault. Only ES256, typ at+jwt and no crit
// are accepted; jku, jwk and x5u in the header are never looked at.
func verify(ctx context.Context, find lookup, issuer, audience string, now time.Time, token string) (Claims, error) {
	if len(token) > maxToken {
		return Claims{}, &apierror.Error{Code: decision.InvalidToken}
	}
	var c Claims
	var outage error
	parser := jwt.NewParser(jwt.WithValidMethods([]string{"ES256"}), jwt.WithIssuer(issuer), jwt.WithAudience(audience),
		jwt.WithExpirationRequired(), jwt.WithIssuedAt(), jwt.WithStrictDecoding(), jwt.WithTimeFunc(func() time.Time { return now }))
	_, err := parser.ParseWithClaims(token, &c, func(t *jwt.Token) (any, error) {
		key, err := headerKey(ctx, find, t)
		if err != nil && !errors.Is(err, errHeader) {
			outage = err
		}
		return key, err
	})
	switch {
	case outage != nil:
		return Claims{}, outage
	case errors.Is(err, jwt.ErrTokenExpired):
		return Claims{}, &apierror.Error{Code: decision.TokenExpired}
	case err != nil || c.ID == "" || c.Subject == "" || c.Account == "":
		return Claims{}, &apierror.Error{Code: decision.InvalidToken, Cause: err}
	}
	return c, nil
}

var errHeader = errors.New("the token's header is not one of ours")

// headerKey finds the key that a token's header names. Nothing else in the header
// chooses a key, or how it is used.
func headerKey(ctx context.Context, find lookup, t *jwt.Token) (*ecdsa.PublicKey, error) {
	typ, _ := t.Header["typ"].(string)
	kid, _ := t.Header["kid"].(string)
	_, critical := t.Header["crit"]
	if typ != tokenType || kid == "" || critical {
		return nil, errHeader
	}
	key, ok, err := find(ctx, kid)
	if err == nil && !ok {
		err = errHeader
	}
	return key, err
}
