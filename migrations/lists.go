package migrations

import (
	"context"
	"fmt"

	pgxv5 "github.com/jackc/pgx/v5"
)

// lists are the indexes by which lists are read in the orders that the API offers. They are made
// on tables that may be large and are written all the time: outside of the numbered migrations,
// which run in transactions, and without keeping any writer waiting.
var lists = []struct{ name, on string }{
	{"accounts_created_idx", `accounts (created_at, id)`},
	{"accounts_name_idx", `accounts (lower(name) COLLATE "C", id)`},
	{"api_keys_name_idx", `api_keys (account_id, lower(name) COLLATE "C", id) WHERE revoked_at IS NULL`},
	{"audit_log_at_idx", `audit_log (at, id)`},
	{"audit_log_account_at_idx", `audit_log (account_id, at, id)`},
	{"media_streams_title_idx", `media_streams (owner, lower(title) COLLATE "C", id)`},
	{"media_assets_title_idx", `media_assets (owner, kind, lower(title) COLLATE "C", id)`},
}

// indexLists makes those that are not there. One whose making was cut off is invalid, and made
// anew.
func indexLists(ctx context.Context, conn *pgxv5.Conn) error {
	for _, i := range lists {
		var valid *bool
		err := conn.QueryRow(ctx, `SELECT (SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass($1))`, i.name).Scan(&valid)
		if err != nil {
			return fmt.Errorf("look for %s: %w", i.name, err)
		}
		if valid != nil && *valid {
			continue
		}
		if valid != nil {
			if _, err := conn.Exec(ctx, "DROP INDEX CONCURRENTLY IF EXISTS "+i.name); err != nil {
				return fmt.Errorf("drop %s: %w", i.name, err)
			}
		}
		if _, err := conn.Exec(ctx, "CREATE INDEX CONCURRENTLY "+i.name+" ON "+i.on); err != nil {
			return fmt.Errorf("make %s: %w", i.name, err)
		}
	}
	return nil
}
