package invoicing

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"
	"sluice.dev/sluice/controlplane/accounts/billing"
	"sluice.dev/sluice/controlplane/accounts/billing/provider"
	"sluice.dev/sluice/platform/storage/audit"
)

const (
	// lease is for how long nobody else takes an invoice that is being collected.
	lease = 2 * time.Minute
	// OneTakes bounds the collection of one invoice.
	OneTakes = 40 * time.Second
	// atOnce is how many are collected at a time.
	atOnce = 8
	// soon is when a provider is asked again that did not answer, and settling when it is asked
	// about a payment that takes days.
	soon, settling = 5 * time.Minute, time.Hour
	// MaxAttempts is after how many refusals an invoice is charged no more, until another
	// payment method becomes the default.
	MaxAttempts = 8
)

// What a collection says when nothing is charged, besides the provider's words.
const (
	nothingCharged = "nothing_is_charged" // the provider keeps books only
	noMethod       = "no_payment_method"
	wasCanceled    = "payment_canceled" // by somebody at the provider
	noAnswer       = "provider_unreachable"
)

// backoff is how long after its attempts were refused so often an invoice is charged again:
// 1, 2, 3 days and so on.
func backoff(attempts int) time.Duration { return time.Duration(attempts) * 24 * time.Hour }

// due is an invoice to be collected.
type due struct {
	Invoice  string
	Account  string
	Number   string
	Amount   int64
	Currency string
	Provider string // of Payment
	Payment  string
	Attempts int
}

// Collect charges the open invoices whose time has come to their accounts' default payment
// methods, and returns how many became paid. When ctx ends it finishes what it has begun and
// begins no more.
//
// An invoice has one payment at the provider, which is charged once at most: it is prepared,
// its name is stored, and only then is it charged. Whoever is killed in between leaves a
// payment that is looked at before it is charged again, when the lease has passed.
func (s Store) Collect(ctx context.Context) (paid int, err error) {
	for {
		list, err := s.claim(ctx)
		if err != nil || len(list) == 0 {
			return paid, err
		}
		results := make([]bool, len(list))
		var g errgroup.Group
		for i, d := range list {
			g.Go(func() error { // what has begun ends, also after the round
				bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), OneTakes)
				defer cancel()
				done, err := s.collect(bounded, d)
				results[i] = done
				if err != nil {
					slog.WarnContext(ctx, "an invoice was not collected", "invoice", d.Invoice, "cause", err)
				}
				return nil
			})
		}
		_ = g.Wait() // nobody fails
		for _, done := range results {
			if done {
				paid++
			}
		}
		if ctx.Err() != nil {
			return paid, nil
		}
	}
}

// claim takes the invoices that are due first, and puts them off by the lease.
func (s Store) claim(ctx context.Context) ([]due, error) {
	rows, _ := s.DB.Query(ctx, `WITH taken AS (
			SELECT c.invoice_id FROM invoice_collections c JOIN invoices i ON i.id = c.invoice_id
			WHERE c.next_at <= $1 AND i.status = 'open' ORDER BY c.next_at LIMIT $3 FOR UPDATE OF c SKIP LOCKED)
		UPDATE invoice_collections c SET next_at = $2 FROM taken t JOIN invoices i ON i.id = t.invoice_id WHERE c.invoice_id = t.invoice_id
		RETURNING i.id, i.account_id, i.number, i.amount, i.currency, c.provider, c.payment, c.attempts`, s.now(), s.now().Add(lease), atOnce)
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[due])
	if err != nil {
		return nil, fmt.Errorf("look for invoices to collect: %w", err)
	}
	return list, nil
}

// collect charges one invoice and reports whether it became paid.
func (s Store) collect(ctx context.Context, d due) (paid bool, err error) {
	if !s.Provider.Charges() {
		return false, s.rest(ctx, d, nothingCharged)
	}
	var method, reference, customer string
	err = s.DB.QueryRow(ctx, `SELECT m.id, m.reference, c.customer FROM payment_methods m
		JOIN billing_customers c ON c.account_id = m.account_id AND c.provider = m.provider
		WHERE m.account_id = $1 AND m.provider = $2 AND m.is_default`, d.Account, s.Provider.Name()).Scan(&method, &reference, &customer)
	started := d.Payment != "" && d.Provider == s.Provider.Name()
	if errors.Is(err, pgx.ErrNoRows) && !started {
		return false, s.rest(ctx, d, noMethod)
	}
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return false, fmt.Errorf("find the payment method: %w", err)
	}
	out, err := s.charge(ctx, d, customer, reference)
	if err != nil {
		return false, errors.Join(err, s.later(ctx, d, soon, noAnswer))
	}
	return s.settle(ctx, d, method, out)
}

