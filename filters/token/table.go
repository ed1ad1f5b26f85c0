package token

import (
	"crypto/sha256"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/filters/keytable"
	"sluice.dev/sluice/filters/policy"
)

// Table remembers the tokens that were found good, in a fixed number of places.
// The zero Table is empty. It belongs to one policy and one thread.
type Table struct {
	ready  bool
	places [256]place
}

// place holds a token by its hash: its text is a secret.
type place struct {
	sum    [sha256.Size]byte
	until  int64
	bearer Bearer
}

// belief is for how long a token is not checked again, in seconds. So a key
// that its issuer withdraws is not believed for longer, at a cost of one
// signature each time.
const belief = 30

// Judge returns whoever has the token with the given text at now, in unix
// seconds. The decision is AUTH_001 when the token has ended, invalid_token for
// any other fault, revocation included, and edge_not_ready as long as the edge
// cannot know.
func (t *Table) Judge(p *policy.Policy, env Env, text string, now int64) (Bearer, decision.Decision) {
	if t.ready = t.ready || env.Ready(); !t.ready {
		return Bearer{}, notReady
	}
	sum := sha256.Sum256([]byte(text))
	at := &t.places[sum[0]]
	if at.sum != sum || now >= at.until {
		b, d := judge(p, env, text, now)
		if !d.OK() {
			return b, d
		}
		*at = place{sum, min(b.Expires, now+belief), b}
	}
	if r, found := env.Record(keytable.TagOfToken(at.bearer.Credential)); found && r.Kind == keytable.KindToken {
		return Bearer{}, invalid
	}
	return at.bearer, decision.Pass
}
