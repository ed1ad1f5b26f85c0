package phone

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/paging"
	"sluice.dev/sluice/platform/storage/postgres"
)

const lineColumns = `id, owner, account, plan, stream_id, name, number, auth, secret, password_hint, allowlist, max_duration, created_at, updated_at`

// insertLine stores a new line, unless its owner has MaxLines. A lock keeps two at once
// from passing the bound.
func insertLine(ctx context.Context, tx pgx.Tx, l Line) error {
	if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock(hashtextextended('phone_lines ' || $1, 0))`, l.Owner); err != nil {
		return fmt.Errorf("lock owner's lines: %w", err)
	}
	var n int
	if err := tx.QueryRow(ctx, `SELECT count(*) FROM phone_lines WHERE owner = $1`, l.Owner).Scan(&n); err != nil {
		return fmt.Errorf("count lines: %w", err)
	}
	if n >= MaxLines {
		return apierror.Errorf(decision.Conflict, "There are %d lines already: delete one first.", n)
	}
	_, err := tx.Exec(ctx, `INSERT INTO phone_lines (`+lineColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)`,
		l.ID, l.Owner, l.Account, l.Plan, l.StreamID, l.Name, l.Number, l.Auth, l.Secret, l.PasswordHint, l.Allowlist, l.MaxDuration, l.CreatedAt, l.UpdatedAt)
	return taken(err)
}

// updateLine writes what its owner may change of l: not its password, which another
// request may be changing. A line that is gone meanwhile is not_found.
func updateLine(ctx context.Context, db postgres.DB, l Line) error {
	return updated(db.Exec(ctx, `UPDATE phone_lines SET stream_id = $2, name = $3, number = $4, allowlist = $5, max_duration = $6, updated_at = $7 WHERE id = $1`,
		l.ID, l.StreamID, l.Name, l.Number, l.Allowlist, l.MaxDuration, l.UpdatedAt))
}

// updatePassword writes the password of l, and nothing else.
func updatePassword(ctx context.Context, db postgres.DB, l Line) error {
	return updated(db.Exec(ctx, `UPDATE phone_lines SET secret = $2, password_hint = $3, updated_at = $4 WHERE id = $1`, l.ID, l.Secret, l.PasswordHint, l.UpdatedAt))
}

// updated says what an update of a line's row has come to.
func updated(tag pgconn.CommandTag, err error) error {
	if err == nil && tag.RowsAffected() == 0 {
		return &apierror.Error{Code: decision.NotFound}
	}
	return taken(err)
}

// taken says what an error of a line's row means to its owner.
func taken(err error) error {
	switch {
	case err == nil:
		return nil
	case postgres.Constraint(err) == "phone_lines_number_key":
		return apierror.Errorf(decision.Conflict, "The number belongs to another line.")
	case postgres.Constraint(err) == "phone_lines_stream_id_fkey":
		return apierror.Errorf(decision.Conflict, "The stream was deleted meanwhile.")
	}
	return fmt.Errorf("store line: %w", err)
}

// lineOf reads one line of owner, or not_found.
func lineOf(ctx context.Context, db postgres.DB, owner, id string) (Line, error) {
	rows, _ := db.Query(ctx, `SELECT `+lineColumns+` FROM phone_lines WHERE owner = $1 AND id = $2`, owner, id)
	return oneLine(rows)
}

// LineByUser reads the line that the user part of a SIP address names, by its id or its
// number, of any owner, or not_found.
func (v Service) LineByUser(ctx context.Context, user string) (Line, error) {
	rows, _ := v.DB.Query(ctx, `SELECT `+lineColumns+` FROM phone_lines WHERE id = $1 OR number = $1 AND number <> ''`, user)
	return oneLine(rows)
}

func oneLine(rows pgx.Rows) (Line, error) {
	l, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[Line])
	return l, postgres.NotFound(err, "read line")
}

// deleteLine removes a line of owner, or fails with not_found. Its calls stay in the
// list; one under way goes on.
func deleteLine(ctx context.Context, db postgres.DB, owner, id string) error {
	tag, err := db.Exec(ctx, `DELETE FROM phone_lines WHERE owner = $1 AND id = $2`, owner, id)
	if err != nil {
		return fmt.Errorf("delete line: %w", err)
	}
	if tag.RowsAffected() == 0 {
		return &apierror.Error{Code: decision.NotFound}
	}
	return nil
}

