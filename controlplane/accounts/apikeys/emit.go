package apikeys

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/controlplane/accounts/scoperegistry"
	"sluice.dev/sluice/controlplane/edgesync/keyfeed"
	"sluice.dev/sluice/filters/credentials/keytable"
)

// emitBatch bounds how many keys are held in memory while an account's records
// are sent again.
const emitBatch = 5000

// EmitAccountTx sends the records of an account and of all its keys: for an
// account that is new, or a change of it that they show (plan, limits, billing,
// allowlist). Of an account that is suspended it takes all of them away.
// The caller must hold the account's row FOR UPDATE, or have updated it.
func EmitAccountTx(ctx context.Context, tx pgx.Tx, account string) error {
	known, err := scoperegistry.Load(ctx, tx)
	if err != nil {
		return err
	}
	suspended, err := emitAccount(ctx, tx, account)
	if err != nil {
		return err
	}
	if suspended {
		return withdraw(ctx, tx, account)
	}
	for after := ""; ; {
		rows, err := selectForEdge(ctx, tx, `k.account_id = $1 AND k.id > $2 ORDER BY k.id LIMIT $3`, account, after, emitBatch)
		if err != nil || len(rows) == 0 {
			return err
		}
		if err := keyfeed.PutTx(ctx, tx, records(rows, known)...); err != nil {
			return err
		}
		after = rows[len(rows)-1].ID
	}
}

// withdraw takes away the records of all keys of an account.
func withdraw(ctx context.Context, tx pgx.Tx, account string) error {
	for after := ""; ; {
		rows, _ := tx.Query(ctx, `SELECT id, hash FROM api_keys WHERE account_id = $1 AND id > $2 AND revoked_at IS NULL ORDER BY id LIMIT $3`,
			account, after, emitBatch)
		var hash []byte
		var tags []keytable.Tag
		_, err := pgx.ForEachRow(rows, []any{&after, &hash}, func() error {
			tags = append(tags, keytable.TagOfKey([32]byte(hash)))
			return nil
		})
		if err != nil {
			return fmt.Errorf("read keys for edges: %w", err)
		}
		if len(tags) == 0 {
			return nil
		}
		there, err := present(ctx, tx, tags)
		if err != nil {
			return err
		}
		if err := keyfeed.DeleteTx(ctx, tx, there...); err != nil {
			return err
		}
	}
}

// emitTx sends the record of one key, unless its account is suspended.
func emitTx(ctx context.Context, tx pgx.Tx, known scoperegistry.Registry, id string) error {
	rows, err := selectForEdge(ctx, tx, `k.id = $1`, id)
	if err != nil {
		return err
	}
	return keyfeed.PutTx(ctx, tx, records(rows, known)...)
}

// edgeRow is what a key's record is made of.
type edgeRow struct {
	ID, Account string
	Hash        []byte
	Scopes      []string
	ExpiresAt   *time.Time
	Plan        int16
	HasLimits   bool
	Unpaid      bool
	QuotaUsed   bool
	Listed      bool    // the account has an allowlist
	PerMinute   *uint32 // the key's own limit
	ChatBefore  bool    // it was made before chat asked for a scope
}

// selectForEdge reads the keys that meet a condition, unless they are revoked or their
// account is suspended.
func selectForEdge(ctx context.Context, tx pgx.Tx, where string, args ...any) ([]edgeRow, error) {
	rows, _ := tx.Query(ctx, `
		SELECT k.id, k.account_id, k.hash, k.scopes, k.expires_at, p.number,
			EXISTS (SELECT FROM account_limits l WHERE l.account_id = a.id), a.unpaid, a.quota_used, cardinality(a.ip_allowlist) > 0,
			k.rate_limit_per_minute, k.chat_before
		FROM api_keys k JOIN accounts a ON a.id = k.account_id JOIN plans p ON p.name = a.plan
		WHERE k.revoked_at IS NULL AND a.suspended_at IS NULL AND `+where, args...)
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[edgeRow])
	if err != nil {
		return nil, fmt.Errorf("read keys for edges: %w", err)
	}
	return list, nil
}

// records makes the records of rows.
func records(rows []edgeRow, known scoperegistry.Registry) []keytable.Record {
	list := make([]keytable.Record, len(rows))
	for i, row := range rows {
		list[i] = row.record(known)
	}
	return list
}

// record leaves out scopes that the registry no longer knows: they grant nothing.
func (row edgeRow) record(known scoperegistry.Registry) keytable.Record {
	r := keytable.Record{Tag: keytable.TagOfKey([32]byte(row.Hash)), Kind: keytable.KindKey, Plan: uint16(row.Plan)}
	r.ID, _ = keytable.ParseID(keytable.KeyPrefix, row.ID)
	r.Account, _ = keytable.ParseID(keytable.AccountPrefix, row.Account)
	r.Scopes, _ = known.Bits(withChat(row.Scopes, row.ChatBefore))
	if row.ExpiresAt != nil {
		r.Expires = uint32(row.ExpiresAt.Unix())
	}
	if row.PerMinute != nil {
		r.Limit = *row.PerMinute
	}
	r.Flags = accountFlags(row.HasLimits, row.Unpaid, row.QuotaUsed, row.Listed)
	return r
}
