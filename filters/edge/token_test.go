package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/proxytest"
	"sluice.dev/sluice/filters/credentials/allowlist"
	"sluice.dev/sluice/filters/credentials/jwt"
	"sluice.dev/sluice/filters/credentials/keytable"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/filters/identityheader"
)

// signers sign tokens of the issuer that the test policy trusts.
type signers struct {
	ec  *ecdsa.PrivateKey
	rsa *rsa.PrivateKey
	ed  ed25519.PrivateKey
}

func newSigners(t *testing.T) (s signers) {
	t.Helper()
	var err error
	if s.ec, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		t.Fatal(err)
	}
	if s.rsa, err = rsa.GenerateKey(rand.Reader, 2048); err != nil {
		t.Fatal(err)
	}
	if _, s.ed, err = ed25519.GenerateKey(rand.Reader); err != nil {
		t.Fatal(err)
	}
	return s
}

// records are the issuer's keys, each under its algorithm's name.
func (s signers) records(t *testing.T) (list []keytable.Record) {
	t.Helper()
	for _, k := range []jwt.Key{
		{Alg: jwt.ES256, Public: spki(t, &s.ec.PublicKey)},
		{Alg: jwt.RS256, Public: spki(t, &s.rsa.PublicKey)},
		{Alg: jwt.PS256, Public: jwt.RSA(s.rsa.N.Bytes(), uint32(s.rsa.E))},
		{Alg: jwt.EdDSA, Public: s.ed.Public().(ed25519.PublicKey)},
	} {
		list = append(list, keytable.Split(keytable.TagOfIssuerKey(issuer, k.Alg.String()), k.Append(nil))...)
	}
	return list
}

func spki(t *testing.T, public any) []byte {
	t.Helper()
	b, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

const issuer = "http://gw"

// token returns one of our own for account 9 with an end and an id.
func (s signers) token(t *testing.T, alg jwt.Alg, id string, end time.Time) string {
	t.Helper()
	b64 := base64.RawURLEncoding.EncodeToString
	signed := b64(fmt.Appendf(nil, `{"alg":%q,"kid":%q,"typ":"at+jwt"}`, alg, alg)) + "." +
		b64(fmt.Appendf(nil, `{"iss":%q,"aud":%q,"account":%q,"scopes":["streams:read"],"exp":%d,"jti":%q}`,
			issuer, issuer, keytable.FormatID("acct_", 9), end.Unix(), id))
	hash := sha256.Sum256([]byte(signed))
	var sum []byte
	var err error
	switch alg {
	case jwt.ES256:
		r, x, e := ecdsa.Sign(rand.Reader, s.ec, hash[:])
		sum, err = append(r.FillBytes(make([]byte, 32)), x.FillBytes(make([]byte, 32))...), e
	case jwt.RS256:
		sum, err = rsa.SignPKCS1v15(rand.Reader, s.rsa, crypto.SHA256, hash[:])
	case jwt.PS256:
		sum, err = rsa.SignPSS(rand.Reader, s.rsa, crypto.SHA256, hash[:], &rsa.PSSOptions{SaltLength: 32})
	case jwt.EdDSA:
		sum = ed25519.Sign(s.ed, []byte(signed))
	}
	if err != nil {
		t.Fatal(err)
	}
	return signed + "." + b64(sum)
}

// verifySignature stands for Envoy's function of that name.
func verifySignature(b []byte) []byte {
	fields := map[byte][]byte{}
	for len(b) > 0 {
		n, size := binary.Uvarint(b[1:])
		fields[b[0]>>3] = b[1+size : 1+size+int(n)]
		b = b[1+size+int(n):]
	}
	public, err := x509.ParsePKIXPublicKey(fields[2])
	if err != nil || string(fields[1]) != "sha256" {
		return []byte{8, 0}
	}
	hash, ok := sha256.Sum256(fields[4]), false
	switch k := public.(type) {
	case *ecdsa.PublicKey:
		ok = ecdsa.VerifyASN1(k, hash[:], fields[3])
	case *rsa.PublicKey:
		ok = rsa.VerifyPKCS1v15(k, crypto.SHA256, hash[:], fields[3]) == nil
	}
	if !ok {
		return []byte{8, 0}
	}
	return []byte{8, 1}
}

func accountRecord(flags uint8) keytable.Record {
	return keytable.Record{Tag: keytable.TagOfAccount(9), Kind: keytable.KindAccount, Account: 9, Plan: 2, Flags: flags}
}

func TestTokensOfEveryAlgorithm(t *testing.T) {
	s := newSigners(t)
	both(t, func(t *testing.T, h proxytest.HostEmulator) {
		h.RegisterForeignFunction("verify_signature", verifySignature)
		load(append(s.records(t), accountRecord(0), secretRecord())...)
		end := time.Now().Add(time.Hour)
		for _, alg := range []jwt.Alg{jwt.ES256, jwt.RS256, jwt.PS256, jwt.EdDSA} {
			text := s.token(t, alg, "sess_"+alg.String(), end)
			for range 2 {
				r := send(t, h, "streams.get", bearer(text))
				if r.status != 0 {
					t.Fatalf("%v: %d %s", alg, r.status, r.body)
				}
				value := r.request[identityheader.Header]
				c, err := told("other", value, signedAt(t, value))
				want := identityheader.Caller{Account: keytable.FormatID("acct_", 9), Key: "sess_" + alg.String(), Plan: "roomy", Scopes: []string{"streams:read"}}
				if err != nil || fmt.Sprint(c) != fmt.Sprint(want) {
					t.Fatalf("%v: %+v %v", alg, c, err)
				}
			}
			forged := text[:len(text)-8] + strings.Repeat("A", 7) + "A"
			if r := send(t, h, "streams.get", bearer(forged)); r.status != 401 || !strings.Contains(r.body, string(decision.InvalidToken)) {
				t.Fatalf("%v, forged: %d %s", alg, r.status, r.body)
			}
		}
	})
}

func TestTokenIsRefused(t *testing.T) {
	s := newSigners(t)
	both(t, func(t *testing.T, h proxytest.HostEmulator) {
		h.RegisterForeignFunction("verify_signature", verifySignature)
		load(append(s.records(t), accountRecord(0), secretRecord())...)
		good := s.token(t, jwt.ES256, "sess_1", time.Now().Add(time.Hour))
		want := func(what, text string, status uint32, code decision.Code) {
			t.Helper()
			if r := send(t, h, "streams.get", bearer(text)); r.status != status || !strings.Contains(r.body, string(code)) {
				t.Errorf("%s: %d %s", what, r.status, r.body)
			}
		}
		want("good", good, 0, "")
		want("ended", s.token(t, jwt.ES256, "sess_2", time.Unix(1, 0)), 401, decision.TokenExpired)
		load(accountRecord(keytable.FlagUnpaid))
		want("unpaid", good, 402, decision.Unpaid)
		load(accountRecord(keytable.FlagAllowlist))
		want("while the allowlist arrives", good, 503, decision.EdgeNotReady)
		load(keytable.Split(keytable.TagOfAllowlist(9), allowlist.Encode([]netip.Prefix{netip.MustParsePrefix("198.51.100.0/24")}))...)
		want("from another address", good, 403, decision.AddrRefused)
		load(keytable.Split(keytable.TagOfAllowlist(9), allowlist.Encode([]netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}))...)
		want("from a listed address", good, 0, "")
		load(keytable.Record{Tag: keytable.TagOfToken("sess_1"), Kind: keytable.KindToken})
		want("revoked", good, 401, decision.InvalidToken)
	})
}

