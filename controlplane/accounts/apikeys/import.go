package apikeys

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/controlplane/accounts/scoperegistry"
	"sluice.dev/sluice/controlplane/edgesync/keyfeed"
	"sluice.dev/sluice/filters/credentials/apikey"
	"sluice.dev/sluice/filters/credentials/keytable"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/filters/scopes"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/storage/audit"
)

// MaxExternalID bounds the id of a key or an account in the system it comes from, in
// characters.
const MaxExternalID = 200

// Import is a key that another system issued and that goes on working.
type Import struct {
	Sum        [sha256.Size]byte // SHA-256 of its text
	Account    string
	Name       string
	Scopes     []string
	ExpiresAt  *time.Time // nil: never
	PerMinute  *uint32    // 1 to MaxPerMinute; nil: no limit but the account's
	ExternalID string     // its id in that system; empty: none
}

// Outcome is what became of one Import.
type Outcome struct {
	ID      string // of the key that was made; empty: none was
	Refused string // why it was refused; empty, without an ID: it was there already
}

// check returns what is wrong with i, or nothing.
func (i Import) check(offered scoperegistry.Registry, now time.Time) string {
	spec := Spec{Name: i.Name, Scopes: i.Scopes, ExpiresAt: i.ExpiresAt, Creator: everything}
	if len(i.ExternalID) > MaxExternalID || strings.ContainsRune(i.ExternalID, 0) {
		spec.faults = []decision.Detail{{Field: "external_id", Issue: "is too long", Expected: fmt.Sprintf("at most %d bytes", MaxExternalID)}}
	}
	if i.PerMinute != nil && (*i.PerMinute == 0 || *i.PerMinute > MaxPerMinute) {
		spec.faults = append(spec.faults, decision.Detail{Field: "rate_limit_per_minute", Issue: "is out of range", Expected: fmt.Sprintf("1 to %d", MaxPerMinute)})
	}
	if slices.Contains(i.Scopes, scopes.Admin) {
		spec.faults = append(spec.faults, decision.Detail{Field: "scopes", Issue: "have *", Expected: "narrower ones: a key of another system never reaches the admin API"})
	}
	return explain(spec.check(offered, now))
}

// explain puts the details of err into one line.
func explain(err error) string {
	if err == nil {
		return ""
	}
	var parts []string
	e, ok := errors.AsType[*apierror.Error](err)
	if !ok || len(e.Details) == 0 {
		return err.Error()
	}
	for _, d := range e.Details {
		text := d.Field + " " + d.Issue
		if d.Expected != "" {
			text += " (expected " + d.Expected + ")"
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, "; ")
}

// ImportTx stores keys that the named system issued, tells the edges when tx commits,
// and returns what became of each. A key that the account has already, from an earlier
// import, stays as it is. One is refused that is another account's, or was revoked:
// an import neither moves a key nor brings one back. It locks the accounts in the
// order of their ids, and calls PutTx last.
func (s Store) ImportTx(ctx context.Context, tx pgx.Tx, from string, list []Import) ([]Outcome, error) {
	known, offered, err := scoperegistry.LoadOffered(ctx, tx)
	if err != nil {
		return nil, err
	}
	held, err := lockAccounts(ctx, tx, list)
	if err != nil {
		return nil, err
	}
	out, now := make([]Outcome, len(list)), s.now()
	var good []int
	for i := range list {
		if out[i].Refused = list[i].check(offered, now); out[i].Refused == "" && !held[list[i].Account] {
			out[i].Refused = "account is not one there is"
		}
		if out[i].Refused == "" {
			good = append(good, i)
		}
	}
	made, err := insertImports(ctx, tx, from, list, good, out, now)
	if err != nil {
		return nil, err
	}
	if err := judgePresent(ctx, tx, list, good, out); err != nil {
		return nil, err
	}
	if len(made) == 0 {
		return out, nil
	}
	if err := recordImports(ctx, tx, from, list, out); err != nil {
		return nil, err
	}
	return out, emitImports(ctx, tx, known, made)
}

// lockAccounts is lockAccount of all accounts of list; it returns those that there are.
func lockAccounts(ctx context.Context, tx pgx.Tx, list []Import) (map[string]bool, error) {
	ids := make([]string, len(list))
	for i := range list {
		ids[i] = list[i].Account
	}
	rows, _ := tx.Query(ctx, `SELECT id FROM accounts WHERE id = ANY ($1) ORDER BY id FOR SHARE`, ids)
	held := map[string]bool{}
	var id string
	_, err := pgx.ForEachRow(rows, []any{&id}, func() error { held[id] = true; return nil })
	if err != nil {
		return nil, fmt.Errorf("lock accounts: %w", err)
	}
	return held, nil
}

// insertImports inserts the good ones of list that are not there, notes their ids in
// out and returns these.
func insertImports(ctx context.Context, tx pgx.Tx, from string, list []Import, good []int, out []Outcome, now time.Time) ([]string, error) {
	n := len(good)
	ids, accounts, names, granted := make([]string, n), make([]string, n), make([]string, n), make([]string, n)
	hashes, ends, limits, external := make([][]byte, n), make([]*time.Time, n), make([]*int32, n), make([]*string, n)
	at := make(map[string]int, n)
	for j, i := range good {
		k, hash := &list[i], apikey.ImportedHash(list[i].Sum)
		ids[j], _ = newKey()
		accounts[j], names[j], granted[j] = k.Account, k.Name, strings.Join(distinct(k.Scopes), " ")
		hashes[j], ends[j], at[ids[j]] = hash[:], truncate(k.ExpiresAt), i
		if k.PerMinute != nil {
			limit := int32(*k.PerMinute)
			limits[j] = &limit
		}
		if k.ExternalID != "" {
			external[j] = &k.ExternalID
		}
	}
	rows, _ := tx.Query(ctx, `
		INSERT INTO api_keys (id, account_id, name, hash, scopes, expires_at, created_at, rate_limit_per_minute, imported_from, external_id, chat_before)
		SELECT c.id, c.account, c.name, c.hash, string_to_array(c.scopes, ' '), c.ends, $9, c.per_minute, $10, c.external, false
		FROM unnest($1::text[], $2::text[], $3::text[], $4::bytea[], $5::text[], $6::timestamptz[], $7::integer[], $8::text[])
			AS c (id, account, name, hash, scopes, ends, per_minute, external)
		ON CONFLICT (hash) DO NOTHING RETURNING id`, ids, accounts, names, hashes, granted, ends, limits, external, now, from)
	made, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("insert keys: %w", err)
	}
	for _, id := range made {
		out[at[id]].ID = id
	}
	return made, nil
}

