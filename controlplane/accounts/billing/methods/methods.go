// Package methods keeps what accounts may be charged by: names of payment methods that the
// provider has given. No number of a card passes through us: a client hands it to the provider
// and us a token for it.
package methods

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/controlplane/accounts"
	"sluice.dev/sluice/controlplane/accounts/billing/provider"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/paging"
	"sluice.dev/sluice/platform/storage/audit"
	"sluice.dev/sluice/platform/storage/postgres"
)

// Most is how many payment methods an account may have.
const Most = 20

// Method is a payment method of an account.
type Method struct {
	ID        string    `json:"id"`       // paym_…
	Provider  string    `json:"provider"` // who charges it
	Type      string    `json:"type"`     // the provider's word: card, sepa_debit and so on
	Brand     string    `json:"brand,omitempty"`
	Last4     string    `json:"last4,omitempty"`
	ExpMonth  int       `json:"exp_month,omitzero"`
	ExpYear   int       `json:"exp_year,omitzero"`
	Default   bool      `json:"default"` // which invoices are charged to
	Charged   bool      `json:"charged"` // false: the provider keeps books only, and never charges it
	CreatedAt time.Time `json:"created_at"`

	reference string // the provider's name of it
}

// Store keeps payment methods of one provider.
type Store struct {
	DB       postgres.DB       // required
	Provider provider.Provider // required
	Now      func() time.Time  // nil: time.Now
}

// now is the time by the clock of s.
func (s Store) now() time.Time {
	if s.Now != nil {
		return s.Now()
	}
	return time.Now()
}

const columns = `id, provider, kind, brand, last4, exp_month, exp_year, is_default, created_at, reference`

// scan reads a row of columns.
func (s Store) scan(row pgx.CollectableRow) (m Method, err error) {
	err = row.Scan(&m.ID, &m.Provider, &m.Type, &m.Brand, &m.Last4, &m.ExpMonth, &m.ExpYear, &m.Default, &m.CreatedAt, &m.reference)
	m.CreatedAt, m.Charged = m.CreatedAt.UTC(), s.Provider.Charges()
	return m, err
}

// table is how payment methods are listed: newest first. An account has a few.
func (s Store) table() paging.Table[Method] {
	return paging.Table[Method]{
		Columns: columns, From: "payment_methods", Scan: s.scan,
		Sorts: []paging.Sort[Method]{paging.Time("created_at", "created_at", func(m Method) time.Time { return m.CreatedAt })},
		ID:    "id", IDOf: func(m Method) string { return m.ID },
		Created: "created_at",
	}
}

// Page returns page p of an account's payment methods.
func (s Store) Page(ctx context.Context, account string, p paging.Page) (paging.List[Method], error) {
	return s.table().Read(ctx, s.DB, p, `account_id = $1 AND provider = $2`, account, s.Provider.Name())
}

// Get returns one payment method of an account, or not_found.
func (s Store) Get(ctx context.Context, account, id string) (Method, error) {
	return s.one(ctx, s.DB, `SELECT `+columns+` FROM payment_methods WHERE account_id = $1 AND provider = $2 AND id = $3`, account, s.Provider.Name(), id)
}

// one runs a query that gives one payment method.
func (s Store) one(ctx context.Context, db postgres.DB, sql string, args ...any) (Method, error) {
	rows, _ := db.Query(ctx, sql, args...)
	m, err := pgx.CollectExactlyOneRow(rows, s.scan)
	return m, postgres.NotFound(err, "find payment method")
}

