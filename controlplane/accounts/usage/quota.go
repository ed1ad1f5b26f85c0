package usage

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/controlplane/accounts/apikeys"
	"sluice.dev/sluice/platform/storage/postgres"
)

// overQuota is true of an account a whose plan allows no more requests in the
// month $1.
const overQuota = `coalesce((SELECT sum(t.requests) >= q.monthly FROM usage_totals t, request_quotas q
	WHERE t.account_id = a.id AND t.month = $1 AND q.plan = a.plan GROUP BY q.monthly), false)`

// RefreshTx makes the mark of an account that its quota is used up what it is
// now, after a change of its plan. The caller holds the account's row, and sends
// its records to the edges.
func (s Store) RefreshTx(ctx context.Context, tx pgx.Tx, account string) error {
	_, err := tx.Exec(ctx, `UPDATE accounts a SET quota_used = `+overQuota+` WHERE id = $2`, monthOf(s.now()), account)
	if err != nil {
		return fmt.Errorf("judge quota: %w", err)
	}
	return nil
}

// Enforce marks those of the accounts that have used up their quota, and tells
// edges. It returns how many those were.
func (s Store) Enforce(ctx context.Context, accounts []string) (int, error) {
	return s.reconcile(ctx, `a.id = ANY($2)`, accounts)
}

// Reconcile does so for every account, and lifts the marks of those that have
// quota again: in a new month, or under a new configuration.
func (s Store) Reconcile(ctx context.Context) (int, error) {
	return s.reconcile(ctx, `(a.quota_used OR a.id IN (SELECT account_id FROM usage_totals WHERE month = $1
		AND EXISTS (SELECT FROM request_quotas)) AND $2::text[] IS NULL)`, nil)
}

// reconcile changes the marks that are wrong, of the accounts that meet where.
func (s Store) reconcile(ctx context.Context, where string, accounts []string) (int, error) {
	rows, _ := s.DB.Query(ctx, `SELECT a.id FROM accounts a WHERE `+where+` AND a.quota_used <> `+overQuota+` ORDER BY a.id`,
		monthOf(s.now()), accounts)
	wrong, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return 0, fmt.Errorf("find used quotas: %w", err)
	}
	for n, account := range wrong {
		err := postgres.InTx(ctx, s.DB, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, `SELECT FROM accounts WHERE id = $1 FOR UPDATE`, account); err != nil {
				return fmt.Errorf("lock account: %w", err)
			}
			if err := s.RefreshTx(ctx, tx, account); err != nil {
				return err
			}
			return apikeys.EmitAccountTx(ctx, tx, account)
		})
		if err != nil {
			return n, err
		}
	}
	return len(wrong), nil
}

// Month is what an account has used of its quota in the present month of UTC.
type Month struct {
	Start    string `json:"start"`    // its first day
	Requests int64  `json:"requests"` // that edges let through
	Limit    *int64 `json:"limit"`    // of the plan; null: none
}

// Month returns that of an account.
func (s Store) Month(ctx context.Context, account string) (Month, error) {
	start := monthOf(s.now())
	m := Month{Start: start.Format("2006-01-02")}
	err := s.DB.QueryRow(ctx, `
		SELECT (SELECT coalesce(sum(requests), 0)::bigint FROM usage_totals WHERE account_id = a.id AND month = $2),
			(SELECT monthly FROM request_quotas WHERE plan = a.plan)
		FROM accounts a WHERE a.id = $1`, account, start).Scan(&m.Requests, &m.Limit)
	return m, postgres.NotFound(err, "read the month's requests")
}
