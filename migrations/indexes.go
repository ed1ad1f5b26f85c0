package migrations

import (
	"context"
	"fmt"
	"slices"

	pgxv5 "github.com/jackc/pgx/v5"
)

// unread are indexes that River makes for programs that look for jobs by what is in their
// arguments or metadata. Neither River's own statements nor ours do.
var unread = []string{"river_job_args_index", "river_job_metadata_index"}

// Unread reports whether an index of River's is one that is not there.
func Unread(index string) bool { return slices.Contains(unread, index) }

// dropUnread takes them away, and keeps no writer waiting. Of a drop that was cut off the
// index stays behind, invalid, until the next one.
func dropUnread(ctx context.Context, conn *pgxv5.Conn) error {
	for _, name := range unread {
		var there bool
		if err := conn.QueryRow(ctx, `SELECT to_regclass($1) IS NOT NULL`, name).Scan(&there); err != nil {
			return fmt.Errorf("look for %s: %w", name, err)
		}
		if !there {
			continue
		}
		if _, err := conn.Exec(ctx, "DROP INDEX CONCURRENTLY IF EXISTS "+name); err != nil {
			return fmt.Errorf("drop %s: %w", name, err)
		}
	}
	return nil
}