// customer is the provider's name of an account, which is made where there is none. Whoever
// is killed before it is stored leaves a customer at the provider that nobody uses.
func (s Store) customer(ctx context.Context, account string) (name string, err error) {
	const find = `SELECT customer FROM billing_customers WHERE account_id = $1 AND provider = $2`
	err = s.DB.QueryRow(ctx, find, account, s.Provider.Name()).Scan(&name)
	if !errors.Is(err, pgx.ErrNoRows) {
		return name, err
	}
	made, err := s.Provider.Customer(ctx, account)
	if err != nil {
		return "", failed(err)
	}
	_, err = s.DB.Exec(ctx, `INSERT INTO billing_customers (account_id, provider, customer) VALUES ($1, $2, $3)
		ON CONFLICT ON CONSTRAINT billing_customers_pkey DO NOTHING`, account, s.Provider.Name(), made)
	if err != nil {
		return "", fmt.Errorf("store the customer: %w", err)
	}
	return name, s.DB.QueryRow(ctx, find, account, s.Provider.Name()).Scan(&name) // that of whoever was first
}

// failed is what clients are told of a provider that does not answer as it should.
func failed(err error) error {
	return &apierror.Error{Code: decision.Unavailable, RetryAfter: 5, Message: "The payment provider does not answer. Nothing was changed here: send the request again.", Cause: err}
}

// refused is the error of a field that the provider does not take.
func refused(field, expected string, err error) error {
	r, ok := errors.AsType[*provider.Refusal](err)
	if !ok {
		return failed(err)
	}
	return apierror.Invalid([]decision.Detail{{Field: field, Issue: "is refused by the payment provider: " + r.Code, Expected: expected}})
}

// Setup prepares a browser to hand a payment method to the provider, which gives it a token.
func (s Store) Setup(ctx context.Context, account string) (provider.Setup, error) {
	customer, err := s.customer(ctx, account)
	if err != nil {
		return provider.Setup{}, err
	}
	made, err := s.Provider.Setup(ctx, customer)
	if refusal, ok := errors.AsType[*provider.Refusal](err); ok {
		return made, apierror.Errorf(decision.Conflict, "The payment provider of this platform, %s, has no setup: %s.", s.Provider.Name(), refusal.Code)
	}
	if err != nil {
		return made, failed(err)
	}
	return made, nil
}

// Add gives an account the payment method that a token of the provider names. The first is
// the default. One that it has already is returned as it is, but made the default if asked.
//
// The provider is told first: whoever is killed in between repeats the request.
func (s Store) Add(ctx context.Context, account, token string, def bool) (m Method, err error) {
	customer, err := s.customer(ctx, account)
	if err != nil {
		return m, err
	}
	got, err := s.Provider.Attach(ctx, customer, token)
	if err != nil {
		return m, refused("token", "a payment method's token that the provider has given to your client, such as pm_…", err)
	}
	err = s.locked(ctx, account, func(tx pgx.Tx) error {
		var count, here int
		err := tx.QueryRow(ctx, `SELECT count(*), count(*) FILTER (WHERE reference = $3) FROM payment_methods WHERE account_id = $1 AND provider = $2`,
			account, s.Provider.Name(), got.Reference).Scan(&count, &here)
		if err != nil {
			return fmt.Errorf("count payment methods: %w", err)
		}
		if here == 0 && count >= Most {
			return apierror.Errorf(decision.Conflict, "An account has at most %d payment methods: delete one.", Most)
		}
		if here == 0 {
			if err := s.insert(ctx, tx, account, got); err != nil {
				return err
			}
		}
		m, err = s.one(ctx, tx, `SELECT `+columns+` FROM payment_methods WHERE account_id = $1 AND provider = $2 AND reference = $3`, account, s.Provider.Name(), got.Reference)
		if err == nil && !m.Default && (def || count == 0) {
			err = s.makeDefault(ctx, tx, account, &m)
		}
		if err != nil || here > 0 {
			return err
		}
		return audit.RecordTx(ctx, tx, audit.Change{Account: account, Action: "payment_method.create", Target: m.ID, After: m})
	})
	return m, err
}