// charge has the invoice's payment charged, unless it is already. reference is empty if there
// is no payment method: then it only looks.
func (s Store) charge(ctx context.Context, d due, customer, reference string) (provider.Outcome, error) {
	if d.Payment == "" || d.Provider != s.Provider.Name() {
		payment, err := s.Provider.Prepare(ctx, provider.Payment{
			Customer: customer, Invoice: d.Invoice, Amount: d.Amount, Currency: d.Currency, Description: "Invoice " + d.Number,
		})
		if refusal, ok := errors.AsType[*provider.Refusal](err); ok {
			return provider.Outcome{Failure: refusal.Code}, nil
		}
		if err != nil {
			return provider.Outcome{}, err
		}
		// Of two that prepared one at once, both go on with the one that is stored.
		err = s.DB.QueryRow(ctx, `UPDATE invoice_collections SET provider = $2, payment = CASE WHEN provider = $2 AND payment <> '' THEN payment ELSE $3 END
			WHERE invoice_id = $1 RETURNING payment`, d.Invoice, s.Provider.Name(), payment).Scan(&d.Payment)
		if err != nil {
			return provider.Outcome{}, fmt.Errorf("store the payment: %w", err)
		}
	}
	out, err := s.Provider.Look(ctx, d.Payment)
	if err != nil || out.State != provider.Unpaid {
		return out, err
	}
	if reference == "" {
		return provider.Outcome{Failure: noMethod}, nil
	}
	return s.Provider.Charge(ctx, d.Payment, reference)
}

// settle writes what became of a charge.
func (s Store) settle(ctx context.Context, d due, method string, out provider.Outcome) (paid bool, err error) {
	switch out.State {
	case provider.Paid:
		return true, s.pay(ctx, d, method)
	case provider.Processing:
		return false, s.later(ctx, d, settling, "")
	case provider.Canceled:
		return false, s.rest(ctx, d, wasCanceled)
	}
	if out.Failure == noMethod {
		return false, s.rest(ctx, d, noMethod)
	}
	failure := cmp.Or(out.Failure, "unknown")
	// A method that became the default meanwhile has set next_at to now or before: it stays.
	_, err = s.DB.Exec(ctx, `UPDATE invoice_collections SET attempts = attempts + 1, failure = $2, method_id = $3,
			next_at = CASE WHEN next_at <= $4 THEN next_at WHEN attempts + 1 < $5 THEN $6::timestamptz END
		WHERE invoice_id = $1`, d.Invoice, failure, method, s.now(), MaxAttempts, s.now().Add(backoff(d.Attempts+1)))
	if err != nil {
		return false, fmt.Errorf("note a refusal: %w", err)
	}
	return false, nil
}

// pay makes an invoice paid, whatever has become of it meanwhile: the money has been taken.
func (s Store) pay(ctx context.Context, d due, method string) error {
	return s.billing().Locked(ctx, d.Account, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `UPDATE invoices SET status = $2 WHERE id = $1 AND status <> $2`, d.Invoice, billing.Paid)
		if err != nil {
			return fmt.Errorf("mark the invoice paid: %w", err)
		}
		_, err = tx.Exec(ctx, `UPDATE invoice_collections SET next_at = NULL, failure = '', method_id = $2 WHERE invoice_id = $1`, d.Invoice, method)
		if err != nil || tag.RowsAffected() == 0 {
			return err
		}
		return audit.RecordTx(ctx, tx, audit.Change{Account: d.Account, Action: "invoice.collect", Target: d.Invoice,
			After: map[string]any{"amount": d.Amount, "currency": d.Currency, "provider": s.Provider.Name(), "payment_method": method}})
	})
}

// later puts an invoice off.
func (s Store) later(ctx context.Context, d due, wait time.Duration, failure string) error {
	next := s.now().Add(wait)
	return s.putOff(ctx, d, failure, &next)
}

// rest leaves an invoice alone until a payment method becomes the default.
func (s Store) rest(ctx context.Context, d due, failure string) error {
	return s.putOff(ctx, d, failure, nil)
}

// putOff sets when an invoice is collected next, unless a payment method became the default
// since it was claimed: then its time has come.
func (s Store) putOff(ctx context.Context, d due, failure string, next *time.Time) error {
	_, err := s.DB.Exec(context.WithoutCancel(ctx), `UPDATE invoice_collections
		SET failure = $2, next_at = CASE WHEN next_at <= $3 THEN next_at ELSE $4::timestamptz END WHERE invoice_id = $1`, d.Invoice, failure, s.now(), next)
	if err != nil {
		return fmt.Errorf("put an invoice off: %w", err)
	}
	return nil
}
