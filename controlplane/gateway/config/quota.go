package config

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// setQuotas makes the quotas of requests those of plans, in the transaction that
// stores the document; the plans have their numbers. Accounts that are over, or
// no longer over, are found by the workers within a minute.
func setQuotas(ctx context.Context, tx pgx.Tx, plans []Plan) error {
	plans = wellNamed(plans)
	names, monthly := make([]string, len(plans)), make([]int64, len(plans))
	for i, p := range plans {
		names[i] = p.Name
		if p.Quota != nil {
			monthly[i] = p.Quota.Requests
		}
	}
	if _, err := tx.Exec(ctx, `DELETE FROM request_quotas`); err != nil {
		return fmt.Errorf("clear quotas: %w", err)
	}
	_, err := tx.Exec(ctx, `INSERT INTO request_quotas (plan, monthly)
		SELECT plan, monthly FROM unnest($1::text[], $2::bigint[]) AS p (plan, monthly) WHERE monthly > 0`, names, monthly)
	if err != nil {
		return fmt.Errorf("store quotas: %w", err)
	}
	return nil
}
