// Package billing keeps invoices and subscriptions, and tells edges which
// accounts an unpaid invoice blocks (contract 5.8). Invoices are issued by package
// invoicing of what was metered, or come by import from whatever makes them, and so
// does the news that one is paid.
package billing

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/controlplane/accounts"
	"sluice.dev/sluice/controlplane/accounts/apikeys"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/clock"
	"sluice.dev/sluice/platform/http/paging"
	"sluice.dev/sluice/platform/storage/audit"
	"sluice.dev/sluice/platform/storage/postgres"
)

// States of an invoice. An open one past its due time blocks its account.
const (
	Open = "open"
	Paid = "paid"
	Void = "void"
)

// Invoice is a bill of an account.
type Invoice struct {
	ID          string    `json:"id"`
	Number      string    `json:"number"`   // unique within the account
	Status      string    `json:"status"`   // Open, Paid or Void
	Currency    string    `json:"currency"` // ISO 4217
	Amount      int64     `json:"amount"`   // in the currency's smallest unit
	PeriodStart Date      `json:"period_start"`
	PeriodEnd   Date      `json:"period_end"`
	IssuedAt    time.Time `json:"issued_at"` // UTC
	DueAt       time.Time `json:"due_at"`    // UTC
}

// IssuedPrefix begins the numbers of invoices that are issued here, and of no others.
const IssuedPrefix = "SLUICE-"

// MaxImport is how many invoices one import may hold.
const MaxImport = 1000

var (
	currencyForm = regexp.MustCompile(`^[A-Z]{3}$`)
	numberForm   = regexp.MustCompile(`^[\x21-\x7e]{1,100}$`)
)

// check returns the faults of i, which stands at field.
func (i Invoice) check(field string) (details []decision.Detail) {
	bad := func(name, expected string, isBad bool) {
		if isBad {
			details = append(details, decision.Detail{Field: field + "." + name, Issue: "is not valid", Expected: expected})
		}
	}
	bad("id", "nothing: it is assigned", i.ID != "")
	bad("number", "1 to 100 printable ASCII characters, which do not begin with "+IssuedPrefix, !numberForm.MatchString(i.Number) || strings.HasPrefix(i.Number, IssuedPrefix))
	bad("status", "open, paid or void", !knownStatus(i.Status))
	bad("currency", "three capital letters (ISO 4217)", !currencyForm.MatchString(i.Currency))
	bad("amount", "a whole number, 0 or more, of the smallest unit", i.Amount < 0)
	bad("period_start", "a date, not after period_end", i.PeriodStart.IsZero() || i.PeriodEnd.Before(i.PeriodStart.Time))
	bad("issued_at", "a timestamp", i.IssuedAt.IsZero())
	bad("due_at", "a timestamp", i.DueAt.IsZero())
	return details
}

// knownStatus reports whether s is a state of an invoice.
func knownStatus(s string) bool { return s == Open || s == Paid || s == Void }

// Store keeps invoices and subscriptions.
type Store struct {
	DB postgres.DB
	// Now is the clock; nil: time.Now.
	Now func() time.Time
}

// now is the time by the clock of s.
func (s Store) now() time.Time { return clock.Or(s.Now) }

const columns = `i.id, i.number, i.status, i.currency, i.amount, i.period_start, i.period_end, i.issued_at, i.due_at`

// scan reads a row of columns.
func scan(row pgx.CollectableRow) (i Invoice, err error) {
	err = row.Scan(&i.ID, &i.Number, &i.Status, &i.Currency, &i.Amount, &i.PeriodStart.Time, &i.PeriodEnd.Time, &i.IssuedAt, &i.DueAt)
	i.IssuedAt, i.DueAt = i.IssuedAt.UTC(), i.DueAt.UTC()
	return i, err
}

// Import adds invoices to an account, or replaces those with the same numbers,
// all or none, and tells the edges if the account is blocked now or no longer.
// It fails with invalid_request that names the bad fields.
func (s Store) Import(ctx context.Context, account string, list []Invoice) error {
	var details []decision.Detail
	if len(list) == 0 || len(list) > MaxImport {
		details = append(details, decision.Detail{Field: "invoices", Issue: "has the wrong length", Expected: fmt.Sprintf("1 to %d invoices", MaxImport)})
	}
	for n := 0; len(list) <= MaxImport && n < len(list) && len(details) <= decision.MaxDetails; n++ {
		details = append(details, list[n].check(fmt.Sprintf("invoices[%d]", n))...)
	}
	if err := apierror.Invalid(details); err != nil {
		return err
	}
	return s.Locked(ctx, account, func(tx pgx.Tx) error {
		for _, i := range list {
			if err := put(ctx, tx, account, i); err != nil {
				return err
			}
		}
		return audit.RecordTx(ctx, tx, audit.Change{Account: account, Action: "invoice.import", Target: account, After: list})
	})
}

