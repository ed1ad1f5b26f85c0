package issuers

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"slices"
	"strings"
	"sync"
	"testing"

	"sluice.dev/sluice/filters/credentials/jwt"
	"sluice.dev/sluice/filters/credentials/keytable"
	"sluice.dev/sluice/platform/limits/growth"
)

var b64 = base64.RawURLEncoding.EncodeToString

// made once: RSA takes its time.
var rsaKey = sync.OnceValue(func() *rsa.PrivateKey {
	k, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return k
})

type object map[string]any

func ec(t testing.TB, kid string) object {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	point, err := k.PublicKey.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	return object{"kty": "EC", "crv": "P-256", "kid": kid, "x": b64(point[1:33]), "y": b64(point[33:])}
}

func rsaJWK(alg string, n *big.Int, e int64) object {
	o := object{"kty": "RSA", "kid": "r" + alg, "n": b64(n.Bytes()), "e": b64(big.NewInt(e).Bytes())}
	if alg != "" {
		o["alg"] = alg
	}
	return o
}

func set(t testing.TB, keys ...object) []byte {
	t.Helper()
	b, err := json.Marshal(object{"keys": keys})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestKeysOfEveryAlgorithm(t *testing.T) {
	t.Parallel()
	public, _, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	r := rsaKey()
	list, err := Parse(set(t, ec(t, "es"), rsaJWK("", r.N, 65537), rsaJWK("RS256", r.N, 65537), rsaJWK("PS256", r.N, 65537),
		object{"kty": "OKP", "crv": "Ed25519", "kid": "ed", "x": b64(public), "use": "sig"}))
	if err != nil || len(list) != 5 {
		t.Fatal(list, err)
	}
	for i, want := range []jwt.Alg{jwt.ES256, jwt.RS256, jwt.RS256, jwt.PS256, jwt.EdDSA} {
		if list[i].Alg != want {
			t.Errorf("%s is for %v, want %v", list[i].ID, list[i].Alg, want)
		}
	}
	if k, err := x509.ParsePKIXPublicKey(list[1].Public); err != nil || !k.(*rsa.PublicKey).Equal(&r.PublicKey) {
		t.Errorf("RS256: %v", err)
	}
	if _, err := x509.ParsePKIXPublicKey(list[0].Public); err != nil {
		t.Errorf("ES256: %v", err)
	}
	if !slices.Equal(list[3].Public, jwt.RSA(r.N.Bytes(), 65537)) || !slices.Equal(list[4].Public, public) {
		t.Error("PS256 or EdDSA")
	}
}

func TestKeysThatAreOfNoUse(t *testing.T) {
	t.Parallel()
	good, r := ec(t, "good"), rsaKey()
	with := func(name string, v any) object {
		o := ec(t, "bad")
		o[name] = v
		return o
	}
	for what, bad := range map[string]object{
		"for encryption":           with("use", "enc"),
		"without an id":            with("kid", ""),
		"an id of many bytes":      with("kid", strings.Repeat("k", 513)),
		"an id with a NUL":         with("kid", "a\x00b"),
		"an id that is a number":   with("kid", 7),
		"another curve":            with("crv", "P-384"),
		"another algorithm":        with("alg", "ES384"),
		"a point beside the curve": with("x", b64(make([]byte, 32))),
		"a point cut short":        with("y", b64(make([]byte, 31))),
		"padding":                  with("x", good["x"].(string)+"="),
		"a shared secret":          {"kty": "oct", "kid": "bad", "k": "c2VjcmV0", "alg": "HS256"},
		"RSA of 1024 bits":         rsaJWK("RS256", new(big.Int).Rsh(r.N, 1024), 65537),
		"RSA of 9000 bits":         rsaJWK("RS256", new(big.Int).Add(new(big.Int).Lsh(r.N, 7000), big.NewInt(1)), 65537),
		"RSA, even":                rsaJWK("RS256", new(big.Int).Add(r.N, big.NewInt(1)), 65537),
		"RSA, exponent 1":          rsaJWK("RS256", r.N, 1),
		"RSA, exponent even":       rsaJWK("RS256", r.N, 65536),
		"RSA, exponent too large":  rsaJWK("RS256", r.N, 1<<31+1),
		"RSA for RS512":            rsaJWK("RS512", r.N, 65537),
		"Ed25519, short":           {"kty": "OKP", "crv": "Ed25519", "kid": "bad", "x": b64(make([]byte, 31))},
		"X25519":                   {"kty": "OKP", "crv": "X25519", "kid": "bad", "x": b64(make([]byte, 32))},
	} {
		if list, err := Parse(set(t, bad, good)); err != nil || len(list) != 1 || list[0].ID != "good" {
			t.Errorf("%s: %v %v", what, list, err)
		}
	}
}

func TestWhatIsNoKeySet(t *testing.T) {
	t.Parallel()
	many := make([]object, maxKeys+1)
	for i := range many {
		many[i] = ec(t, "k"+string(rune('0'+i%10))+string(rune('0'+i/10)))
	}
	for what, b := range map[string][]byte{
		"nothing": nil, "HTML": []byte("<html>"), "an array": []byte("[]"), "no keys": []byte("{}"), "keys of nothing": []byte(`{"keys":[]}`),
		"keys that are none": []byte(`{"keys":[1,"a",null,{}]}`), "one id twice": set(t, ec(t, "k"), ec(t, "k")), "too many": set(t, many...),
		"too large": append(set(t, ec(t, "k")), make([]byte, MaxBody)...),
	} {
		if list, err := Parse(b); err == nil {
			t.Errorf("%s: %v", what, list)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(set(f, ec(f, "k"), rsaJWK("PS256", rsaKey().N, 3)))
	f.Add([]byte(`{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"k","x":""}]}`))
	for _, shape := range []string{"{}", "1", `{"kid":"` + strings.Repeat("é", 100) + `"}`, `{"kty":"RSA","kid":"k","n":"` + strings.Repeat("A", 2000) + `","e":"AQAB"}`, strings.Repeat(" ", 50) + "null"} {
		for _, n := range []int{250, 1000, 4000} {
			f.Add([]byte(`{"keys":[` + strings.Repeat(shape+",", n) + shape + `]}`))
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		growth.Linear(t, len(b), 64, 2<<20, func() { _, _ = Parse(b) })
		list, err := Parse(b)
		if (err == nil) != (len(list) > 0) {
			t.Fatal(list, err)
		}
		for _, k := range list {
			raw := k.Append(nil)
			if got, ok := jwt.ParseKey(raw); !ok || got.Alg != k.Alg || len(raw) > keytable.MaxValue || k.ID == "" {
				t.Fatalf("%+v", k)
			}
		}
	})
}