// A token that is otherwise good has no white space around its parts, and costs
// no signature check with it. Whoever goes on all the same is not read any more;
// who was in stays in.
func TestTokensOfBlanks(t *testing.T) {
	s := newSigners(t)
	both(t, func(t *testing.T, h proxytest.HostEmulator) {
		checked := 0
		h.RegisterForeignFunction("verify_signature", func(b []byte) []byte { checked++; return verifySignature(b) })
		load(append(s.records(t), accountRecord(0), secretRecord(), keyRecord())...)
		good := s.token(t, jwt.ES256, "sess_1", time.Now().Add(time.Hour))
		if r := send(t, h, "streams.get", bearer(good)); r.status != 0 {
			t.Fatal(r.status, r.body)
		}
		parts := strings.Split(good, ".")
		claims, err := base64.RawURLEncoding.DecodeString(parts[1])
		if err != nil {
			t.Fatal(err)
		}
		blank := parts[0] + "." + base64.RawURLEncoding.EncodeToString(append(claims, strings.Repeat(" ", 5800)...)) + "." + parts[2]
		if len(blank) < 8000 || len(blank) > jwt.MaxLen {
			t.Fatalf("a token of %d bytes", len(blank))
		}
		checked = 0
		for i := range 60 {
			r := send(t, h, "streams.get", bearer(blank))
			want, code := uint32(401), decision.InvalidToken
			if i >= 50 {
				want, code = 429, decision.RateLimited
			}
			if r.status != want || !strings.Contains(r.body, string(code)) {
				t.Fatalf("%d: %d %s", i, r.status, r.body)
			}
		}
		if checked != 0 {
			t.Errorf("%d signatures were checked", checked)
		}
		if r := send(t, h, "streams.get", bearer(s.token(t, jwt.ES256, "sess_2", time.Now().Add(time.Hour)))); r.status != 429 || checked != 0 {
			t.Errorf("another token, after as many guesses as there may be: %d %s, %d checked", r.status, r.body, checked)
		}
		if r := send(t, h, "streams.get", bearer(good)); r.status != 0 {
			t.Errorf("the token that was good: %d %s", r.status, r.body)
		}
		if r := send(t, h, "streams.list", bearer(key)); r.status != 0 {
			t.Errorf("a key: %d %s", r.status, r.body)
		}
	})
}

// An answer of the host that means nothing lets nobody in.
func TestAnswerOfTheHostThatMeansNothing(t *testing.T) {
	s := newSigners(t)
	both(t, func(t *testing.T, h proxytest.HostEmulator) {
		h.RegisterForeignFunction("verify_signature", func([]byte) []byte { return []byte{1} })
		load(append(s.records(t), accountRecord(0), secretRecord())...)
		if r := send(t, h, "streams.get", bearer(s.token(t, jwt.ES256, "sess_1", time.Now().Add(time.Hour)))); r.status != 401 {
			t.Fatalf("%d %s", r.status, r.body)
		}
	})
}
