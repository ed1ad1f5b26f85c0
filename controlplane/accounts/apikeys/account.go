package apikeys

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/controlplane/edgesync/keyfeed"
	"sluice.dev/sluice/filters/credentials/allowlist"
	"sluice.dev/sluice/filters/credentials/keytable"
	"sluice.dev/sluice/platform/storage/postgres"
)

// accountRow is what edges are told of an account: callers with tokens have no
// key whose record says it.
type accountRow struct {
	Plan      int16
	HasLimits bool
	Unpaid    bool
	QuotaUsed bool
	Allowlist []netip.Prefix
}

// emitAccount sends an account's own record, and its allowlist.
func emitAccount(ctx context.Context, tx pgx.Tx, account string) error {
	rows, _ := tx.Query(ctx, `
		SELECT p.number, EXISTS (SELECT FROM account_limits l WHERE l.account_id = a.id), a.unpaid, a.quota_used, a.ip_allowlist
		FROM accounts a JOIN plans p ON p.name = a.plan WHERE a.id = $1`, account)
	row, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[accountRow])
	if err != nil {
		return postgres.NotFound(err, "read account for edges")
	}
	number, _ := keytable.ParseID(keytable.AccountPrefix, account)
	list := keytable.TagOfAllowlist(number)
	put := append(keytable.Split(list, allowlist.Encode(row.Allowlist)), row.record(number))
	gone, err := present(ctx, tx, keytable.Parts(list)[len(put)-1:])
	if err != nil {
		return err
	}
	if err := keyfeed.PutTx(ctx, tx, put...); err != nil {
		return err
	}
	return keyfeed.DeleteTx(ctx, tx, gone...)
}

// record makes the record of the account with the given number.
func (row accountRow) record(number uint64) keytable.Record {
	return keytable.Record{Tag: keytable.TagOfAccount(number), Kind: keytable.KindAccount, Account: number, Plan: uint16(row.Plan),
		Flags: accountFlags(row.HasLimits, row.Unpaid, row.QuotaUsed, len(row.Allowlist) > 0)}
}

// accountFlags are the flags that the records of an account and of its keys share.
func accountFlags(limits, unpaid, quotaUsed, listed bool) (flags uint8) {
	if limits {
		flags |= keytable.FlagLimits
	}
	if unpaid {
		flags |= keytable.FlagUnpaid
	}
	if quotaUsed {
		flags |= keytable.FlagQuotaUsed
	}
	if listed {
		flags |= keytable.FlagAllowlist
	}
	return flags
}

// present returns those of tags that edges have records of.
func present(ctx context.Context, db postgres.DB, tags []keytable.Tag) ([]keytable.Tag, error) {
	raw := make([][]byte, len(tags))
	for i := range tags {
		raw[i] = tags[i][:]
	}
	rows, _ := db.Query(ctx, `SELECT tag FROM edge_records WHERE tag = ANY($1) AND record IS NOT NULL`, raw)
	list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (t keytable.Tag, err error) {
		var b []byte
		err = row.Scan(&b)
		copy(t[:], b)
		return t, err
	})
	if err != nil {
		return nil, fmt.Errorf("look for records of edges: %w", err)
	}
	return list, nil
}

// EmitAccounts sends the records of all accounts of which edges have none, such
// as those made by an earlier release, and returns how many there were.
func (s Store) EmitAccounts(ctx context.Context) (n int, err error) {
	for after := ""; ; {
		rows, _ := s.DB.Query(ctx, `SELECT id FROM accounts WHERE id > $1 ORDER BY id LIMIT $2`, after, emitBatch)
		ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			return n, fmt.Errorf("list accounts for edges: %w", err)
		}
		if len(ids) == 0 {
			return n, nil
		}
		after = ids[len(ids)-1]
		sent, err := s.emitMissing(ctx, ids)
		if n += sent; err != nil {
			return n, err
		}
	}
}

// emitMissing sends those of the accounts that edges have no record of, each in a
// transaction of its own.
func (s Store) emitMissing(ctx context.Context, ids []string) (n int, err error) {
	tags, byTag := make([]keytable.Tag, len(ids)), map[keytable.Tag]string{}
	for i, id := range ids {
		number, _ := keytable.ParseID(keytable.AccountPrefix, id)
		tags[i] = keytable.TagOfAccount(number)
		byTag[tags[i]] = id
	}
	there, err := present(ctx, s.DB, tags)
	if err != nil {
		return 0, err
	}
	for _, t := range there {
		delete(byTag, t)
	}
	for _, id := range byTag {
		err := postgres.InTx(ctx, s.DB, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, `SELECT FROM accounts WHERE id = $1 FOR UPDATE`, id); err != nil {
				return fmt.Errorf("lock account: %w", err)
			}
			return EmitAccountTx(ctx, tx, id)
		})
		if err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}