// put adds an invoice, or replaces the one with its number, which keeps its id.
func put(ctx context.Context, tx pgx.Tx, account string, i Invoice) error {
	_, err := tx.Exec(ctx, `
		INSERT INTO invoices AS i (id, account_id, number, status, currency, amount, period_start, period_end, issued_at, due_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
		ON CONFLICT (account_id, number) DO UPDATE SET status = excluded.status, currency = excluded.currency, amount = excluded.amount,
			period_start = excluded.period_start, period_end = excluded.period_end, issued_at = excluded.issued_at, due_at = excluded.due_at`,
		accounts.NewID("inv_"), account, i.Number, i.Status, i.Currency, i.Amount, i.PeriodStart.Time, i.PeriodEnd.Time, i.IssuedAt, i.DueAt)
	if err != nil {
		return fmt.Errorf("import invoice: %w", err)
	}
	return nil
}

// SetStatus changes the state of an invoice, and that of its account with it.
func (s Store) SetStatus(ctx context.Context, id, status string) (i Invoice, err error) {
	if !knownStatus(status) {
		return i, apierror.Invalid([]decision.Detail{{Field: "status", Issue: "is not valid", Expected: "open, paid or void"}})
	}
	var account string
	err = s.DB.QueryRow(ctx, `SELECT account_id FROM invoices WHERE id = $1`, id).Scan(&account)
	if err != nil {
		return i, postgres.NotFound(err, "find invoice")
	}
	err = s.Locked(ctx, account, func(tx pgx.Tx) error {
		rows, _ := tx.Query(ctx, `UPDATE invoices i SET status = $2 WHERE id = $1 RETURNING `+columns, id, status)
		i, err = pgx.CollectExactlyOneRow(rows, scan)
		if err != nil {
			return postgres.NotFound(err, "set status of invoice")
		}
		return audit.RecordTx(ctx, tx, audit.Change{Account: account, Action: "invoice.set_status", Target: id, After: i})
	})
	return i, err
}

// List is how invoices are listed: newest first. They are as many as there were months.
var List = paging.Table[Invoice]{
	Columns: columns, From: "invoices i", Scan: scan,
	Sorts: []paging.Sort[Invoice]{paging.Time("issued_at", "i.issued_at", func(i Invoice) time.Time { return i.IssuedAt })},
	ID:    "i.id", IDOf: func(i Invoice) string { return i.ID },
	Created: "i.issued_at",
}

// Page returns page p of an account's invoices with a status (empty: all).
func (s Store) Page(ctx context.Context, account, status string, p paging.Page) (paging.List[Invoice], error) {
	return List.Read(ctx, s.DB, p, `i.account_id = $1 AND ($2 = '' OR i.status = $2)`, account, status)
}

// Locked runs change with the account locked, and then brings the account's
// state and its keys' records up to date. It fails with not_found for an
// account that is not there.
func (s Store) Locked(ctx context.Context, account string, change func(pgx.Tx) error) error {
	return postgres.InTx(ctx, s.DB, func(tx pgx.Tx) error {
		var unpaid, overdue bool
		err := tx.QueryRow(ctx, `SELECT unpaid FROM accounts WHERE id = $1 FOR UPDATE`, account).Scan(&unpaid)
		if err != nil {
			return postgres.NotFound(err, "lock account")
		}
		if err := change(tx); err != nil {
			return err
		}
		err = tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM invoices WHERE account_id = $1 AND status = 'open' AND due_at <= $2)`,
			account, s.now()).Scan(&overdue)
		if err != nil {
			return fmt.Errorf("look for overdue invoices: %w", err)
		}
		if overdue == unpaid {
			return nil
		}
		if _, err := tx.Exec(ctx, `UPDATE accounts SET unpaid = $2 WHERE id = $1`, account, overdue); err != nil {
			return fmt.Errorf("mark account: %w", err)
		}
		return apikeys.EmitAccountTx(ctx, tx, account)
	})
}

// Reconcile marks the accounts whose invoices have become overdue by the mere
// passing of time, and returns how many. It may run anywhere, at any time.
func (s Store) Reconcile(ctx context.Context) (int, error) {
	rows, _ := s.DB.Query(ctx, `SELECT id FROM accounts WHERE NOT unpaid AND id IN (
		SELECT account_id FROM invoices WHERE status = 'open' AND due_at <= $1)`, s.now())
	late, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return 0, fmt.Errorf("find overdue invoices: %w", err)
	}
	for n, account := range late {
		if err := s.Locked(ctx, account, func(pgx.Tx) error { return nil }); err != nil {
			return n, err
		}
	}
	return len(late), nil
}
