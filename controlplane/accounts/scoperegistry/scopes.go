// Package scoperegistry is the registry of scopes: which names there are, and which
// bit each has in the records that edges read. What a scope covers is decided
// by filters/scopes.
package scoperegistry

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/filters/credentials/keytable"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/filters/scopes"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/storage/postgres"
)

// Most is how many scopes there can be: a record has that many bits.
const Most = 128

// Registry maps the name of each scope to its bit.
type Registry map[string]int

// Load reads the registry.
func Load(ctx context.Context, db postgres.DB) (Registry, error) {
	r := Registry{}
	rows, _ := db.Query(ctx, `SELECT name, bit FROM scopes`)
	var name string
	var bit int
	_, err := pgx.ForEachRow(rows, []any{&name, &bit}, func() error {
		r[name] = bit
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("load scopes: %w", err)
	}
	return r, nil
}

// LoadOffered reads the registry, and those of it that the document in force names: what
// may be granted. The others keep their bits, for what was granted them before.
func LoadOffered(ctx context.Context, db postgres.DB) (known, offered Registry, err error) {
	known, offered = Registry{}, Registry{}
	rows, _ := db.Query(ctx, `SELECT name, bit, offered FROM scopes`)
	var name string
	var bit int
	var grant bool
	_, err = pgx.ForEachRow(rows, []any{&name, &bit, &grant}, func() error {
		known[name] = bit
		if grant {
			offered[name] = bit
		}
		return nil
	})
	if err != nil {
		return nil, nil, fmt.Errorf("load scopes: %w", err)
	}
	return known, offered, nil
}

// OfferTx has exactly those of names granted from now on that the registry knows.
func OfferTx(ctx context.Context, tx pgx.Tx, names []string) error {
	if _, err := tx.Exec(ctx, `UPDATE scopes SET offered = name = ANY ($1) WHERE offered <> (name = ANY ($1))`, names); err != nil {
		return fmt.Errorf("offer scopes: %w", err)
	}
	return nil
}

// Ensure adds those of names that the registry lacks, together with their
// resources' wildcards, and returns it. A scope that is there keeps its bit. It
// fails with invalid_request for names that have not the form of a scope, and
// with conflict when there would be more than Most.
func Ensure(ctx context.Context, db postgres.DB, names ...string) (Registry, error) {
	if err := checkForm(names); err != nil {
		return nil, err
	}
	r, err := Load(ctx, db)
	if err != nil {
		return nil, err
	}
	missing := r.missing(names)
	if len(missing) == 0 {
		return r, nil
	}
	if err := postgres.InTx(ctx, db, func(tx pgx.Tx) error { return add(ctx, tx, missing) }); err != nil {
		return nil, err
	}
	return Load(ctx, db)
}

// checkForm refuses names that are no scopes, all at once.
func checkForm(names []string) error {
	var details []decision.Detail
	for i, n := range names {
		if !scopes.Valid(n) {
			details = append(details, decision.Detail{Field: fmt.Sprintf("scopes[%d]", i),
				Issue: "is not a scope: " + n, Expected: "resource:action, resource:* or *"})
		}
	}
	return apierror.Invalid(details)
}

// missing returns the names, and their wildcards, that are not in r, each once.
func (r Registry) missing(names []string) (list []string) {
	for _, n := range names {
		for _, g := range scopes.Grantors(n) {
			if _, ok := r[g]; !ok && !slices.Contains(list, g) {
				list = append(list, g)
			}
		}
	}
	return list
}

// add gives names the next bits, in their order.
func add(ctx context.Context, tx pgx.Tx, names []string) error {
	// Two that add at once would choose the same bits; readers are not held up.
	if _, err := tx.Exec(ctx, `LOCK TABLE scopes IN SHARE ROW EXCLUSIVE MODE`); err != nil {
		return fmt.Errorf("lock scopes: %w", err)
	}
	_, err := tx.Exec(ctx, `
		INSERT INTO scopes (name, bit)
		SELECT n.name, (SELECT coalesce(max(bit), -1) FROM scopes) + row_number() OVER (ORDER BY n.ord)
		FROM unnest($1::text[]) WITH ORDINALITY AS n (name, ord)
		WHERE NOT EXISTS (SELECT FROM scopes s WHERE s.name = n.name)`, names)
	if postgres.Constraint(err) == "scopes_bit_range" {
		return apierror.Errorf(decision.Conflict, "There can be no more than %d scopes, wildcards included.", Most)
	}
	if err != nil {
		return fmt.Errorf("add scopes: %w", err)
	}
	return nil
}

// Bits returns the bits of names; a name that the registry does not know has
// none, and is returned in unknown.
func (r Registry) Bits(names []string) (set keytable.Scopes, unknown []string) {
	for _, n := range names {
		bit, ok := r[n]
		if !ok {
			unknown = append(unknown, n)
			continue
		}
		set = set.With(bit)
	}
	return set, unknown
}

// Plain returns the scopes that are no wildcards, in alphabetical order.
func (r Registry) Plain() (list []string) {
	for n := range r {
		if !strings.HasSuffix(n, "*") {
			list = append(list, n)
		}
	}
	slices.Sort(list)
	return list
}
