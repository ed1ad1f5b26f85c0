package apikeys

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/controlplane/accounts/scoperegistry"
	"sluice.dev/sluice/controlplane/edgesync/keyfeed"
	"sluice.dev/sluice/filters/credentials/apikey"
	"sluice.dev/sluice/filters/credentials/clientcert"
	"sluice.dev/sluice/filters/credentials/keytable"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/clock"
	"sluice.dev/sluice/platform/http/paging"
	"sluice.dev/sluice/platform/storage/audit"
	"sluice.dev/sluice/platform/storage/postgres"
)

// Store keeps keys in Postgres.
type Store struct {
	DB postgres.DB
	// Now is the clock; nil: time.Now.
	Now func() time.Time
}

// now is the time by the clock of s.
func (s Store) now() time.Time { return clock.Or(s.Now) }

const columns = `k.id, k.account_id, k.name, k.scopes, k.expires_at, k.created_at, k.rate_limit_per_minute, k.last_used_at, k.last_used_ip,
	k.imported_from, k.external_id, k.certificate, k.chat_before`

// fields are where a row of columns goes; call shown after the scan.
func (k *Key) fields() []any {
	return []any{&k.ID, &k.Account, &k.Name, &k.Scopes, &k.ExpiresAt, &k.CreatedAt, &k.PerMinute, &k.LastUsedAt, &k.LastUsedIP,
		&k.ImportedFrom, &k.ExternalID, &k.Certificate, &k.chatBefore}
}

// shown makes of k what clients see: times in UTC, and the scopes that it has for having
// been made before chat asked for any.
func (k *Key) shown() {
	k.Scopes = withChat(k.Scopes, k.chatBefore)
	k.CreatedAt = k.CreatedAt.UTC()
	for _, t := range []*time.Time{k.ExpiresAt, k.LastUsedAt} {
		if t != nil {
			*t = t.UTC()
		}
	}
}

// scan reads a row of columns.
func scan(row pgx.CollectableRow) (k Key, err error) {
	err = row.Scan(k.fields()...)
	k.shown()
	return k, err
}

// one runs a query that gives one key, or fails with not_found.
func one(ctx context.Context, db postgres.DB, doing, sql string, args ...any) (Key, error) {
	rows, _ := db.Query(ctx, sql, args...)
	k, err := pgx.CollectExactlyOneRow(rows, scan)
	return k, postgres.NotFound(err, doing)
}

// Create makes a key and tells the edges. It fails with invalid_request for a
// bad name, scopes or end, with AUTH_002 for scopes that the creator lacks, with
// not_found for an unknown account, and with conflict when it has too many keys.
func (s Store) Create(ctx context.Context, spec Spec) (Created, error) {
	var c Created
	err := postgres.InTx(ctx, s.DB, func(tx pgx.Tx) (err error) {
		known, offered, err := scoperegistry.LoadOffered(ctx, tx)
		if err != nil {
			return err
		}
		if err := spec.check(offered, s.now()); err != nil {
			return err
		}
		if err := lockAccount(ctx, tx, spec.Account); err != nil {
			return err
		}
		if err := checkRoom(ctx, tx, spec); err != nil {
			return err
		}
		if c, err = s.insert(ctx, tx, spec); err != nil {
			return err
		}
		if err := record(ctx, tx, "key.create", c.Key, nil, c.Key); err != nil {
			return err
		}
		return emitTx(ctx, tx, known, c.ID)
	})
	return c, err
}

// lockAccount keeps the account as it is until tx ends. Whoever changes a key takes it
// first: EmitAccountTx then sees the change, or comes before it, and never sends
// the record of a key that was revoked in between.
func lockAccount(ctx context.Context, tx pgx.Tx, account string) error {
	_, err := tx.Exec(ctx, `SELECT 1 FROM accounts WHERE id = $1 FOR SHARE`, account)
	if err != nil {
		return fmt.Errorf("lock account: %w", err)
	}
	return nil
}

