package token

import (
	"crypto/sha256"

	"sluice.dev/sluice/filters/credentials/keytable"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/filters/policy"
)

// Table remembers the tokens that were found good, in a fixed number of places.
// The zero Table is empty. It belongs to one policy and one thread.
type Table struct {
	ready  bool
	places [1 << placeBits]place
}

const placeBits = 8

// place holds a token by its hash: its text is a secret.
type place struct {
	end    uint64 // of the text: its last eight bytes, a part of the signature
	size   int    // of the text; 0: the place is free
	sum    [sha256.Size]byte
	until  int64
	bearer Bearer
}

// Found is a token's text, and where the table has room for it.
type Found struct {
	// Proven says that the table has found the token good before, however long
	// ago. One that has ended since, or whose key is gone, is so once more at most.
	Proven bool
	text   string
	at     *place
}

// Find looks a token up. One that is not there costs nothing: its text is hashed
// only if one of the same length and end is.
func (t *Table) Find(text string) Found {
	end := endOf(text)
	at := &t.places[end*0x9e3779b97f4a7c15>>(64-placeBits)]
	proven := at.size == len(text) && at.end == end && at.sum == sha256.Sum256([]byte(text))
	return Found{proven, text, at}
}

// endOf is the last eight bytes of text.
func endOf(text string) (end uint64) {
	for i := max(0, len(text)-8); i < len(text); i++ {
		end = end<<8 | uint64(text[i])
	}
	return end
}

// belief is for how long a token is not checked again, in seconds. So a key
// that its issuer withdraws is not believed for longer, at a cost of one
// signature each time.
const belief = 30

// Check returns whoever has the token f, just found, at now in unix seconds. The
// decision is AUTH_001 when the token has ended, invalid_token for
// any other fault, revocation included, and edge_not_ready as long as the edge
// cannot know.
func (t *Table) Check(p *policy.Policy, env Env, f Found, now int64) (Bearer, decision.Decision) {
	if t.ready = t.ready || env.Ready(); !t.ready {
		return Bearer{}, notReady
	}
	if !f.Proven || now >= f.at.until {
		b, d := check(p, env, f.text, now)
		if !d.OK() {
			if f.Proven && d.Code != decision.EdgeNotReady {
				*f.at = place{}
			}
			return b, d
		}
		*f.at = place{endOf(f.text), len(f.text), sha256.Sum256([]byte(f.text)), min(b.Expires, now+belief), b}
	}
	if r, found := env.Record(keytable.TagOfToken(f.at.bearer.Credential)); found && r.Kind == keytable.KindToken {
		return Bearer{}, invalid
	}
	return f.at.bearer, decision.Pass
}
