package sessions

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
)

var at = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func testKey(kid string) signingKey {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	return signingKey{kid, private, at}
}

func finder(keys ...signingKey) lookup {
	return func(_ context.Context, kid string) (*ecdsa.PublicKey, bool, error) {
		for _, k := range keys {
			if k.kid == kid {
				return &k.private.PublicKey, true, nil
			}
		}
		return nil, false, nil
	}
}

func goodClaims() jwt.MapClaims {
	return jwt.MapClaims{"iss": "iss", "aud": "aud", "sub": "user_1", "account": "acct_1", "jti": "sess_1",
		"iat": at.Unix(), "exp": at.Add(time.Hour).Unix(), "scopes": []string{"*"}}
}

// forge signs claims with method and key under header fields of its own.
func forge(t *testing.T, method jwt.SigningMethod, key any, header map[string]any, claims jwt.Claims) string {
	t.Helper()
	token := jwt.NewWithClaims(method, claims)
	token.Header["typ"], token.Header["kid"] = tokenType, "k1"
	for k, v := range header {
		token.Header[k] = v
	}
	s, err := token.SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestTokens(t *testing.T) {
	t.Parallel()
	key := testKey("k1")
	der, _ := x509.MarshalPKIXPublicKey(&key.private.PublicKey)
	public := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	es := jwt.SigningMethodES256
	ours := func(header map[string]any, change func(jwt.MapClaims)) string {
		c := goodClaims()
		if change != nil {
			change(c)
		}
		return forge(t, es, key.private, header, c)
	}
	good := ours(nil, nil)
	part := strings.Split(good, ".")
	const pass, expired, invalid = decision.Code(""), decision.TokenExpired, decision.InvalidToken
	for name, c := range map[string]struct {
		token string
		want  decision.Code
	}{
		"good":                       {good, pass},
		"audience in a list":         {ours(nil, func(c jwt.MapClaims) { c["aud"] = []string{"x", "aud"} }), pass},
		"expired":                    {ours(nil, func(c jwt.MapClaims) { c["exp"] = at.Unix() - 1 }), expired},
		"expired, as a float":        {ours(nil, func(c jwt.MapClaims) { c["exp"] = float64(at.Unix()) - 0.5 }), expired},
		"a negative end":             {ours(nil, func(c jwt.MapClaims) { c["exp"] = -1 }), expired},
		"an end that is a string":    {ours(nil, func(c jwt.MapClaims) { c["exp"] = "soon" }), invalid},
		"no end":                     {ours(nil, func(c jwt.MapClaims) { delete(c, "exp") }), invalid},
		"not yet":                    {ours(nil, func(c jwt.MapClaims) { c["nbf"] = at.Unix() + 60 }), invalid},
		"made in the future":         {ours(nil, func(c jwt.MapClaims) { c["iat"] = at.Unix() + 60 }), invalid},
		"another issuer":             {ours(nil, func(c jwt.MapClaims) { c["iss"] = "other" }), invalid},
		"another audience":           {ours(nil, func(c jwt.MapClaims) { c["aud"] = "other" }), invalid},
		"no session":                 {ours(nil, func(c jwt.MapClaims) { delete(c, "jti") }), invalid},
		"no account":                 {ours(nil, func(c jwt.MapClaims) { delete(c, "account") }), invalid},
		"typ of an id token":         {ours(map[string]any{"typ": "JWT"}, nil), invalid},
		"an unknown kid":             {ours(map[string]any{"kid": "k2"}, nil), invalid},
		"a kid that is a path":       {ours(map[string]any{"kid": "../../dev/null"}, nil), invalid},
		"a kid that is SQL":          {ours(map[string]any{"kid": "' OR 1=1 --"}, nil), invalid},
		"a kid that is a number":     {ours(map[string]any{"kid": 1}, nil), invalid},
		"crit":                       {ours(map[string]any{"crit": []string{"b64"}, "b64": false}, nil), invalid},
		"its own key in the header":  {forgeWithJWK(t), invalid},
		"alg none":                   {forge(t, jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, nil, goodClaims()), invalid},
		"HMAC with the public key":   {forge(t, jwt.SigningMethodHS256, public, nil, goodClaims()), invalid},
		"r = s = 0":                  {part[0] + "." + part[1] + "." + base64.RawURLEncoding.EncodeToString(make([]byte, 64)), invalid},
		"no signature":               {part[0] + "." + part[1] + ".", invalid},
		"two parts":                  {part[0] + "." + part[1], invalid},
		"four dots":                  {good + "..", invalid},
		"base64 with padding":        {good + "=", invalid},
		"base64 that is not strict":  {strictless(good), invalid},
		"a byte of the claims":       {part[0] + "." + flip(part[1]) + "." + part[2], invalid},
		"64 KiB":                     {strings.Repeat("a", 65536), invalid},
		"nothing":                    {"", invalid},
		"another's key, our kid":     {forge(t, es, testKey("k1").private, nil, goodClaims()), invalid},
		"claims that are not object": {part[0] + "." + base64.RawURLEncoding.EncodeToString([]byte(`[]`)) + "." + part[2], invalid},
	} {
		_, err := verify(t.Context(), finder(key), "iss", "aud", at, c.token)
		if apierror.Code(err) != c.want {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func forgeWithJWK(t *testing.T) string {
	thief := testKey("thief")
	return forge(t, jwt.SigningMethodES256, thief.private, map[string]any{"kid": "thief", "jwk": thief.jwk(), "jku": "https://thief.example"}, goodClaims())
}

// strictless sets bits of the last character that a strict decoder wants to be 0.
func strictless(token string) string {
	const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	last := strings.IndexByte(digits, token[len(token)-1])
	return token[:len(token)-1] + string(digits[last|1])
}

func flip(s string) string {
	b := []byte(s)
	b[10] ^= 1
	return string(b)
}

func TestAnOutageIsNotABadToken(t *testing.T) {
	t.Parallel()
	key := testKey("k1")
	down := func(context.Context, string) (*ecdsa.PublicKey, bool, error) {
		return nil, false, &apierror.Error{Code: decision.Unavailable}
	}
	_, err := verify(t.Context(), down, "iss", "aud", at, forge(t, jwt.SigningMethodES256, key.private, nil, goodClaims()))
	if apierror.Code(err) != decision.Unavailable {
		t.Fatal(err)
	}
}

func FuzzVerify(f *testing.F) {
	key := testKey("k1")
	good, err := sign(key, Claims{RegisteredClaims: jwt.RegisteredClaims{Issuer: "iss", Audience: jwt.ClaimStrings{"aud"}, Subject: "u", ID: "s",
		ExpiresAt: jwt.NewNumericDate(at.Add(time.Hour))}, Account: "a"})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add("a.b.c")
	f.Fuzz(func(t *testing.T, s string) {
		if _, err := verify(t.Context(), finder(key), "iss", "aud", at, s); err == nil && s != good {
			t.Fatalf("%q was accepted", s)
		}
	})
}
