package delivery

import (
	"errors"
	"slices"

	"github.com/jackc/pgx/v5/pgconn"
)

// transientClasses are the classes of SQLSTATE that say nothing against the
// statement: connection, rollback for concurrency, resources, shutdown.
var transientClasses = []string{"08", "40", "53", "57"}

// notTransient says that the database has looked at a statement and refused
// it: repeating it would not help.
func notTransient(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && !slices.Contains(transientClasses, pg.Code[:2])
}
