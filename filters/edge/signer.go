package main

import (
	"strings"

	"sluice.dev/sluice/filters/credentials/keytable"
	"sluice.dev/sluice/filters/edgeapi"
	"sluice.dev/sluice/filters/host/wasmhost"
	"sluice.dev/sluice/filters/identityheader"
	"sluice.dev/sluice/filters/policy"
)

// signer makes identity headers and keeps the last ones, because the same few
// keys make most requests and an HMAC costs more than the rest of the filter.
type signer struct {
	secret    keytable.Record
	former    string // products that are told the first form, joined by commas
	asked     int64  // second at which both were read
	audiences map[string]*audience
	recent    [256]signed
}

// audience is a product that is told who calls.
type audience struct {
	product string
	number  uint64 // among the products of this signer
	secret  []byte // the product's own; nil: it is told the first form
}

// signed is a header made for a key, or for a token, as it was then.
type signed struct {
	audience *audience
	caller   keytable.Record
	token    string
	until    int64
	value    string
}

// secretAge is how long a secret is used before it is read again, in seconds.
const secretAge = 5

// callerHeader returns the value that tells a product of caller, with a token of the
// given id or, when that is empty, the key of its record, signed for at least half
// its lifetime more; "" when the edge has no secret or does not know the caller's
// plan.
func (s *signer) callerHeader(p *policy.Policy, product string, caller keytable.Record, token string, now int64) string {
	fresh := s.refresh(now) // values of before end when the secret, or the list, is another
	a := s.audiences[product]
	if a != nil {
		if slot := s.slot(a, caller.ID); slot.audience == a && slot.caller == caller && slot.token == token && now < slot.until {
			return slot.value
		}
	}
	plan, ok := p.Plan(caller.Plan)
	if !ok || !fresh {
		return ""
	}
	c := identityheader.Caller{
		Account: keytable.FormatID(keytable.AccountPrefix, caller.Account),
		Key:     credentialID(&caller, token),
		Plan:    plan.Name,
		Scopes:  p.ScopeNames(caller.Scopes),
	}
	a = s.audience(product)
	value := s.signFor(a, c, now)
	*s.slot(a, caller.ID) = signed{a, caller, token, now + identityheader.Lifetime/2, value}
	return value
}

// slot is where a value of a caller for a product is kept: the values of one
// caller for several products do not push each other out.
func (s *signer) slot(a *audience, caller uint64) *signed {
	const spread = 0x9e3779b97f4a7c15
	return &s.recent[(caller+a.number*spread)%uint64(len(s.recent))]
}

// audience returns the product with its secret. There are as many as products of
// the policy.
func (s *signer) audience(product string) *audience {
	a := s.audiences[product]
	if a == nil {
		a = &audience{product: product, number: uint64(len(s.audiences))}
		if !containsName(s.former, product) {
			a.secret = identityheader.ProductSecret(s.secret.Secret[:], product)
		}
		s.audiences[product] = a
	}
	return a
}

// containsName says whether a name is among names that are joined by commas.
func containsName(names, name string) bool {
	for n := range strings.SplitSeq(names, ",") {
		if n == name {
			return name != ""
		}
	}
	return false
}

func (s *signer) signFor(a *audience, c identityheader.Caller, now int64) string {
	if a.secret == nil {
		return identityheader.Sign(s.secret.Secret[:], c, now)
	}
	return identityheader.SignFor(a.secret, a.product, c, now)
}

// payerHeader returns the value that tells a product of a caller without a record, ""
// when the edge has no secret.
func (s *signer) payerHeader(product string, c identityheader.Caller, now int64) string {
	if !s.refresh(now) {
		return ""
	}
	return s.signFor(s.audience(product), c, now)
}

// edgeHeader returns the value by which the edge itself calls the control plane, "" when
// the edge has no secret. The control plane holds the platform's secret.
func (s *signer) edgeHeader(c identityheader.Caller, now int64) string {
	if !s.refresh(now) {
		return ""
	}
	return identityheader.Sign(s.secret.Secret[:], c, now)
}

// refresh reads the secret and the products of the first form, unless it did so
// just now. A list that is just arriving leaves the one before in force.
func (s *signer) refresh(now int64) bool {
	if now-s.asked < secretAge {
		return true
	}
	shared := wasmhost.Shared{}
	r, ok := shared.Record(keytable.TagOfSecret(edgeapi.IdentitySecret))
	if !ok || r.Kind != keytable.KindSecret {
		return false
	}
	former := s.former
	if list, found, whole := keytable.Join(keytable.TagOfSecret(identityheader.Former), shared.Record); whole || !found {
		former = string(list)
	}
	if s.audiences == nil || s.secret != r || s.former != former {
		s.recent = [len(s.recent)]signed{}
		s.audiences = map[string]*audience{}
	}
	s.secret, s.former, s.asked = r, former, now
	return true
}
