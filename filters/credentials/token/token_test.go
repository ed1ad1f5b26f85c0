package token

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"maps"
	"strings"
	"sync"
	"testing"

	"sluice.dev/sluice/filters/credentials/jwt"
	"sluice.dev/sluice/filters/credentials/keytable"
	"sluice.dev/sluice/filters/credentials/signature"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/filters/policy"
)

const now = 1_800_000_000

const (
	ours    = "https://gw.example"
	foreign = "https://id.example"
)

var (
	account  = keytable.FormatID(keytable.AccountPrefix, 77)
	judgedBy = policy.Parse((&policy.Policy{
		Classes: []string{"default"},
		Scopes:  []policy.Scope{{Bit: 0, Name: "*"}, {Bit: 1, Name: "streams:read"}, {Bit: 2, Name: "clips:write"}},
		Issuers: []policy.Issuer{
			{Name: ours, Audience: ours, Own: true, ScopeClaim: "scopes", AccountClaim: "account"},
			{Name: foreign, Audience: "sluice", ScopeClaim: "roles", Account: 88, Grants: []policy.Grant{{Value: "viewer", Scopes: keytable.Scopes{}.With(1)}}},
		},
	}).Encode())
)

// keys are made once: RSA takes its time.
var keys = sync.OnceValue(func() (k struct {
	ec  *ecdsa.PrivateKey
	rsa *rsa.PrivateKey
	ed  ed25519.PrivateKey
}) {
	k.ec, _ = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	k.rsa, _ = rsa.GenerateKey(rand.Reader, 2048)
	_, k.ed, _ = ed25519.GenerateKey(rand.Reader)
	return k
})

// edge is an Env that verifies as Envoy and the filter do together.
type edge struct {
	records  map[keytable.Tag]keytable.Record
	loading  bool
	verified int
}

func (e *edge) Record(t keytable.Tag) (keytable.Record, bool) { r, ok := e.records[t]; return r, ok }
func (e *edge) Ready() bool                                   { return !e.loading }
func (e *edge) Verify(k jwt.Key, signed string, sum []byte) bool {
	e.verified++
	hash := sha256.Sum256([]byte(signed))
	switch k.Alg {
	case jwt.ES256:
		public, err := x509.ParsePKIXPublicKey(k.Public)
		der, ok := jwt.DER(sum)
		return err == nil && ok && ecdsa.VerifyASN1(public.(*ecdsa.PublicKey), hash[:], der)
	case jwt.RS256:
		public, err := x509.ParsePKIXPublicKey(k.Public)
		return err == nil && rsa.VerifyPKCS1v15(public.(*rsa.PublicKey), crypto.SHA256, hash[:], sum) == nil
	}
	return signature.Verify(k, []byte(signed), sum)
}

func (e *edge) put(list ...keytable.Record) {
	for _, r := range list {
		e.records[r.Tag] = r
	}
}

func (e *edge) trust(issuer, kid string, k jwt.Key) {
	e.put(keytable.Split(keytable.TagOfIssuerKey(issuer, kid), k.Append(nil))...)
}

func spki(public any) []byte {
	b, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		panic(err)
	}
	return b
}

// newEdge trusts one key of ours, and one of each algorithm of the other issuer.
func newEdge() *edge {
	e, k := &edge{records: map[keytable.Tag]keytable.Record{}}, keys()
	ec := jwt.Key{Alg: jwt.ES256, Public: spki(&k.ec.PublicKey)}
	e.trust(ours, "es", ec)
	e.trust(foreign, "es", ec)
	e.trust(foreign, "rs", jwt.Key{Alg: jwt.RS256, Public: spki(&k.rsa.PublicKey)})
	e.trust(foreign, "ps", jwt.Key{Alg: jwt.PS256, Public: jwt.RSA(k.rsa.N.Bytes(), uint32(k.rsa.E))})
	e.trust(foreign, "ed", jwt.Key{Alg: jwt.EdDSA, Public: k.ed.Public().(ed25519.PublicKey)})
	return e
}

type object map[string]any

func (o object) with(name string, v any) object {
	c := maps.Clone(o)
	if c[name] = v; v == nil {
		delete(c, name)
	}
	return c
}

