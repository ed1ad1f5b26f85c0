package jwt

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"
)

func b64(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }

const (
	goodHeader = `{"alg":"ES256","kid":"k1","typ":"at+jwt"}`
	goodClaims = `{"iss":"https://id.example","aud":"sluice","exp":1900000000,"nbf":1,"iat":2,"jti":"t1","scope":"a b"}`
)

// compact puts a token together whose signature has 64 bytes.
func compact(header, claims string) string {
	return b64(header) + "." + b64(claims) + "." + b64(strings.Repeat("s", 64))
}

func TestGoodToken(t *testing.T) {
	t.Parallel()
	text := compact(goodHeader, goodClaims)
	tok, ok := Parse(text)
	if !ok {
		t.Fatal("it does not parse")
	}
	c := tok.Claims
	if tok.Alg != ES256 || tok.KeyID != "k1" || tok.Type != "at+jwt" || tok.Signed != text[:strings.LastIndex(text, ".")] || len(tok.Signature) != 64 {
		t.Errorf("%+v", tok)
	}
	if c.Issuer != "https://id.example" || !c.For("sluice") || c.For("") || c.Expires != 1900000000 || c.NotBefore != 1 || c.IssuedAt != 2 || c.ID != "t1" {
		t.Errorf("%+v", c)
	}
}

func TestHeadersThatAreRefused(t *testing.T) {
	t.Parallel()
	for what, h := range map[string]string{
		"no algorithm":             `{"kid":"k1"}`,
		"alg none":                 `{"alg":"none","kid":"k1"}`,
		"alg None":                 `{"alg":"None","kid":"k1"}`,
		"a shared secret":          `{"alg":"HS256","kid":"k1"}`,
		"another curve":            `{"alg":"ES384","kid":"k1"}`,
		"a number for alg":         `{"alg":1,"kid":"k1"}`,
		"alg twice":                `{"alg":"ES256","alg":"RS256","kid":"k1"}`,
		"alg twice, once in code":  `{"alg":"ES256","\u0061lg":"RS256","kid":"k1"}`,
		"no kid":                   `{"alg":"ES256"}`,
		"an empty kid":             `{"alg":"ES256","kid":""}`,
		"a kid that is no string":  `{"alg":"ES256","kid":["k1"]}`,
		"a kid of 600 bytes":       `{"alg":"ES256","kid":"` + strings.Repeat("k", 600) + `"}`,
		"crit":                     `{"alg":"ES256","kid":"k1","crit":["exp"]}`,
		"crit, empty":              `{"alg":"ES256","kid":"k1","crit":[]}`,
		"b64":                      `{"alg":"ES256","kid":"k1","b64":false}`,
		"b64, true":                `{"alg":"ES256","kid":"k1","b64":true}`,
		"a key of its own":         `{"alg":"ES256","kid":"k1","jwk":{"kty":"EC"}}`,
		"an address of keys":       `{"alg":"ES256","kid":"k1","jku":"https://evil.example/jwks"}`,
		"an address of a chain":    `{"alg":"ES256","kid":"k1","x5u":"https://evil.example/chain"}`,
		"a chain":                  `{"alg":"ES256","kid":"k1","x5c":["MII"]}`,
		"jku in code":              `{"alg":"ES256","kid":"k1","\u006aku":"https://evil.example/jwks"}`,
		"a typ that is no string":  `{"alg":"ES256","kid":"k1","typ":null}`,
		"an array":                 `["ES256","k1"]`,
		"two objects":              goodHeader + goodHeader,
		"cut":                      goodHeader[:len(goodHeader)-1],
		"not UTF-8":                "{\"alg\":\"ES256\",\"kid\":\"k\xff\"}",
		"nothing":                  ``,
		"too many members":         `{"alg":"ES256","kid":"k1"` + strings.Repeat(`,"a":1`, 1) + manyMembers(200) + `}`,
		"a blank before":           " " + goodHeader,
		"a line end behind":        goodHeader + "\n",
		"1 KiB of blanks inside":   `{"alg":` + strings.Repeat(" ", 1025) + `"ES256","kid":"k1"}`,
		"nested beyond all reason": `{"alg":"ES256","kid":"k1","x":` + strings.Repeat("[", 40) + strings.Repeat("]", 40) + `}`,
	} {
		if _, ok := Parse(compact(h, goodClaims)); ok {
			t.Errorf("%s: accepted", what)
		}
	}
}

func manyMembers(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `,"m%d":1`, i)
	}
	return b.String()
}

