// Package apikeys creates, lists, changes and revokes API keys. Every change
// reaches the edges through the key feed, in the transaction that makes it.
package apikeys

import (
	"fmt"
	"net/netip"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"sluice.dev/sluice/controlplane/accounts/scoperegistry"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
)

// Rules for what a caller may ask for.
const (
	DefaultDays = 90   // lifetime when the request names none
	MaxDays     = 3650 // longest lifetime that has an end
	maxName     = 200  // characters
	// MaxKeys is how many keys an account may make by itself: every edge holds
	// them all in memory.
	MaxKeys = 10_000
	// MaxPerMinute is the largest limit of a key.
	MaxPerMinute = 1_000_000_000
)

// Key is an API key (contract 2.2). Its secret text is not part of it.
type Key struct {
	ID        string     `json:"id"`
	Account   string     `json:"-"`
	Name      string     `json:"name"`
	Scopes    []string   `json:"scopes"`
	ExpiresAt *time.Time `json:"expires_at"` // UTC; nil: never
	CreatedAt time.Time  `json:"created_at"` // UTC
	// PerMinute bounds the key's requests in any 60 seconds, besides its
	// account's limits; nil: it has no limit of its own.
	PerMinute *uint32 `json:"rate_limit_per_minute,omitempty"`
	// LastUsedAt is the last use that edges have told of, to the minute; nil: none.
	LastUsedAt *time.Time  `json:"last_used_at"` // UTC
	LastUsedIP *netip.Addr `json:"last_used_ip"` // from where; nil: not known
	// ImportedFrom names the system that issued the key, and ExternalID is its id
	// there; nil: the key is ours, or has none.
	ImportedFrom *string `json:"imported_from,omitempty"`
	ExternalID   *string `json:"external_id,omitempty"`
	// Certificate is by what the client certificates are known that are let in, such as
	// uri:spiffe://acme/ci; nil: the key is a text.
	Certificate *string `json:"certificate,omitempty"`

	chatBefore bool // made before chat asked for a scope
}

// Created is a new key with its text, which is shown this once.
type Created struct {
	ID   string `json:"id"`
	Text string `json:"key,omitempty"` // empty: a certificate stands in its place
	Key
}

// Spec says what key to create.
type Spec struct {
	Account   string
	Name      string
	Scopes    []string
	ExpiresAt *time.Time // nil: never
	PerMinute *uint32    // 1 to MaxPerMinute; nil: no limit but the account's
	// Certificate is what lets in, in the place of a text; nil: a text.
	Certificate *Certificate
	// Creator holds the scopes of whoever creates the key: it cannot have more.
	Creator []string
	// Most is how many keys the account may have already; 0: any number.
	Most int

	faults []decision.Detail // found while the request was read
}

// check returns every fault of s at once. A scope that is not offered is
// invalid_request; one that the creator lacks is AUTH_002.
func (s Spec) check(offered scoperegistry.Registry, now time.Time) error {
	details := append(append(s.faults, checkName(s.Name)...), s.checkCertificate()...)
	if len(s.Scopes) == 0 {
		details = append(details, decision.Detail{Field: "scopes", Issue: "is required", Expected: "array with at least one scope"})
	}
	if len(s.Scopes) > scoperegistry.Most {
		details = append(details, decision.Detail{Field: "scopes", Issue: "has too many items", Expected: fmt.Sprintf("at most %d", scoperegistry.Most)})
		return apierror.Invalid(details)
	}
	for i, name := range s.Scopes {
		if _, ok := offered[name]; !ok {
			details = append(details, decision.Detail{Field: scopeField(i), Issue: "is not a known scope", Expected: "a scope such as streams:read"})
		}
	}
	if s.ExpiresAt != nil && !s.ExpiresAt.After(now) {
		details = append(details, decision.Detail{Field: "expires_at", Issue: "is in the past", Expected: "a timestamp in the future"})
	}
	if err := apierror.Invalid(details); err != nil {
		return err
	}
	return s.checkWidth()
}

// checkWidth refuses scopes that the creator does not hold.
func (s Spec) checkWidth() error {
	return covered(s.Scopes, s.Creator, "A key cannot have more scopes than its creator.")
}

// scopeField names the i'th scope in an error's details.
func scopeField(i int) string { return fmt.Sprintf("scopes[%d]", i) }

// checkName wants 1 to 200 printable characters.
func checkName(name string) []decision.Detail {
	bad := func(issue string) []decision.Detail {
		return []decision.Detail{{Field: "name", Issue: issue, Expected: fmt.Sprintf("1 to %d printable characters", maxName)}}
	}
	switch {
	case strings.TrimSpace(name) == "":
		return bad("is required")
	case utf8.RuneCountInString(name) > maxName:
		return bad("is too long")
	case !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }):
		return bad("has characters that cannot be printed")
	}
	return nil
}

// usable reports whether the key works at now.
func (k Key) usable(now time.Time) bool { return k.ExpiresAt == nil || now.Before(*k.ExpiresAt) }
