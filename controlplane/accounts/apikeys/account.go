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
	Suspended bool
	Allowlist []netip.Prefix
}

// emitAccount sends an account's own record, and its allowlist. Of an account that is
// suspended it takes both away, and reports so.
func emitAccount(ctx context.Context, tx pgx.Tx, account string) (suspended bool, err error) {
	rows, _ := tx.Query(ctx, `
		SELECT p.number, EXISTS (SELECT FROM account_limits l WHERE l.account_id = a.id), a.unpaid, a.quota_used, a.suspended_at IS NOT NULL, a.ip_allowlist
		FROM accounts a JOIN plans p ON p.name = a.plan WHERE a.id = $1`, account)
	row, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[accountRow])
	if err != nil {
		return false, postgres.NotFound(err, "read account for edges")
	}
	number, _ := keytable.ParseID(keytable.AccountPrefix, account)
	list := keytable.TagOfAllowlist(number)
	put := append(keytable.Split(list, allowlist.Encode(row.Allowlist)), row.record(number))
	old := keytable.Parts(list)[len(put)-1:]
	if row.Suspended {
		put, old = nil, append(keytable.Parts(list), keytable.TagOfAccount(number))
	}
	gone, err := present(ctx, tx, old)
	if err != nil {
		return false, err
	}
	if err := keyfeed.PutTx(ctx, tx, put...); err != nil {
		return false, err
	}
	return row.Suspended, keyfeed.DeleteTx(ctx, tx, gone...)
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
// as those made by an earlier release, takes away those of accounts that are suspended, which
// an earlier release has sent meanwhile, and returns how many accounts there were.
func (s Store) EmitAccounts(ctx context.Context) (n int, err error) {
	for after := ""; ; {
		rows, _ := s.DB.Query(ctx, `SELECT id, suspended_at IS NOT NULL FROM accounts WHERE id > $1 ORDER BY id LIMIT $2`, after, emitBatch)
		list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[listedAccount])
		if err != nil {
			return n, fmt.Errorf("list accounts for edges: %w", err)
		}
		if len(list) == 0 {
			return n, nil
		}
		after = list[len(list)-1].ID
		sent, err := s.emitWrong(ctx, list)
		if n += sent; err != nil {
			return n, err
		}
	}
}

// listedAccount is an account, and whether edges are to know nothing of it.
type listedAccount struct {
	ID        string
	Suspended bool
}

// tag is that of the account's record.
func (a listedAccount) tag() keytable.Tag {
	number, _ := keytable.ParseID(keytable.AccountPrefix, a.ID)
	return keytable.TagOfAccount(number)
}

// emitWrong sends those of the accounts of which edges have no record, or one that they
// should not have, each in a transaction of its own.
func (s Store) emitWrong(ctx context.Context, list []listedAccount) (n int, err error) {
	tags := make([]keytable.Tag, len(list))
	for i, a := range list {
		tags[i] = a.tag()
	}
	known, err := present(ctx, s.DB, tags)
	if err != nil {
		return 0, err
	}
	there := make(map[keytable.Tag]bool, len(known))
	for _, t := range known {
		there[t] = true
	}
	for i, a := range list {
		if there[tags[i]] != a.Suspended {
			continue
		}
		err := postgres.InTx(ctx, s.DB, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, `SELECT FROM accounts WHERE id = $1 FOR UPDATE`, a.ID); err != nil {
				return fmt.Errorf("lock account: %w", err)
			}
			return EmitAccountTx(ctx, tx, a.ID)
		})
		if err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}
