package config

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/controlplane/accounts"
)

// setBudgets makes the token budgets those of plans, in the transaction that
// stores the document: the chat runtime reads them from their table. A plan that
// is in no document any more keeps none.
func setBudgets(ctx context.Context, tx pgx.Tx, plans []Plan) error {
	plans = wellNamed(plans)
	names := make([]string, len(plans))
	daily, monthly := make([]int64, len(plans)), make([]int64, len(plans))
	for i, p := range plans {
		names[i] = p.Name
		if p.Tokens != nil {
			daily[i], monthly[i] = p.Tokens.Daily, p.Tokens.Monthly
		}
	}
	if _, err := accounts.EnsurePlans(ctx, tx, names...); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `DELETE FROM token_budgets`); err != nil {
		return fmt.Errorf("clear token budgets: %w", err)
	}
	_, err := tx.Exec(ctx, `
		INSERT INTO token_budgets (plan, daily, monthly)
		SELECT plan, nullif(daily, 0), nullif(monthly, 0)
		FROM unnest($1::text[], $2::bigint[], $3::bigint[]) AS p (plan, daily, monthly)
		WHERE daily > 0 OR monthly > 0`, names, daily, monthly)
	if err != nil {
		return fmt.Errorf("store token budgets: %w", err)
	}
	return nil
}
