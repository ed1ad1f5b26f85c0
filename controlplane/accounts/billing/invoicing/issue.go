package invoicing

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/controlplane/accounts"
	"sluice.dev/sluice/controlplane/accounts/billing"
	"sluice.dev/sluice/platform/storage/audit"
)

// Upcoming is the invoice of the present month so far, as a draft: by the prices that are in
// force now, with the fee of the days until today. Nothing is stored.
func (s Store) Upcoming(ctx context.Context, account string) (billing.Bill, error) {
	now := s.now()
	prices, err := s.Prices(ctx, now)
	if err != nil {
		return billing.Bill{}, err
	}
	month := monthOf(now)
	b, err := s.compute(ctx, account, month, now.Truncate(24*time.Hour).AddDate(0, 0, 1), prices)
	if err != nil {
		return b, err
	}
	b.Number, b.Status = number(month), billing.Draft
	b.IssuedAt = month.AddDate(0, 1, 0).Add(Settle)
	b.DueAt = b.IssuedAt.Add(Terms)
	return b, nil
}

// number is that of the invoice of a month.
func number(month time.Time) string { return billing.IssuedPrefix + month.Format("2006-01") }

// Issue issues what is missing of the invoices of past months until ctx ends, and returns how
// many it issued. It may run at several places at a time and be killed anywhere: the row of
// an account's month is the key under which its invoice is written, in one transaction. An
// account that fails is logged, and does not keep others from theirs.
func (s Store) Issue(ctx context.Context) (issued int, err error) {
	for back := months; back > 0; back-- {
		month := monthOf(s.now()).AddDate(0, -back, 0)
		end := month.AddDate(0, 1, 0)
		if s.now().Before(end.Add(Settle)) {
			continue
		}
		prices, err := s.Prices(ctx, end)
		if err != nil {
			return issued, err
		}
		if len(prices.Plans) == 0 {
			continue
		}
		n, err := s.issueMonth(ctx, month, prices)
		issued += n
		if err != nil {
			return issued, err
		}
	}
	return issued, nil
}

// issueMonth issues the invoices of one month.
func (s Store) issueMonth(ctx context.Context, month time.Time, prices Prices) (issued int, err error) {
	for after := ""; ; {
		missing, err := s.missing(ctx, month, prices, after)
		if err != nil || len(missing) == 0 {
			return issued, err
		}
		for _, account := range missing {
			made, err := s.issue(ctx, account, month, prices)
			switch {
			case ctx.Err() != nil:
				return issued, nil // the next round goes on
			case err != nil:
				slog.WarnContext(ctx, "an invoice was not issued", "account", account, "month", month.Format("2006-01"), "cause", err)
			case made:
				issued++
			}
			after = account
		}
	}
}

// batch is how many accounts are looked for at a time.
const batch = 500

// missing are accounts after one that may owe something for a month, of which it is not
// written yet whether they do.
func (s Store) missing(ctx context.Context, month time.Time, prices Prices, after string) ([]string, error) {
	rows, _ := s.DB.Query(ctx, `SELECT a.id FROM accounts a
		WHERE a.id > $1 AND a.created_at < $2
			AND (a.plan = ANY($3) OR EXISTS (SELECT FROM account_plans p WHERE p.account_id = a.id AND p.until > $4 AND p.plan = ANY($3)))
			AND NOT EXISTS (SELECT FROM invoiced_months m WHERE m.account_id = a.id AND m.month = $4)
		ORDER BY a.id LIMIT $5`, after, month.AddDate(0, 1, 0), slices.Collect(maps.Keys(prices.Plans)), month, batch)
	list, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("look for months without an invoice: %w", err)
	}
	return list, nil
}

// errDone ends the transaction of a month that somebody else has issued.
var errDone = errors.New("issued already")

// issue writes an account's month, with an invoice if it has a price, and reports whether it
// has one. An invoice of nothing is paid.
func (s Store) issue(ctx context.Context, account string, month time.Time, prices Prices) (made bool, err error) {
	b, err := s.compute(ctx, account, month, month.AddDate(0, 1, 0), prices)
	if err != nil {
		return false, err
	}
	made = b.Currency != ""
	b.ID, b.Number, b.Status, b.IssuedAt = accounts.NewID("inv_"), number(month), billing.Open, s.now()
	b.DueAt = b.IssuedAt.Add(Terms)
	if b.Amount == 0 {
		b.Status = billing.Paid
	}
	err = s.billing().Locked(ctx, account, func(tx pgx.Tx) error {
		var invoice *string
		if made {
			invoice = &b.ID
			if err := insertTx(ctx, tx, account, b); err != nil {
				return err
			}
		}
		tag, err := tx.Exec(ctx, `INSERT INTO invoiced_months (account_id, month, invoice_id, config_version) VALUES ($1, $2, $3, $4)
			ON CONFLICT ON CONSTRAINT invoiced_months_pkey DO NOTHING`, account, month, invoice, prices.Version)
		if err != nil {
			return fmt.Errorf("note the month: %w", err)
		}
		if tag.RowsAffected() == 0 {
			return errDone
		}
		return nil
	})
	if errors.Is(err, errDone) {
		return false, nil
	}
	return made && err == nil, err
}

// insertTx writes an invoice, its lines, how it is collected, and who made it.
func insertTx(ctx context.Context, tx pgx.Tx, account string, b billing.Bill) error {
	tag, err := tx.Exec(ctx, `INSERT INTO invoices (id, account_id, number, status, currency, amount, period_start, period_end, issued_at, due_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) ON CONFLICT ON CONSTRAINT invoices_number_key DO NOTHING`,
		b.ID, account, b.Number, b.Status, b.Currency, b.Amount, b.PeriodStart.Time, b.PeriodEnd.Time, b.IssuedAt, b.DueAt)
	if err != nil {
		return fmt.Errorf("issue invoice: %w", err)
	}
	if tag.RowsAffected() == 0 {
		return errDone
	}
	for i, line := range b.Lines {
		if _, err := tx.Exec(ctx, `INSERT INTO invoice_lines (invoice_id, position, line) VALUES ($1, $2, $3)`, b.ID, i, line); err != nil {
			return fmt.Errorf("write a line: %w", err)
		}
	}
	var next *time.Time
	if b.Status == billing.Open {
		next = &b.IssuedAt
	}
	if _, err := tx.Exec(ctx, `INSERT INTO invoice_collections (invoice_id, account_id, next_at) VALUES ($1, $2, $3)`, b.ID, account, next); err != nil {
		return fmt.Errorf("have the invoice collected: %w", err)
	}
	return audit.RecordTx(ctx, tx, audit.Change{Account: account, Action: "invoice.issue", Target: b.ID, After: b.Invoice})
}
