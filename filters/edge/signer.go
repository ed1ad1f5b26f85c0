package main

import (
	"sluice.dev/sluice/filters/identity"
	"sluice.dev/sluice/filters/keytable"
	"sluice.dev/sluice/filters/policy"
	"sluice.dev/sluice/filters/wasmhost"
)

// IdentitySecret is the name of the secret that signs identity headers.
const IdentitySecret = "identity"

// signer makes identity headers and keeps the last ones, because the same few
// keys make most requests and an HMAC costs more than the rest of the filter.
type signer struct {
	secret keytable.Record
	asked  int64 // second at which secret was read
	recent [256]signed
}

// signed is a header made for a key, or for a token, as it was then.
type signed struct {
	caller keytable.Record
	token  string
	until  int64
	value  string
}

// secretAge is how long a secret is used before it is read again, in seconds.
const secretAge = 5

// header returns the value for caller, with a token of the given id or, when
// that is empty, the key of its record, signed for at least half its lifetime
// more; "" when the edge has no secret or does not know the caller's plan.
func (s *signer) header(p *policy.Policy, caller keytable.Record, token string, now int64) string {
	slot := &s.recent[caller.ID%uint64(len(s.recent))]
	if slot.caller == caller && slot.token == token && now < slot.until {
		return slot.value
	}
	plan, ok := p.Plan(caller.Plan)
	if !ok || !s.refresh(now) {
		return ""
	}
	c := identity.Caller{
		Account: keytable.FormatID(keytable.AccountPrefix, caller.Account),
		Key:     credential(&caller, token),
		Plan:    plan.Name,
		Scopes:  p.ScopeNames(caller.Scopes),
	}
	*slot = signed{caller, token, now + identity.Lifetime/2, identity.Sign(s.secret.Secret[:], c, now)}
	return slot.value
}

// sign returns the value for a caller without a record, "" when the edge has no
// secret.
func (s *signer) sign(c identity.Caller, now int64) string {
	if !s.refresh(now) {
		return ""
	}
	return identity.Sign(s.secret.Secret[:], c, now)
}

func (s *signer) refresh(now int64) bool {
	if now-s.asked < secretAge {
		return true
	}
	r, ok := wasmhost.Shared{}.Record(keytable.TagOfSecret(IdentitySecret))
	if !ok || r.Kind != keytable.KindSecret {
		return false
	}
	if s.secret != r {
		s.recent = [len(s.recent)]signed{}
	}
	s.secret, s.asked = r, now
	return true
}
