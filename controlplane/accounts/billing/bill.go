package billing

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/platform/storage/postgres"
)

// Draft is the state of an invoice that is not issued yet: it is computed when it is asked for.
const Draft = "draft"

// Bill is an invoice with what it is made of.
type Bill struct {
	Invoice
	// Lines sum up to the amount; none: the invoice was imported.
	Lines []Line `json:"lines"`
	// ConfigVersion is the configuration whose prices they are.
	ConfigVersion int64 `json:"config_version,omitzero"`
	// Collection is how the money is collected; absent of imported invoices and drafts.
	Collection *Collection `json:"collection,omitempty"`
}

// Line is a part of an invoice: the fee of a plan, or what was used of something on it.
//
// Of what is metered, amount is (quantity - included) × unit_amount ÷ per, in the currency's
// smallest unit and rounded half up. Of a fee it is the monthly fee × quantity ÷ per.
type Line struct {
	Description string `json:"description"`
	Plan        string `json:"plan"`
	Metric      string `json:"metric"`       // fee, or what is metered
	PeriodStart Date   `json:"period_start"` // the days on which the account was on the plan
	PeriodEnd   Date   `json:"period_end"`
	Quantity    int64  `json:"quantity"`    // of a fee: days
	Included    int64  `json:"included"`    // of the quantity: costs nothing
	UnitAmount  string `json:"unit_amount"` // whole units of the currency, such as "0.40"
	Per         int64  `json:"per"`         // how many units that is for; of a fee: days of the month
	Amount      int64  `json:"amount"`      // in the currency's smallest unit
	// Usage is the request that answers the quantity; absent of a fee.
	Usage string `json:"usage,omitempty"`
}

// Collection is how the money of an invoice is collected.
type Collection struct {
	Attempts      int        `json:"attempts"`                  // that were refused
	Failure       string     `json:"failure,omitempty"`         // why nothing is charged, or the last attempt was refused
	PaymentMethod string     `json:"payment_method,omitempty"`  // that was charged last
	NextAttemptAt *time.Time `json:"next_attempt_at,omitempty"` // absent: not before something changes
}

// Bill returns an invoice of an account, or not_found.
func (s Store) Bill(ctx context.Context, account, id string) (b Bill, err error) {
	rows, _ := s.DB.Query(ctx, `SELECT `+columns+` FROM invoices i WHERE account_id = $1 AND id = $2`, account, id)
	if b.Invoice, err = pgx.CollectExactlyOneRow(rows, scan); err != nil {
		return b, postgres.NotFound(err, "find invoice")
	}
	rows, _ = s.DB.Query(ctx, `SELECT line FROM invoice_lines WHERE invoice_id = $1 ORDER BY position`, id)
	if b.Lines, err = pgx.CollectRows(rows, pgx.RowTo[Line]); err != nil {
		return b, fmt.Errorf("read lines: %w", err)
	}
	var c Collection
	err = s.DB.QueryRow(ctx, `SELECT m.config_version, c.attempts, c.failure, c.method_id, CASE WHEN i.status = 'open' THEN c.next_at END
		FROM invoices i JOIN invoiced_months m ON m.invoice_id = i.id JOIN invoice_collections c ON c.invoice_id = i.id WHERE i.id = $1`, id).
		Scan(&b.ConfigVersion, &c.Attempts, &c.Failure, &c.PaymentMethod, &c.NextAttemptAt)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return b, nil
	case err != nil:
		return b, fmt.Errorf("read the collection: %w", err)
	}
	if c.NextAttemptAt != nil {
		utc := c.NextAttemptAt.UTC()
		c.NextAttemptAt = &utc
	}
	b.Collection = &c
	return b, nil
}