func (o object) encoded() string {
	b, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

// signature of signed as the algorithm called alg makes it.
func sign(alg, signed string) (sum []byte) {
	k, hash := keys(), sha256.Sum256([]byte(signed))
	switch alg {
	case "ES256":
		r, s, _ := ecdsa.Sign(rand.Reader, k.ec, hash[:])
		sum = append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...)
	case "RS256":
		sum, _ = rsa.SignPKCS1v15(rand.Reader, k.rsa, crypto.SHA256, hash[:])
	case "PS256":
		sum, _ = rsa.SignPSS(rand.Reader, k.rsa, crypto.SHA256, hash[:], &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash})
	case "EdDSA":
		sum = ed25519.Sign(k.ed, []byte(signed))
	case "HS256": // keyed by the public key, as in the attack
		h := hmac.New(sha256.New, spki(&k.rsa.PublicKey))
		h.Write([]byte(signed))
		sum = h.Sum(nil)
	}
	return sum
}

// compact is a token signed as by says, whatever its header says.
func compact(header, claims object, by string) string {
	signed := header.encoded() + "." + claims.encoded()
	return signed + "." + base64.RawURLEncoding.EncodeToString(sign(by, signed))
}

var (
	ownHeader = object{"alg": "ES256", "kid": "es", "typ": "at+jwt"}
	own       = object{"iss": ours, "aud": ours, "account": account, "scopes": []string{"streams:read"}, "exp": now + 100, "iat": now, "jti": "sess_1", "sub": "user_1"}
	guest     = object{"iss": foreign, "aud": []string{"other", "sluice"}, "roles": "viewer editor", "exp": now + 100, "jti": "sess_1", "sub": "x"}
)

func TestGoodTokens(t *testing.T) {
	t.Parallel()
	read := keytable.Scopes{}.With(1)
	for name, c := range map[string]struct {
		text string
		want Bearer
	}{
		"ours":                  {compact(ownHeader, own, "ES256"), Bearer{Credential: "sess_1", Account: 77, Scopes: read}},
		"ours, long typ":        {compact(ownHeader.with("typ", "application/at+jwt"), own, "ES256"), Bearer{Credential: "sess_1", Account: 77, Scopes: read}},
		"ours, scope as text":   {compact(ownHeader, own.with("scopes", nil).with("scope", "streams:read clips:write"), "ES256"), Bearer{Credential: "sess_1", Account: 77, Scopes: read.With(2)}},
		"an admin of ours":      {compact(ownHeader, own.with("scopes", []string{"*"}), "ES256"), Bearer{Credential: "sess_1", Account: 77, Scopes: keytable.Scopes{}.With(0)}},
		"a clock that is ahead": {compact(ownHeader, own.with("iat", now+59).with("nbf", now+59), "ES256"), Bearer{Credential: "sess_1", Account: 77, Scopes: read}},
		"another's ES256":       {compact(object{"alg": "ES256", "kid": "es"}, guest, "ES256"), Bearer{Account: 88, Scopes: read}},
		"another's RS256":       {compact(object{"alg": "RS256", "kid": "rs", "typ": "JWT"}, guest, "RS256"), Bearer{Account: 88, Scopes: read}},
		"another's PS256":       {compact(object{"alg": "PS256", "kid": "ps"}, guest, "PS256"), Bearer{Account: 88, Scopes: read}},
		"another's EdDSA":       {compact(object{"alg": "EdDSA", "kid": "ed"}, guest, "EdDSA"), Bearer{Account: 88, Scopes: read}},
		"another's, no jti":     {compact(object{"alg": "EdDSA", "kid": "ed"}, guest.with("jti", nil), "EdDSA"), Bearer{Account: 88, Scopes: read}},
		"another's admin":       {compact(object{"alg": "EdDSA", "kid": "ed"}, guest.with("roles", "* streams:read"), "EdDSA"), Bearer{Account: 88}},
	} {
		var table Table
		b, d := ask(&table, newEdge(), c.text, now)
		if !d.OK() || b.Account != c.want.Account || b.Scopes != c.want.Scopes || b.Expires != now+100 {
			t.Errorf("%s: %q %+v", name, d.Code, b)
		}
		if c.want.Credential != "" && b.Credential != c.want.Credential || c.want.Credential == "" && !strings.HasPrefix(b.Credential, Prefix) {
			t.Errorf("%s: the credential is %s", name, b.Credential)
		}
	}
}

