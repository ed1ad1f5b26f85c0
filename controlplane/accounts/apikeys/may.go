package apikeys

import (
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/filters/scopes"
	"sluice.dev/sluice/platform/apierror"
)

// everything is what an operator may grant.
var everything = []string{scopes.Admin}

// mayChange is the rule for whoever ends, renames, limits or rotates a key: by, the
// scopes that they hold, covers those of the key. Else AUTH_002, so that nobody
// takes from others, or is handed, what they were never given.
func mayChange(k Key, by []string) error {
	return covered(k.Scopes, by, "Whoever changes a key must hold its scopes: ask an owner or an admin of the account.")
}

// covered fails with AUTH_002 and message for the names that by does not cover.
func covered(names, by []string, message string) error {
	var details []decision.Detail
	for i, name := range names {
		if !scopes.Covers(by, name) {
			details = append(details, decision.Detail{Field: scopeField(i), Issue: "is wider than the scopes of the caller",
				Expected: "a scope that the caller has"})
		}
	}
	if len(details) == 0 {
		return nil
	}
	return &apierror.Error{Code: decision.ScopeMissing, Message: message, Details: details}
}
