package schedules

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Found is a schedule that a search has found.
type Found struct{ ID, Account, Name string }

// searchedRows is among how many of an account's newest schedules names are looked for.
const searchedRows = 10_000

// Search finds the schedule of an identifier, which must be one of the account whose (empty:
// of anybody), and those among the newest ten thousand of account that have text in their
// name; ten at most.
func (s *Service) Search(ctx context.Context, whose, account, text string) ([]Found, error) {
	rows, _ := s.DB.Query(ctx, `SELECT id, account_id, name FROM schedules WHERE id = $3 AND ($1 = '' OR account_id = $1)
		UNION (SELECT id, account_id, name FROM (SELECT id, account_id, name FROM schedules WHERE account_id = $2 ORDER BY created_at DESC, id DESC LIMIT $4) s
			WHERE strpos(lower(name), lower($3)) > 0 LIMIT 10)`, whose, account, text, searchedRows)
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Found])
	if err != nil {
		return nil, fmt.Errorf("search schedules: %w", err)
	}
	return list, nil
}
