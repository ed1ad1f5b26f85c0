package config

import (
	"context"
	"slices"

	"sluice.dev/sluice/controlplane/accounts"
	"sluice.dev/sluice/controlplane/accounts/apikeys"
	"sluice.dev/sluice/controlplane/accounts/scoperegistry"
	"sluice.dev/sluice/filters/scopes"
	"sluice.dev/sluice/platform/storage/postgres"
)

// EnsureNumbers returns the numbers of d's scopes and plans, after it has given
// numbers to those that have none. Names that cannot be one get none.
func EnsureNumbers(ctx context.Context, db postgres.DB, d Document) (Numbers, error) {
	d.Scopes = slices.DeleteFunc(slices.Clone(d.Scopes), func(s string) bool { return !scopes.Valid(s) })
	d.Plans = wellNamed(d.Plans)
	bits, err := scoperegistry.Ensure(ctx, db, d.ScopeNames()...)
	if err != nil {
		return Numbers{}, err
	}
	plans, err := accounts.EnsurePlans(ctx, db, d.PlanNames()...)
	if err != nil {
		return Numbers{}, err
	}
	waiting, err := WaitingScopes(ctx, db)
	return Numbers{Scopes: bits, Plans: plans, Waiting: waiting}, err
}

// WaitingScopes are those that routes do not ask for yet: see Numbers.Waiting.
func WaitingScopes(ctx context.Context, db postgres.DB) ([]string, error) {
	asked, err := apikeys.ChatScopesAsked(ctx, db)
	if err != nil || asked {
		return nil, err
	}
	return apikeys.ChatScopes, nil
}

// wellNamed returns those plans whose names can be one.
func wellNamed(plans []Plan) []Plan {
	return slices.DeleteFunc(slices.Clone(plans), func(p Plan) bool { return !planForm.MatchString(p.Name) })
}

// Cover reports whether every scope and plan of d has a number in n.
func (n Numbers) Cover(d Document) bool {
	return !slices.ContainsFunc(d.ScopeNames(), func(s string) bool { _, ok := n.Scopes[s]; return !ok }) &&
		!slices.ContainsFunc(d.PlanNames(), func(p string) bool { _, ok := n.Plans[p]; return !ok })
}

// ProvisionalNumbers gives d numbers of no meaning, to compile it with when it
// is only looked at.
func ProvisionalNumbers(d Document) Numbers {
	n := Numbers{Scopes: map[string]int{}, Plans: map[string]uint16{}}
	for i, s := range d.ScopeNames() {
		n.Scopes[s] = i
	}
	for i, p := range d.PlanNames() {
		n.Plans[p] = uint16(i + 1)
	}
	return n
}