func TestClaimsThatAreRefused(t *testing.T) {
	t.Parallel()
	with := func(rest string) string { return `{"iss":"i","aud":"a",` + rest + `}` }
	for what, c := range map[string]string{
		"no iss":                  `{"exp":1900000000}`,
		"no exp":                  with(`"iat":1`),
		"exp as a string":         with(`"exp":"1900000000"`),
		"exp as null":             with(`"exp":null`),
		"a negative exp":          with(`"exp":-1`),
		"a fraction":              with(`"exp":1900000000.5`),
		"a fraction of nothing":   with(`"exp":1900000000.0`),
		"an exponent":             with(`"exp":19e8`),
		"an exp beyond all years": with(`"exp":253402300800`),
		"an exp of many digits":   with(`"exp":19000000000000000000`),
		"exp twice":               with(`"exp":1,"exp":1900000000`),
		"exp twice, once in code": with(`"exp":1,"\u0065xp":1900000000`),
		"iss twice":               with(`"exp":1900000000,"iss":"other"`),
		"nbf as a string":         with(`"exp":1900000000,"nbf":"1"`),
		"iat as true":             with(`"exp":1900000000,"iat":true`),
		"aud as a number":         `{"iss":"i","aud":7,"exp":1900000000}`,
		"aud with a number":       `{"iss":"i","aud":["a",7],"exp":1900000000}`,
		"aud as an object":        `{"iss":"i","aud":{"a":"a"},"exp":1900000000}`,
		"jti as a number":         with(`"exp":1900000000,"jti":7`),
		"300 audiences":           `{"iss":"i","aud":[` + strings.Repeat(`"a",`, 299) + `"a"],"exp":1900000000}`,
		"a blank before":          " " + goodClaims,
		"a blank behind":          goodClaims + " ",
		"5 KB of blanks behind":   goodClaims + strings.Repeat(" ", 5000),
		"5 KB of blanks inside":   strings.Replace(goodClaims, ":", ":"+strings.Repeat(" ", 5000), 1),
		"an array":                `["iss"]`,
		"a string":                `"iss"`,
	} {
		if _, ok := Parse(compact(goodHeader, c)); ok {
			t.Errorf("%s: accepted", what)
		}
	}
}

func TestFormsThatAreRefused(t *testing.T) {
	t.Parallel()
	good := compact(goodHeader, goodClaims)
	parts := strings.Split(good, ".")
	last := good[len(good)-1]
	for what, text := range map[string]string{
		"nothing":             "",
		"dots":                "..",
		"many dots":           strings.Repeat(".", 8000),
		"two parts":           parts[0] + "." + parts[1],
		"no signature":        parts[0] + "." + parts[1] + ".",
		"four parts":          good + "." + parts[2],
		"five parts":          good + "." + parts[2] + "." + parts[2],
		"padding":             good + "==",
		"a line break":        parts[0] + "." + parts[1][:4] + "\n" + parts[1][4:] + "." + parts[2],
		"the other alphabet":  parts[0] + "." + parts[1] + "." + strings.Repeat("+", 86),
		"stray bits":          good[:len(good)-1] + string(last+1),
		"a space":             " " + good,
		"64 KiB":              good + strings.Repeat("A", 64<<10),
		"an encrypted token":  good + ".AAAA.AAAA",
		"one byte over":       compact(goodHeader, `{"iss":"i","exp":1,"pad":"`+strings.Repeat("p", 6100)+`"}`) + "A",
		"an unencoded header": goodHeader + "." + parts[1] + "." + parts[2],
	} {
		if _, ok := Parse(text); ok {
			t.Errorf("%s: accepted", what)
		}
	}
}

func TestAudienceAndWords(t *testing.T) {
	t.Parallel()
	tok, ok := Parse(compact(goodHeader, `{"iss":"i","aud":["x","y"],"exp":1,"s":" a  b ","l":["c","d e"],"n":7,"m":["a",7],"\u0073p":"q"}`))
	if !ok || !tok.Claims.For("y") || tok.Claims.For("x y") {
		t.Fatalf("%v %+v", ok, tok.Claims)
	}
	for name, want := range map[string][]string{"s": {"a", "b"}, "l": {"c", "d e"}, "n": nil, "m": nil, "absent": nil, "sp": {"q"}} {
		if got := tok.Claims.Words(name); !slices.Equal(got, want) {
			t.Errorf("%s: %q", name, got)
		}
	}
	if tok.Claims.Text("s") != " a  b " || tok.Claims.Text("n") != "" || !tok.Claims.Has("n") || tok.Claims.Has("absent") {
		t.Error("texts")
	}
}