// judgePresent refuses those of list that are there, and are another account's or
// revoked.
func judgePresent(ctx context.Context, tx pgx.Tx, list []Import, good []int, out []Outcome) error {
	var hashes [][]byte
	for _, i := range good {
		if out[i].ID == "" {
			hash := apikey.ImportedHash(list[i].Sum)
			hashes = append(hashes, hash[:])
		}
	}
	type there struct {
		account string
		revoked bool
	}
	present, hash, t := map[[sha256.Size]byte]there{}, []byte(nil), there{}
	if len(hashes) > 0 {
		rows, _ := tx.Query(ctx, `SELECT hash, account_id, revoked_at IS NOT NULL FROM api_keys WHERE hash = ANY ($1)`, hashes)
		_, err := pgx.ForEachRow(rows, []any{&hash, &t.account, &t.revoked}, func() error {
			present[[sha256.Size]byte(hash)] = t
			return nil
		})
		if err != nil {
			return fmt.Errorf("find keys that are there: %w", err)
		}
	}
	for _, i := range good {
		was, ok := present[apikey.ImportedHash(list[i].Sum)]
		switch {
		case !ok || out[i].ID != "":
		case was.account != list[i].Account:
			out[i].Refused = "the key belongs to another account"
		case was.revoked:
			out[i].Refused = "the key was imported before, and revoked"
		}
	}
	return nil
}

// recordImports writes one entry of the audit log for each account that got keys.
func recordImports(ctx context.Context, tx pgx.Tx, from string, list []Import, out []Outcome) error {
	byAccount := map[string][]string{}
	for i := range list {
		if out[i].ID != "" {
			byAccount[list[i].Account] = append(byAccount[list[i].Account], out[i].ID)
		}
	}
	for _, account := range slices.Sorted(maps.Keys(byAccount)) {
		ids := byAccount[account]
		after := map[string]any{"from": from, "count": len(ids), "keys": ids[:min(len(ids), 20)]}
		if err := audit.RecordTx(ctx, tx, audit.Change{Account: account, Action: "key.import", Target: ids[0], After: after}); err != nil {
			return err
		}
	}
	return nil
}

// emitImports sends the records of keys, behind the one that says that there are
// imported keys.
func emitImports(ctx context.Context, tx pgx.Tx, known scoperegistry.Registry, ids []string) error {
	rows, err := selectForEdge(ctx, tx, `k.id = ANY ($1)`, ids)
	if err != nil {
		return err
	}
	put := records(rows, known)
	there, err := present(ctx, tx, []keytable.Tag{keytable.TagOfImports()})
	if err != nil {
		return err
	}
	if len(there) == 0 {
		put = append([]keytable.Record{{Tag: keytable.TagOfImports(), Kind: keytable.KindImports}}, put...)
	}
	return keyfeed.PutTx(ctx, tx, put...)
}
