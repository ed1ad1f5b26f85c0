package accounts

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/storage/postgres"
)

// Plans maps the name of each plan to its number in the edges' records.
type Plans map[string]uint16

// LoadPlans reads the plans.
func LoadPlans(ctx context.Context, db postgres.DB) (Plans, error) {
	p := Plans{}
	rows, _ := db.Query(ctx, `SELECT name, number FROM plans`)
	var name string
	var number int16
	_, err := pgx.ForEachRow(rows, []any{&name, &number}, func() error {
		p[name] = uint16(number)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("load plans: %w", err)
	}
	return p, nil
}

// EnsurePlans adds those of names that are missing and returns all plans. A plan
// that is there keeps its number. It fails with invalid_request for a name that
// is not lower-case letters, digits, '_' and '-'.
func EnsurePlans(ctx context.Context, db postgres.DB, names ...string) (Plans, error) {
	p, err := LoadPlans(ctx, db)
	if err != nil || p.hasAll(names) {
		return p, err
	}
	if err := postgres.InTx(ctx, db, func(tx pgx.Tx) error { return addPlans(ctx, tx, names) }); err != nil {
		return nil, err
	}
	return LoadPlans(ctx, db)
}

// hasAll reports whether nothing is to be added.
func (p Plans) hasAll(names []string) bool {
	for _, n := range names {
		if _, ok := p[n]; !ok {
			return false
		}
	}
	return true
}

// addPlans gives the missing ones of names the next numbers.
func addPlans(ctx context.Context, tx pgx.Tx, names []string) error {
	// Two that add at once would choose the same numbers.
	if _, err := tx.Exec(ctx, `LOCK TABLE plans IN SHARE ROW EXCLUSIVE MODE`); err != nil {
		return fmt.Errorf("lock plans: %w", err)
	}
	_, err := tx.Exec(ctx, `
		INSERT INTO plans (name, number)
		SELECT n.name, (SELECT coalesce(max(number), 0) FROM plans) + row_number() OVER (ORDER BY min(n.ord))
		FROM unnest($1::text[]) WITH ORDINALITY AS n (name, ord)
		WHERE NOT EXISTS (SELECT FROM plans p WHERE p.name = n.name) GROUP BY n.name`, names)
	if postgres.Constraint(err) == "plans_name_form" {
		return apierror.Invalid([]decision.Detail{{Field: "plans", Issue: "has a name that is not valid",
			Expected: "up to 40 lower-case letters, digits, _ and -, with a letter first"}})
	}
	if err != nil {
		return fmt.Errorf("add plans: %w", err)
	}
	return nil
}
