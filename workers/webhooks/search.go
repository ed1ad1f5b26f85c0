package webhooks

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// Found is a subscription that a search has found.
type Found struct{ ID, Account, URL string }

// Search finds the subscription of an identifier, which must be one of the account whose
// (empty: of anybody), and those of account that have text in their URL or description; ten
// at most. An account has a bounded number of them.
func (s *Service) Search(ctx context.Context, whose, account, text string) ([]Found, error) {
	rows, _ := s.DB.Query(ctx, `SELECT id, account_id, url FROM webhook_subscriptions WHERE id = $3 AND ($1 = '' OR account_id = $1)
		UNION (SELECT id, account_id, url FROM webhook_subscriptions WHERE account_id = $2 AND strpos(lower(url || ' ' || description), lower($3)) > 0 LIMIT 10)`, whose, account, text)
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Found])
	return list, storeError(err, "search subscriptions")
}