func TestAttacks(t *testing.T) {
	t.Parallel()
	good := compact(ownHeader, own, "ES256")
	parts := strings.Split(good, ".")
	admin := own.with("scopes", []string{"*"})
	raw := base64.RawURLEncoding.EncodeToString
	rs := object{"alg": "RS256", "kid": "rs"}
	for name, text := range map[string]string{
		"alg none":                           object{"alg": "none", "kid": "es", "typ": "at+jwt"}.encoded() + "." + admin.encoded() + ".AA",
		"alg none without a signature":       object{"alg": "none", "kid": "es", "typ": "at+jwt"}.encoded() + "." + admin.encoded() + ".",
		"the public key as a shared secret":  compact(object{"alg": "HS256", "kid": "rs"}, guest, "HS256"),
		"that, under the key's algorithm":    compact(rs, guest, "HS256"),
		"another algorithm than the key's":   compact(object{"alg": "PS256", "kid": "rs"}, guest, "PS256"),
		"PKCS#1 for PSS":                     compact(object{"alg": "PS256", "kid": "ps"}, guest, "RS256"),
		"PSS for PKCS#1":                     compact(rs, guest, "PS256"),
		"a key id that is not known":         compact(ownHeader.with("kid", "other"), own, "ES256"),
		"a key id that is a path":            compact(ownHeader.with("kid", "../../dev/null"), own, "ES256"),
		"a key id that is SQL":               compact(ownHeader.with("kid", "es' OR '1'='1"), own, "ES256"),
		"a key of another issuer":            compact(ownHeader.with("kid", "rs").with("alg", "RS256"), own, "RS256"),
		"an issuer not known":                compact(ownHeader, own.with("iss", "https://evil.example"), "ES256"),
		"an issuer with a NUL":               compact(ownHeader.with("kid", "es"), own.with("iss", ours+"\x00es"), "ES256"),
		"its own key":                        compact(ownHeader.with("jwk", object{"kty": "EC"}), own, "ES256"),
		"an address of keys":                 compact(ownHeader.with("jku", "https://evil.example/jwks"), own, "ES256"),
		"crit":                               compact(ownHeader.with("crit", []string{"x"}).with("x", 1), own, "ES256"),
		"b64":                                compact(ownHeader.with("b64", false), own, "ES256"),
		"an id token of ours":                compact(ownHeader.with("typ", "JWT"), own, "ES256"),
		"no typ on a token of ours":          compact(ownHeader.with("typ", nil), own, "ES256"),
		"a signature of zeros":               parts[0] + "." + parts[1] + "." + raw(make([]byte, 64)),
		"a signature in DER":                 parts[0] + "." + parts[1] + "." + raw(mustDER(parts[2])),
		"no signature":                       parts[0] + "." + parts[1] + ".",
		"another's signature":                parts[0] + "." + parts[1] + "." + strings.Split(compact(ownHeader, admin, "ES256"), ".")[2],
		"claims changed":                     parts[0] + "." + admin.encoded() + "." + parts[2],
		"for another audience":               compact(ownHeader, own.with("aud", "https://other.example"), "ES256"),
		"for nobody":                         compact(ownHeader, own.with("aud", nil), "ES256"),
		"for a part of the audience's name":  compact(ownHeader, own.with("aud", ours[:len(ours)-1]), "ES256"),
		"not yet":                            compact(ownHeader, own.with("nbf", now+61), "ES256"),
		"issued in the future":               compact(ownHeader, own.with("iat", now+61), "ES256"),
		"no end":                             compact(ownHeader, own.with("exp", nil), "ES256"),
		"an end as text":                     compact(ownHeader, own.with("exp", "9999999999"), "ES256"),
		"no id":                              compact(ownHeader, own.with("jti", nil), "ES256"),
		"an id that would write the header":  compact(ownHeader, own.with("jti", "sess_1;s=*"), "ES256"),
		"no account":                         compact(ownHeader, own.with("account", nil), "ES256"),
		"an account that is none":            compact(ownHeader, own.with("account", "acct_1"), "ES256"),
		"a token of ours by the other's key": compact(object{"alg": "EdDSA", "kid": "ed", "typ": "at+jwt"}, own, "EdDSA"),
	} {
		var table Table
		if b, d := ask(&table, newEdge(), text, now); d.Code != decision.InvalidToken {
			t.Errorf("%s: %q %+v", name, d.Code, b)
		}
	}
}

func mustDER(sum string) []byte {
	b, _ := base64.RawURLEncoding.DecodeString(sum)
	der, _ := jwt.DER(b)
	return der
}

// An issuer cannot give its tokens the name of a session of ours.
func TestNamesOfOtherIssuersTokensAreTheirOwn(t *testing.T) {
	t.Parallel()
	var table Table
	e := newEdge()
	a, _ := ask(&table, e, compact(object{"alg": "ES256", "kid": "es"}, guest, "ES256"), now)
	b, _ := ask(&table, e, compact(object{"alg": "EdDSA", "kid": "ed"}, guest, "EdDSA"), now)
	c, _ := ask(&table, e, compact(object{"alg": "EdDSA", "kid": "ed"}, guest.with("jti", "sess_2"), "EdDSA"), now)
	if a.Credential == "" || a.Credential != b.Credential || a.Credential == c.Credential {
		t.Errorf("%q %q %q", a.Credential, b.Credential, c.Credential)
	}
}