// lineList and callList are how lines and calls are listed: newest first.
var (
	lineList = paging.Table[Line]{
		Columns: lineColumns, From: "phone_lines", Scan: pgx.RowToStructByName[Line],
		Sorts: []paging.Sort[Line]{paging.Time("created_at", "created_at", func(l Line) time.Time { return l.CreatedAt })},
		ID:    "id", IDOf: func(l Line) string { return l.ID },
		Created: "created_at",
	}
	callList = paging.Table[Call]{
		Columns: callColumns, From: "phone_calls", Scan: pgx.RowToStructByName[Call],
		Sorts: []paging.Sort[Call]{paging.Time("created_at", "created_at", func(c Call) time.Time { return c.CreatedAt })},
		ID:    "id", IDOf: func(c Call) string { return c.ID },
		Created: "created_at",
	}
)

// listLines reads a page of owner's lines.
func listLines(ctx context.Context, db postgres.DB, owner, stream string, p paging.Page) (paging.List[Line], error) {
	return lineList.Read(ctx, db, p, `owner = $1 AND ($2 = '' OR stream_id = $2)`, owner, stream)
}

const callColumns = `id, owner, account, line_id, stream_id, direction, state, remote, codec, reason, hangup, created_at, answered_at, ended_at`

// insertCall stores a new call. It fails with errBusy where the stream has one.
func insertCall(ctx context.Context, tx pgx.Tx, c Call) error {
	_, err := tx.Exec(ctx, `INSERT INTO phone_calls (`+callColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)`,
		c.ID, c.Owner, c.Account, c.LineID, c.StreamID, c.Direction, c.State, c.Remote, c.Codec, c.Reason, c.Hangup, c.CreatedAt, c.AnsweredAt, c.EndedAt)
	if postgres.Constraint(err) == "phone_calls_open_key" {
		return errBusy
	}
	if err != nil {
		return fmt.Errorf("store call: %w", err)
	}
	return nil
}

// countOutbound counts the calls out of an owner since a time, answered or not. Nobody else
// adds one before tx ends.
func countOutbound(ctx context.Context, tx pgx.Tx, owner string, since time.Time) (n int, err error) {
	if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock(hashtextextended('phone_calls ' || $1, 0))`, owner); err != nil {
		return 0, fmt.Errorf("lock owner's calls: %w", err)
	}
	err = tx.QueryRow(ctx, `SELECT count(*) FROM phone_calls WHERE owner = $1 AND created_at >= $2 AND direction = 'outbound'`, owner, since).Scan(&n)
	if err != nil {
		return 0, fmt.Errorf("count calls out: %w", err)
	}
	return n, nil
}

// callOf reads one call of owner, or not_found. suffix is "" or "FOR UPDATE".
func callOf(ctx context.Context, db postgres.DB, owner, id, suffix string) (Call, error) {
	rows, _ := db.Query(ctx, `SELECT `+callColumns+` FROM phone_calls WHERE owner = $1 AND id = $2 `+suffix, owner, id)
	c, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[Call])
	return c, postgres.NotFound(err, "read call")
}

// open reads the calls that have not ended, oldest first.
func (v Service) open(ctx context.Context) ([]Call, error) {
	rows, _ := v.DB.Query(ctx, `SELECT `+callColumns+` FROM phone_calls WHERE state IN ('queued', 'ringing', 'in_progress') ORDER BY created_at, id`)
	found, err := pgx.CollectRows(rows, pgx.RowToStructByName[Call])
	if err != nil {
		return nil, fmt.Errorf("read open calls: %w", err)
	}
	return found, nil
}

// listCalls reads a page of owner's calls.
func listCalls(ctx context.Context, db postgres.DB, owner string, f CallFilter) (paging.List[Call], error) {
	return callList.Read(ctx, db, f.Page, `owner = $1 AND ($2 = '' OR line_id = $2) AND ($3 = '' OR stream_id = $3) AND ($4 = '' OR state = $4)`,
		owner, f.Line, f.Stream, f.State)
}

// Life is how long calls are kept.
const Life = 400 * 24 * time.Hour

// purgeBatch is how many calls one statement of Purge drops.
const purgeBatch = 10_000

// Purge drops the calls that are older than Life, and returns how many.
func (v Service) Purge(ctx context.Context) (n int64, err error) {
	for {
		tag, err := v.DB.Exec(ctx, `DELETE FROM phone_calls WHERE id = ANY (ARRAY (SELECT id FROM phone_calls WHERE created_at < $1 AND ended_at IS NOT NULL LIMIT $2))`,
			v.now().Add(-Life), purgeBatch)
		if err != nil {
			return n, fmt.Errorf("purge calls: %w", err)
		}
		if n += tag.RowsAffected(); tag.RowsAffected() < purgeBatch {
			return n, nil
		}
	}
}