// insert stores a payment method that the account does not have.
func (s Store) insert(ctx context.Context, tx pgx.Tx, account string, m provider.Method) error {
	_, err := tx.Exec(ctx, `INSERT INTO payment_methods (id, account_id, provider, reference, kind, brand, last4, exp_month, exp_year, is_default, created_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, false, $10)`,
		accounts.NewID("paym_"), account, s.Provider.Name(), m.Reference, m.Kind, m.Brand, m.Last4, m.ExpMonth, m.ExpYear, s.now())
	if postgres.Constraint(err) == "payment_methods_reference_key" {
		return refused("token", "a payment method of yours", &provider.Refusal{Code: "is_used_elsewhere"})
	}
	if err != nil {
		return fmt.Errorf("store payment method: %w", err)
	}
	return nil
}

// locked runs change with the account locked, so that it has one default and no more methods
// than it may.
func (s Store) locked(ctx context.Context, account string, change func(pgx.Tx) error) error {
	return postgres.InTx(ctx, s.DB, func(tx pgx.Tx) error {
		var id string
		err := tx.QueryRow(ctx, `SELECT id FROM accounts WHERE id = $1 FOR UPDATE`, account).Scan(&id)
		if err != nil {
			return postgres.NotFound(err, "lock account")
		}
		return change(tx)
	})
}

// makeDefault makes m the default, and has what is open charged to it soon: its time has come a
// minute ago, so that clocks that differ a little agree about that.
func (s Store) makeDefault(ctx context.Context, tx pgx.Tx, account string, m *Method) error {
	_, err := tx.Exec(ctx, `UPDATE payment_methods SET is_default = false WHERE account_id = $1 AND provider = $2 AND is_default`, account, s.Provider.Name())
	if err == nil {
		_, err = tx.Exec(ctx, `UPDATE payment_methods SET is_default = true WHERE id = $1`, m.ID)
	}
	if err == nil {
		_, err = tx.Exec(ctx, `UPDATE invoice_collections SET next_at = $2 WHERE account_id = $1 AND invoice_id IN (
			SELECT id FROM invoices WHERE account_id = $1 AND status = 'open')`, account, s.now().Add(-time.Minute))
	}
	if err != nil {
		return fmt.Errorf("make a payment method the default: %w", err)
	}
	m.Default = true
	return nil
}

// SetDefault makes a payment method the one to which invoices are charged, what is open too.
func (s Store) SetDefault(ctx context.Context, account, id string) (m Method, err error) {
	err = s.locked(ctx, account, func(tx pgx.Tx) error {
		m, err = s.one(ctx, tx, `SELECT `+columns+` FROM payment_methods WHERE account_id = $1 AND provider = $2 AND id = $3`, account, s.Provider.Name(), id)
		if err != nil || m.Default {
			return err
		}
		before := m
		if err := s.makeDefault(ctx, tx, account, &m); err != nil {
			return err
		}
		return audit.RecordTx(ctx, tx, audit.Change{Account: account, Action: "payment_method.set_default", Target: id, Before: before, After: m})
	})
	return m, err
}

// Remove takes a payment method away from an account, at the provider first: whoever is killed
// in between repeats the request. Where it was the default, the newest of the others is.
func (s Store) Remove(ctx context.Context, account, id string) error {
	m, err := s.Get(ctx, account, id)
	if err != nil {
		return err
	}
	if err := s.Provider.Detach(ctx, m.reference); err != nil {
		return failed(err)
	}
	return s.locked(ctx, account, func(tx pgx.Tx) error {
		m, err := s.one(ctx, tx, `DELETE FROM payment_methods WHERE account_id = $1 AND provider = $2 AND id = $3 RETURNING `+columns, account, s.Provider.Name(), id)
		if err != nil {
			return err
		}
		if m.Default {
			next, err := s.one(ctx, tx, `SELECT `+columns+` FROM payment_methods WHERE account_id = $1 AND provider = $2 ORDER BY created_at DESC, id LIMIT 1`, account, s.Provider.Name())
			if err == nil {
				err = s.makeDefault(ctx, tx, account, &next)
			}
			if err != nil && apierror.Code(err) != decision.NotFound {
				return err
			}
		}
		return audit.RecordTx(ctx, tx, audit.Change{Account: account, Action: "payment_method.delete", Target: id, Before: m})
	})
}