// checkRoom fails with conflict when the account has as many keys as it may.
func checkRoom(ctx context.Context, tx pgx.Tx, spec Spec) error {
	if spec.Most == 0 {
		return nil
	}
	var full bool
	err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM api_keys WHERE account_id = $1 AND revoked_at IS NULL OFFSET $2)`,
		spec.Account, spec.Most-1).Scan(&full)
	if err != nil {
		return fmt.Errorf("count keys: %w", err)
	}
	if full {
		return apierror.Errorf(decision.Conflict, "An account can have at most %d keys: revoke some that are not used.", spec.Most)
	}
	return nil
}

// insert wants the account held.
func (s Store) insert(ctx context.Context, tx pgx.Tx, spec Spec) (Created, error) {
	id, text := newKey()
	hash := apikey.Hash(text)
	var certificate *string
	if c := spec.Certificate; c != nil {
		shown := c.String()
		text, hash, certificate = "", clientcert.Hash(c.Kind, c.Name), &shown
		if err := freeName(ctx, tx, hash); err != nil {
			return Created{}, err
		}
	}
	k, err := one(ctx, tx, "insert key", `
		INSERT INTO api_keys AS k (id, account_id, name, hash, scopes, expires_at, created_at, rate_limit_per_minute, certificate, chat_before)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, false) RETURNING `+columns,
		id, spec.Account, spec.Name, hash[:], distinct(spec.Scopes), truncate(spec.ExpiresAt), s.now(), spec.PerMinute, certificate)
	if postgres.Constraint(err) == "api_keys_account_fkey" {
		return Created{}, apierror.Errorf(decision.NotFound, "There is no such account.")
	}
	return Created{ID: k.ID, Text: text, Key: k}, mapped(err)
}

// newKey makes an id and the text of its key, from 64 and 186 random bits.
func newKey() (id, text string) {
	var number [8]byte
	var secret [apikey.SecretBytes]byte
	rand.Read(number[:])
	rand.Read(secret[:])
	n := binary.LittleEndian.Uint64(number[:])
	return keytable.FormatID(keytable.KeyPrefix, n), apikey.FormatKey(n, secret)
}

// truncate cuts t to the second: edges know no finer end.
func truncate(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	cut := t.Truncate(time.Second)
	return &cut
}

// distinct returns names without repetitions, in their order.
func distinct(names []string) []string {
	seen, list := map[string]bool{}, []string{}
	for _, n := range names {
		if !seen[n] {
			seen[n] = true
			list = append(list, n)
		}
	}
	return list
}

// List is how the keys of an account are listed: newest first, by name if asked for.
var List = paging.Table[Key]{
	Columns: columns, From: "api_keys k", Scan: scan,
	Sorts: []paging.Sort[Key]{
		paging.Time("created_at", "k.created_at", func(k Key) time.Time { return k.CreatedAt }),
		paging.Text("name", "k.name", func(k Key) string { return k.Name }),
	},
	ID: "k.id", IDOf: func(k Key) string { return k.ID },
	Created: "k.created_at", Name: "k.name", Param: "name",
}

// Page returns page p of the account's keys that are not revoked.
func (s Store) Page(ctx context.Context, account string, p paging.Page) (paging.List[Key], error) {
	return List.Read(ctx, s.DB, p, `k.account_id = $1 AND k.revoked_at IS NULL`, account)
}

// KnownAccount fails with not_found when there is no such account.
func (s Store) KnownAccount(ctx context.Context, account string) error {
	var known bool
	err := s.DB.QueryRow(ctx, `SELECT true FROM accounts WHERE id = $1`, account).Scan(&known)
	return postgres.NotFound(err, "find account")
}

// Get returns one key of the account; not_found when it is revoked, or
// another account's.
func (s Store) Get(ctx context.Context, account, id string) (Key, error) {
	return one(ctx, s.DB, "get key", `SELECT `+columns+` FROM api_keys k
		WHERE k.id = $1 AND k.account_id = $2 AND k.revoked_at IS NULL`, id, account)
}

// Change says what to change of a key.
type Change struct {
	Name      *string // nil: as it is
	Limited   bool    // set the limit to PerMinute
	PerMinute *uint32 // 1 to MaxPerMinute; nil: no limit but the account's
}

// Change changes one key of the account and tells the edges, for whoever holds the
// scopes by. It fails with invalid_request for a bad name, with not_found when the
// key is revoked, and with AUTH_002 when it has more scopes.
func (s Store) Change(ctx context.Context, account, id string, c Change, by []string) (Key, error) {
	if c.Name != nil {
		if err := apierror.Invalid(checkName(*c.Name)); err != nil {
			return Key{}, err
		}
	}
	var k Key
	err := postgres.InTx(ctx, s.DB, func(tx pgx.Tx) error {
		if err := lockAccount(ctx, tx, account); err != nil {
			return err
		}
		before, err := lock(ctx, tx, account, id, by)
		if err != nil {
			return err
		}
		k, err = one(ctx, tx, "change key", `UPDATE api_keys k SET name = coalesce($2, name),
			rate_limit_per_minute = CASE WHEN $3 THEN $4 ELSE rate_limit_per_minute END
			WHERE k.id = $1 RETURNING `+columns, id, c.Name, c.Limited, c.PerMinute)
		if err != nil {
			return err
		}
		if err := record(ctx, tx, "key.change", before, before, k); err != nil || !c.Limited {
			return err
		}
		known, err := scoperegistry.Load(ctx, tx)
		if err != nil {
			return err
		}
		return emitTx(ctx, tx, known, id)
	})
	return k, err
}

// lock returns one key of the account, which whoever holds the scopes by may
// change, and keeps it as it is until tx ends.
func lock(ctx context.Context, tx pgx.Tx, account, id string, by []string) (Key, error) {
	k, err := one(ctx, tx, "lock key", `SELECT `+columns+` FROM api_keys k
		WHERE k.id = $1 AND k.account_id = $2 AND k.revoked_at IS NULL FOR UPDATE`, id, account)
	if err != nil {
		return Key{}, err
	}
	return k, mayChange(k, by)
}

// record writes the audit log; before and after are of the key, nil or a Key.
func record(ctx context.Context, tx pgx.Tx, action string, k Key, before, after any) error {
	return audit.RecordTx(ctx, tx, audit.Change{Account: k.Account, Action: action, Target: k.ID, Before: before, After: after})
}

// Revoke ends a key for whoever holds the scopes by: edges refuse it within
// milliseconds, and it cannot come back. It fails with not_found when it is revoked
// already, and with AUTH_002 when it has more scopes.
func (s Store) Revoke(ctx context.Context, account, id string, by []string) error {
	return postgres.InTx(ctx, s.DB, func(tx pgx.Tx) error {
		if err := lockAccount(ctx, tx, account); err != nil {
			return err
		}
		k, err := lock(ctx, tx, account, id, by)
		if err != nil {
			return err
		}
		if err := record(ctx, tx, "key.revoke", k, k, nil); err != nil {
			return err
		}
		return s.revokeTx(ctx, tx, account, id)
	})
}

// revokeTx wants the account held.
func (s Store) revokeTx(ctx context.Context, tx pgx.Tx, account, id string) error {
	var hash []byte
	err := tx.QueryRow(ctx, `UPDATE api_keys SET revoked_at = $3
		WHERE id = $1 AND account_id = $2 AND revoked_at IS NULL RETURNING hash`, id, account, s.now()).Scan(&hash)
	if err != nil {
		return postgres.NotFound(err, "revoke key")
	}
	return keyfeed.DeleteTx(ctx, tx, keytable.TagOfKey([32]byte(hash)))
}

// Owner returns the account of a key that is not revoked, for callers who may
// reach every account.
func (s Store) Owner(ctx context.Context, id string) (account string, err error) {
	err = s.DB.QueryRow(ctx, `SELECT account_id FROM api_keys WHERE id = $1 AND revoked_at IS NULL`, id).Scan(&account)
	return account, postgres.NotFound(err, "find key")
}
