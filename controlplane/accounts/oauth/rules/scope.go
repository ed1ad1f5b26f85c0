package rules

import (
	"slices"
	"strings"

	"sluice.dev/sluice/filters/scopes"
)

// maxScopes bounds the scopes of one request.
const maxScopes = 128

// Scopes reads a space-separated list, each scope once, in alphabetical order.
// It fails with invalid_scope when one has not the form of a scope, and for `*`,
// which no application gets.
func Scopes(text string) ([]string, *Error) {
	list := strings.Fields(text)
	if len(list) > maxScopes {
		return nil, refuse(InvalidScope, "There are too many scopes.")
	}
	for _, s := range list {
		if !scopes.Valid(s) || s == scopes.Admin {
			return nil, refuse(InvalidScope, "A scope is not known, or not for applications.")
		}
	}
	slices.Sort(list)
	return slices.Compact(list), nil
}

// Within returns those of wanted that held covers, and whether that is all of
// them.
func Within(held, wanted []string) (list []string, all bool) {
	for _, w := range wanted {
		if scopes.Covers(held, w) {
			list = append(list, w)
		}
	}
	return list, len(list) == len(wanted)
}

// Narrow returns the scopes that a refresh asks for, which must be within those
// held; "" asks for all of these. It fails with invalid_scope.
//
// It takes time linear in text for each of held, and memory linear in text.
func Narrow(held []string, text string) ([]string, *Error) {
	wanted, bad := Scopes(text)
	if bad != nil || len(wanted) == 0 {
		return held, bad
	}
	if _, all := Within(held, wanted); !all {
		return nil, refuse(InvalidScope, "A scope is wider than what was granted.")
	}
	return wanted, nil
}
