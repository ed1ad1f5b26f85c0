// Package reencrypt seals the stored secrets anew after SLUICE_SECRETS_KEY has
// changed, so that the key of before can be forgotten.
package reencrypt

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/platform/storage/postgres"
	"sluice.dev/sluice/platform/storage/secretbox"
)

// Column is where sealed values are stored. Its names come from the code, never
// from outside.
type Column struct {
	Table, ID, Value string
	// Row is what the value of an id is bound to.
	Row func(id string) string
	// Plain reports whether a value is one of before values were sealed, which is
	// left as it is; nil: none is.
	Plain func(stored []byte) bool
}

// Result counts the values of a column.
type Result struct {
	Column   string
	Current  int // were sealed with the first key already
	Resealed int
	Lost     int // no key opens them
}

// batch is how many rows are locked at once.
const batch = 200

// All seals everything anew that the first key of box does not open but another
// does. It may run while everything is in use, and again after it was interrupted.
func All(ctx context.Context, db postgres.DB, box *secretbox.Box, columns []Column) ([]Result, error) {
	list := make([]Result, len(columns))
	for i, c := range columns {
		list[i].Column = c.Table + "." + c.Value
		for after, more := "", true; more; {
			var err error
			if after, more, err = c.step(ctx, db, box, after, &list[i]); err != nil {
				return nil, fmt.Errorf("seal %s anew: %w", list[i].Column, err)
			}
		}
	}
	return list, nil
}

// value is a stored one.
type value struct {
	ID     string
	Sealed []byte
}

// step does the next rows after an id in one transaction.
func (c Column) step(ctx context.Context, db postgres.DB, box *secretbox.Box, after string, r *Result) (last string, more bool, err error) {
	err = postgres.InTx(ctx, db, func(tx pgx.Tx) error {
		rows, _ := tx.Query(ctx, fmt.Sprintf(`SELECT %[2]s::text, %[3]s FROM %[1]s WHERE %[2]s::text > $1 AND %[3]s IS NOT NULL ORDER BY %[2]s::text LIMIT $2 FOR UPDATE`,
			c.Table, c.ID, c.Value), after, batch)
		list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[value])
		if err != nil {
			return err
		}
		for _, v := range list {
			if err := c.one(ctx, tx, box, v, r); err != nil {
				return err
			}
			last = v.ID
		}
		more = len(list) == batch
		return nil
	})
	return last, more, err
}

// one seals a value anew, if need be.
func (c Column) one(ctx context.Context, tx pgx.Tx, box *secretbox.Box, v value, r *Result) error {
	if c.Plain != nil && c.Plain(v.Sealed) || box.Current(v.Sealed, c.Row(v.ID)) {
		r.Current++
		return nil
	}
	plain, err := box.Open(v.Sealed, c.Row(v.ID))
	if err != nil {
		r.Lost++
		return nil
	}
	r.Resealed++
	_, err = tx.Exec(ctx, fmt.Sprintf(`UPDATE %s SET %s = $2 WHERE %s::text = $1`, c.Table, c.Value, c.ID), v.ID, box.Seal(plain, c.Row(v.ID)))
	return err
}
