package issuers

import (
	"bytes"
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/controlplane/edgesync/keyfeed"
	"sluice.dev/sluice/filters/credentials/keytable"
	"sluice.dev/sluice/platform/storage/postgres"
)

// Replace makes keys the keys of an issuer, in Postgres and at the edges, and
// returns whether anything changed. An issuer without keys is forgotten.
func Replace(ctx context.Context, db postgres.DB, issuer string, keys []Key) (changed bool, err error) {
	if have, err := read(ctx, db, issuer); err != nil || same(have, keys) {
		return false, err
	}
	err = postgres.InTx(ctx, db, func(tx pgx.Tx) error {
		// Two replicas that have read different sets at once come one after the other.
		if _, err := tx.Exec(ctx, `LOCK TABLE issuer_keys IN SHARE ROW EXCLUSIVE MODE`); err != nil {
			return fmt.Errorf("lock keys of issuers: %w", err)
		}
		have, err := read(ctx, tx, issuer)
		if err != nil || same(have, keys) {
			return err
		}
		changed = true
		return replace(ctx, tx, issuer, have, keys)
	})
	return changed && err == nil, err
}

// replace writes the difference between have and keys to the table and the feed.
func replace(ctx context.Context, tx pgx.Tx, issuer string, have map[string][]byte, keys []Key) error {
	kids, values := make([]string, len(keys)), make([][]byte, len(keys))
	var put []keytable.Record
	stays := map[keytable.Tag]bool{}
	for i, k := range keys {
		kids[i], values[i] = k.ID, k.Append(nil)
		for _, r := range keytable.Split(keytable.TagOfIssuerKey(issuer, k.ID), values[i]) {
			put, stays[r.Tag] = append(put, r), true
		}
	}
	var gone []keytable.Tag
	for kid, value := range have {
		for _, r := range keytable.Split(keytable.TagOfIssuerKey(issuer, kid), value) {
			if !stays[r.Tag] {
				gone = append(gone, r.Tag)
			}
		}
	}
	_, err := tx.Exec(ctx, `DELETE FROM issuer_keys WHERE issuer = $1`, issuer)
	if err == nil {
		_, err = tx.Exec(ctx, `INSERT INTO issuer_keys (issuer, kid, key) SELECT $1, k.kid, k.key FROM unnest($2::text[], $3::bytea[]) AS k (kid, key)`,
			issuer, kids, values)
	}
	if err != nil {
		return fmt.Errorf("store keys of %s: %w", issuer, err)
	}
	if err := keyfeed.PutTx(ctx, tx, put...); err != nil {
		return err
	}
	return keyfeed.DeleteTx(ctx, tx, gone...)
}

// read returns the keys of an issuer by their ids.
func read(ctx context.Context, db postgres.DB, issuer string) (map[string][]byte, error) {
	rows, _ := db.Query(ctx, `SELECT kid, key FROM issuer_keys WHERE issuer = $1`, issuer)
	have := map[string][]byte{}
	var kid string
	var key []byte
	_, err := pgx.ForEachRow(rows, []any{&kid, &key}, func() error {
		have[kid] = bytes.Clone(key)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read keys of %s: %w", issuer, err)
	}
	return have, nil
}

// same reports whether keys are those that are stored.
func same(have map[string][]byte, keys []Key) bool {
	if len(have) != len(keys) {
		return false
	}
	for _, k := range keys {
		if !bytes.Equal(have[k.ID], k.Append(nil)) {
			return false
		}
	}
	return true
}

// forgotten lists the issuers that have keys and are not among those named.
func forgotten(ctx context.Context, db postgres.DB, named []string) ([]string, error) {
	rows, _ := db.Query(ctx, `SELECT DISTINCT issuer FROM issuer_keys WHERE NOT issuer = ANY($1) ORDER BY issuer`, named)
	list, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("list issuers with keys: %w", err)
	}
	return list, nil
}
