package config

import (
	"context"

	"sluice.dev/sluice/controlplane/accounts"
	"sluice.dev/sluice/controlplane/postgres"
	"sluice.dev/sluice/controlplane/scopes"
)

// EnsureNumbers returns the numbers of d's scopes and plans, after it has given
// numbers to those that have none.
func EnsureNumbers(ctx context.Context, db postgres.DB, d Document) (Numbers, error) {
	bits, err := scopes.Ensure(ctx, db, d.ScopeNames()...)
	if err != nil {
		return Numbers{}, err
	}
	plans, err := accounts.EnsurePlans(ctx, db, d.PlanNames()...)
	if err != nil {
		return Numbers{}, err
	}
	return Numbers{Scopes: bits, Plans: plans}, nil
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
