package jwt

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"sluice.dev/sluice/platform/limits/growth"
)

// oracle reads a token with the standard library. It knows nothing of names
// that stand twice, of depth or of what is refused: whatever Parse accepts, the
// oracle must read alike.
func oracle(text string) (header, claims map[string]any, ok bool) {
	parts := strings.Split(text, ".")
	if len(parts) != 3 {
		return nil, nil, false
	}
	for i, to := range []*map[string]any{&header, &claims} {
		b, err := base64.RawURLEncoding.DecodeString(parts[i])
		if err != nil || !utf8.Valid(b) {
			return nil, nil, false
		}
		d := json.NewDecoder(bytes.NewReader(b))
		d.UseNumber()
		if d.Decode(to) != nil || d.More() {
			return nil, nil, false
		}
	}
	return header, claims, true
}

func FuzzParse(f *testing.F) {
	for _, claims := range []string{goodClaims, `{"iss":"i","exp":0,"aud":[]}`, `{"iss":"\ud800","exp":7,"x":[{"y":[1,"z"]}]}`, `{"exp":1,"\u0065xp":2}`} {
		f.Add(goodHeader, claims, "sss")
	}
	f.Add(`{"alg":"PS256","kid":"\u006b","typ":""}`, `{}`, "")
	f.Fuzz(func(t *testing.T, header, claims, sum string) {
		text := b64(header) + "." + b64(claims) + "." + b64(sum)
		growth.Linear(t, len(text), multiple, constant, func() { Parse(text) })
		tok, ok := Parse(text)
		if !ok {
			return
		}
		h, c, ok := oracle(text)
		if !ok {
			t.Fatalf("accepted: %q %q", header, claims)
		}
		if h["alg"] != tok.Alg.String() || h["kid"] != tok.KeyID || c["iss"] != tok.Claims.Issuer || string(tok.Signature) != sum {
			t.Fatalf("%q %q was read as %+v", header, claims, tok)
		}
		if c["exp"] != json.Number(strconv.FormatInt(tok.Claims.Expires, 10)) {
			t.Fatalf("exp of %q was read as %d", claims, tok.Claims.Expires)
		}
		for name, v := range c {
			if s, isText := v.(string); tok.Claims.Text(name) != s || !tok.Claims.Has(name) {
				t.Fatalf("%q of %q: %v, %q", name, claims, isText, tok.Claims.Text(name))
			}
		}
	})
}

func FuzzParseText(f *testing.F) {
	f.Add(compact(goodHeader, goodClaims))
	f.Add("..")
	f.Fuzz(func(t *testing.T, text string) {
		growth.Linear(t, len(text), multiple, constant, func() { Parse(text) })
		if tok, ok := Parse(text); ok {
			if _, _, read := oracle(text); !read || !strings.HasPrefix(text, tok.Signed+".") {
				t.Fatalf("%q", text)
			}
		}
	})
}

func TestDERAgreesWithTheStandardLibrary(t *testing.T) {
	t.Parallel()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 300 { // numbers of every length and first bit turn up
		hash := sha256.Sum256([]byte{byte(i), byte(i >> 8)})
		r, s, err := ecdsa.Sign(rand.Reader, key, hash[:])
		if err != nil {
			t.Fatal(err)
		}
		raw := append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...)
		der, ok := DER(raw)
		if !ok || !ecdsa.VerifyASN1(&key.PublicKey, hash[:], der) {
			t.Fatalf("%x -> %x", raw, der)
		}
	}
	small := append(big.NewInt(1).FillBytes(make([]byte, 32)), big.NewInt(128).FillBytes(make([]byte, 32))...)
	if der, ok := DER(small); !ok || !bytes.Equal(der, []byte{0x30, 7, 2, 1, 1, 2, 2, 0, 128}) {
		t.Fatalf("%x", der)
	}
}

func TestSignaturesOfNoUse(t *testing.T) {
	t.Parallel()
	one := big.NewInt(1).FillBytes(make([]byte, 32))
	zero := make([]byte, 32)
	for what, b := range map[string][]byte{
		"r and s are 0": append(bytes.Clone(zero), zero...), "r is 0": append(bytes.Clone(zero), one...), "s is 0": append(bytes.Clone(one), zero...),
		"short": one, "long": bytes.Repeat(one, 3), "nothing": nil, "already DER": {0x30, 6, 2, 1, 1, 2, 1, 1},
	} {
		if der, ok := DER(b); ok {
			t.Errorf("%s: %x", what, der)
		}
	}
}

func TestKeyForm(t *testing.T) {
	t.Parallel()
	want := Key{PS256, RSA([]byte{9, 8, 7}, 65537)}
	got, ok := ParseKey(want.Append(nil))
	if !ok || got.Alg != PS256 || !bytes.Equal(got.Public, []byte{0, 1, 0, 1, 9, 8, 7}) {
		t.Errorf("%+v", got)
	}
	for _, b := range [][]byte{nil, {1}, {0, 1, 2}, {9, 1, 2}} {
		if _, ok := ParseKey(b); ok {
			t.Errorf("%x was read", b)
		}
	}
}

func TestAlgorithmsHaveOneSpelling(t *testing.T) {
	t.Parallel()
	for _, a := range []Alg{ES256, RS256, PS256, EdDSA} {
		if got, ok := AlgOf(a.String()); !ok || got != a {
			t.Errorf("%v", a)
		}
	}
	for _, name := range []string{"", "none", "es256", "HS256", "ES256 ", "Ed25519"} {
		if a, ok := AlgOf(name); ok {
			t.Errorf("%q is %v", name, a)
		}
	}
}

func BenchmarkParse(b *testing.B) {
	text := compact(goodHeader, goodClaims)
	for b.Loop() {
		if _, ok := Parse(text); !ok {
			b.Fatal()
		}
	}
}
