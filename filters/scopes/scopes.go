// Package scopes decides whether what a caller was granted covers what a route
// needs (contract 3.2). Scopes are `resource:action`; `resource:*` covers every
// action of a resource, and `*` everything.
//
// At the edge a scope is a bit. The control plane gives each route the bits that
// grant it: of the scope itself, of its resource's wildcard, and of `*`. So the
// check is one AND, and a wildcard covers scopes that are added after the key
// was made.
package scopes

import (
	"strings"

	"sluice.dev/sluice/filters/credentials/keytable"
	"sluice.dev/sluice/filters/decision"
)

// Admin is the scope that covers everything.
const Admin = "*"

// Decide lets the caller pass if granted has one of the bits in needed, or if
// no scope is needed. scope is the name for the error's details.
func Decide(granted, needed keytable.Scopes, scope string) decision.Decision {
	if scope == "" || granted.Meets(needed) {
		return decision.Pass
	}
	return decision.Decision{Code: decision.ScopeMissing,
		Detail: decision.Detail{Field: "scope", Issue: "is not granted to this credential", Expected: scope}}
}

// Valid reports whether s has the form of a scope: `*`, or resource and action
// of lower-case letters, digits and `_`, where the action may be `*`.
func Valid(s string) bool {
	if s == Admin {
		return true
	}
	resource, action, ok := strings.Cut(s, ":")
	return ok && len(s) <= 64 && word(resource) && (action == "*" || word(action))
}

// Grantors returns the scopes that cover s: s itself, its resource's wildcard,
// and Admin.
func Grantors(s string) []string {
	resource, action, ok := strings.Cut(s, ":")
	if !ok {
		return []string{Admin}
	}
	if action == "*" {
		return []string{Admin, s}
	}
	return []string{Admin, resource + ":*", s}
}

// Covers reports whether the scopes in held cover s. It is what Decide does with
// bits, for callers that hold names.
func Covers(held []string, s string) bool {
	for _, g := range Grantors(s) {
		for _, h := range held {
			if h == g {
				return true
			}
		}
	}
	return false
}

func word(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' {
			return false
		}
	}
	return s != ""
}
