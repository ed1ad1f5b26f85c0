// Package token checks bearer tokens at the edge: who issued one, whether its
// signature is good, and what it grants. What it found is remembered for a
// while, because a signature costs more than all other checks together.
package token

import (
	"crypto/sha256"
	"encoding/binary"

	"sluice.dev/sluice/filters/credentials/jwt"
	"sluice.dev/sluice/filters/credentials/keytable"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/filters/policy"
)

// Env is what a judgement needs of the machine around it.
type Env interface {
	// Record finds the record with tag t.
	Record(t keytable.Tag) (keytable.Record, bool)
	// Ready reports whether the table of records has been loaded once.
	Ready() bool
	// Verify reports whether sum is k's signature of signed.
	Verify(k jwt.Key, signed string, sum []byte) bool
}

// Bearer is whoever has a good token.
type Bearer struct {
	Own        bool   // the token is of this platform, not of another issuer
	Credential string // id of the session or grant, never its secret
	ID         uint64 // the same as a number, for tables
	Account    uint64
	Scopes     keytable.Scopes
	Expires    int64 // unix seconds
}

// skew is how far the clocks of issuers may be ahead of ours, in seconds. A
// token's end knows no such tolerance.
const skew = 60

// typ is what the header of our own tokens says (RFC 9068 section 2.1), so that
// nothing else that is signed by the same key passes for an access token.
const typ = "at+jwt"

var (
	invalid  = decision.Deny(decision.InvalidToken)
	notReady = decision.Decision{Code: decision.EdgeNotReady, RetryAfter: 1}
)

// check reads a token and checks all of it but revocation. The signature comes
// before what the token says about itself: a forged one learns nothing.
func check(p *policy.Policy, env Env, text string, now int64) (Bearer, decision.Decision) {
	t, ok := jwt.Parse(text)
	if !ok {
		return Bearer{}, invalid
	}
	is, ok := p.Issuer(t.Claims.Issuer)
	if !ok || is.Own && t.Type != typ && t.Type != "application/"+typ {
		return Bearer{}, invalid
	}
	if d := checkSignature(env, t); !d.OK() {
		return Bearer{}, d
	}
	if d := checkTimes(is, t.Claims, now); !d.OK() {
		return Bearer{}, d
	}
	return bearer(p, is, t)
}

// checkSignature checks the signature by the issuer's key, which alone says with which
// algorithm.
func checkSignature(env Env, t jwt.Token) decision.Decision {
	raw, found, whole := keytable.Join(keytable.TagOfIssuerKey(t.Claims.Issuer, t.KeyID), env.Record)
	if found && !whole {
		return notReady
	}
	key, ok := jwt.ParseKey(raw)
	if !found || !ok || key.Alg != t.Alg || !env.Verify(key, t.Signed, t.Signature) {
		return invalid
	}
	return decision.Pass
}

// checkTimes checks whom a token is meant for, and when.
func checkTimes(is *policy.Issuer, c jwt.Claims, now int64) decision.Decision {
	switch {
	case !c.For(is.Audience) || c.NotBefore > now+skew || c.IssuedAt > now+skew:
		return invalid
	case now >= c.Expires:
		return decision.Deny(decision.TokenExpired)
	}
	return decision.Pass
}

// bearer reads who calls from a token that is good. Its name for the token goes
// into headers and logs, so it is never part of the token's text.
func bearer(p *policy.Policy, is *policy.Issuer, t jwt.Token) (Bearer, decision.Decision) {
	b := Bearer{Own: is.Own, Account: is.Account, Expires: t.Claims.Expires}
	if is.AccountClaim != "" {
		claim, may := is.AccountIn()
		id := t.Claims.Text(claim)
		var ok bool
		if b.Account, ok = keytable.ParseID(keytable.AccountPrefix, id); !ok || !may(id) {
			return b, invalid
		}
	}
	claim := is.ScopeClaim
	if is.Own && !t.Claims.Has(claim) {
		claim = "scope"
	}
	b.Scopes = p.Granted(is, t.Claims.Words(claim))
	sum := sha256.Sum256([]byte(t.Claims.Issuer + "\x00" + t.Claims.ID))
	if t.Claims.ID == "" {
		sum = sha256.Sum256([]byte(t.Signed))
	}
	b.ID = binary.LittleEndian.Uint64(sum[:])
	if b.Credential = t.Claims.ID; !is.Own {
		b.Credential = keytable.FormatID(Prefix, b.ID)
	}
	if !plain(b.Credential) {
		return b, invalid
	}
	return b, decision.Pass
}

// Prefix begins the name under which products see a token of another issuer. It
// is made from the issuer and its name for the token, so that no issuer can
// give its tokens the name of a session of ours.
const Prefix = "tok_"

// plain reports whether s may stand in an identity header.
func plain(s string) bool {
	if s == "" || len(s) > 128 {
		return false
	}
	for i := range len(s) {
		c := s[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !letter && c != '_' && c != '-' && c != '.' && c != '~' {
			return false
		}
	}
	return true
}
