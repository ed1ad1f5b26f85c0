package accounts

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// Names tells by what people know things: keys and accounts by their names, people and their
// sessions by e-mail addresses. What has no name, or is there no more, is left out. The cost
// is linear in ids.
func (s Store) Names(ctx context.Context, ids []string) (map[string]string, error) {
	names := map[string]string{}
	rows, _ := s.DB.Query(ctx, `
		SELECT id, name FROM api_keys WHERE id = ANY ($1)
		UNION ALL SELECT id, name FROM accounts WHERE id = ANY ($1)
		UNION ALL SELECT id, email FROM users WHERE id = ANY ($1)
		UNION ALL SELECT s.id, u.email FROM sessions s JOIN users u ON u.id = s.user_id WHERE s.id = ANY ($1)`, ids)
	var id, name string
	_, err := pgx.ForEachRow(rows, []any{&id, &name}, func() error { names[id] = name; return nil })
	if err != nil {
		return nil, fmt.Errorf("read names: %w", err)
	}
	return names, nil
}

// mostActors bounds what Actors returns.
const mostActors = 1000

// Actors are the identifiers under which changes are recorded of whoever has a name: a
// person's and their sessions' of an e-mail address, and the keys of a name. They are those
// of one account; without one, of all people, and of no keys. Nobody: an empty list.
func (s Store) Actors(ctx context.Context, account, name string) ([]string, error) {
	rows, _ := s.DB.Query(ctx, `
		WITH people AS (SELECT id FROM users WHERE email = $2 AND (account_id = $1 OR $1 = '' AND removed_at IS NULL AND password_hash IS NOT NULL))
		SELECT id FROM people
		UNION ALL (SELECT s.id FROM sessions s JOIN people p ON p.id = s.user_id ORDER BY s.created_at DESC LIMIT $4)
		UNION ALL (SELECT id FROM api_keys WHERE account_id = $1 AND name = $3 LIMIT $4)`, account, strings.ToLower(name), name, mostActors)
	list, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("find who is called so: %w", err)
	}
	if list == nil {
		list = []string{}
	}
	return list, nil
}

// Found is something that a search has found.
type Found struct{ ID, Account, Name string }

// searchedRows is in how many of an account's newest rows names are looked for.
const searchedRows = 10_000

// Search finds accounts, or keys and people of an account, by an identifier or by a part of
// a name or an e-mail address, ten of each at most. Names of accounts are looked for among
// the newest ten thousand only. Whose is the account that identifiers must belong to; empty:
// any, and accounts are found.
func (s Store) Search(ctx context.Context, whose, account, text string) (accounts, keys, people []Found, err error) {
	of := func(err *error, sql string, args ...any) []Found {
		if *err != nil {
			return nil
		}
		rows, _ := s.DB.Query(ctx, sql, args...)
		list, failed := pgx.CollectRows(rows, pgx.RowToStructByPos[Found])
		if failed != nil {
			*err = fmt.Errorf("search: %w", failed)
		}
		return list
	}
	if whose == "" {
		accounts = of(&err, `SELECT id, id, name FROM (SELECT id, name FROM accounts WHERE id = $1
			UNION SELECT id, name FROM (SELECT id, name FROM accounts ORDER BY created_at DESC LIMIT $2) a WHERE strpos(lower(name), lower($1)) > 0) a LIMIT 10`, text, searchedRows)
	}
	keys = of(&err, `SELECT id, account_id, name FROM api_keys WHERE id = $3 AND ($1 = '' OR account_id = $1) AND revoked_at IS NULL
		UNION (SELECT id, account_id, name FROM (SELECT * FROM api_keys WHERE account_id = $2 AND revoked_at IS NULL ORDER BY created_at DESC, id LIMIT $4) k
			WHERE strpos(lower(name), lower($3)) > 0 LIMIT 10)`, whose, account, text, searchedRows)
	people = of(&err, `SELECT id, account_id, email FROM users WHERE id = $3 AND ($1 = '' OR account_id = $1) AND removed_at IS NULL
		UNION (SELECT id, account_id, email FROM (SELECT * FROM users WHERE account_id = $2 AND removed_at IS NULL LIMIT $4) u WHERE strpos(email, lower($3)) > 0 LIMIT 10)`,
		whose, account, text, searchedRows)
	return accounts, keys, people, err
}
