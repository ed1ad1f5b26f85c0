// Package accounts keeps accounts, their people and their limits. A change that
// edges must know reaches them through the key feed, in the same transaction.
package accounts

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/controlplane/accounts/apikeys"
	"sluice.dev/sluice/controlplane/accounts/usage"
	"sluice.dev/sluice/filters/credentials/keytable"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/paging"
	"sluice.dev/sluice/platform/storage/audit"
	"sluice.dev/sluice/platform/storage/postgres"
)

// Account is a customer, or the operator.
type Account struct {
	ID        string    `json:"id"`
	Name      string    `json:"name"`
	Plan      string    `json:"plan"`
	Operator  bool      `json:"operator"`   // its keys with scope * reach the admin API
	CreatedAt time.Time `json:"created_at"` // UTC
	// SuspendedAt is since when an operator keeps the account out (UTC); nil: it is not
	// suspended. SuspendedReason is what its people are told.
	SuspendedAt     *time.Time `json:"suspended_at"`
	SuspendedReason string     `json:"suspended_reason,omitempty"`
}

// Store keeps accounts in Postgres.
type Store struct {
	DB postgres.DB
	// Resumed lets go on, in the transaction that resumes an account, what waited while it
	// was suspended; nil: nothing did.
	Resumed func(ctx context.Context, tx pgx.Tx, account string) error
}

const columns = `id, name, plan, operator, created_at, suspended_at, suspended_reason`

// scan reads a row of columns.
func scan(row pgx.CollectableRow) (a Account, err error) {
	err = row.Scan(&a.ID, &a.Name, &a.Plan, &a.Operator, &a.CreatedAt, &a.SuspendedAt, &a.SuspendedReason)
	a.CreatedAt = a.CreatedAt.UTC()
	if a.SuspendedAt != nil {
		*a.SuspendedAt = a.SuspendedAt.UTC()
	}
	return a, err
}

// one runs a query that gives one account. It fails with not_found, and with
// invalid_request for a plan that there is not.
func one(ctx context.Context, db postgres.DB, doing, sql string, args ...any) (Account, error) {
	rows, _ := db.Query(ctx, sql, args...)
	a, err := pgx.CollectExactlyOneRow(rows, scan)
	if postgres.Constraint(err) == "accounts_plan_fkey" {
		return a, apierror.Invalid([]decision.Detail{{Field: "plan", Issue: "is not a known plan", Expected: "the name of a plan"}})
	}
	return a, postgres.NotFound(err, doing)
}

// Create makes an account. It fails with invalid_request for a bad name or an
// unknown plan.
func (s Store) Create(ctx context.Context, name, plan string) (Account, error) {
	return s.create(ctx, name, plan, false)
}

// CreateOperator makes an account whose keys with scope * are administrators.
func (s Store) CreateOperator(ctx context.Context, name, plan string) (Account, error) {
	return s.create(ctx, name, plan, true)
}

// create checks, stores and records a new account.
func (s Store) create(ctx context.Context, name, plan string, operator bool) (Account, error) {
	if err := apierror.Invalid(append(checkName(name), checkPlan(plan)...)); err != nil {
		return Account{}, err
	}
	var a Account
	err := postgres.InTx(ctx, s.DB, func(tx pgx.Tx) (err error) {
		a, err = one(ctx, tx, "create account",
			`INSERT INTO accounts (id, name, plan, operator) VALUES ($1, $2, $3, $4) RETURNING `+columns,
			NewID(keytable.AccountPrefix), name, plan, operator)
		if err != nil {
			return err
		}
		err = audit.RecordTx(ctx, tx, audit.Change{Account: a.ID, Action: "account.create", Target: a.ID, After: a})
		if err != nil {
			return err
		}
		return apikeys.EmitAccountTx(ctx, tx, a.ID)
	})
	return a, err
}

// Get returns one account; not_found when there is none.
func (s Store) Get(ctx context.Context, id string) (Account, error) {
	return one(ctx, s.DB, "get account", `SELECT `+columns+` FROM accounts WHERE id = $1`, id)
}

// List is how accounts are listed: newest first, by name if asked for.
var List = paging.Table[Account]{
	Columns: columns, From: "accounts", Scan: scan,
	Sorts: []paging.Sort[Account]{
		paging.Time("created_at", "created_at", func(a Account) time.Time { return a.CreatedAt }),
		paging.Text("name", "name", func(a Account) string { return a.Name }),
	},
	ID: "id", IDOf: func(a Account) string { return a.ID },
	Created: "created_at", Name: "name", Param: "name",
}

// Page returns page p of all accounts.
func (s Store) Page(ctx context.Context, p paging.Page) (paging.List[Account], error) {
	return List.Read(ctx, s.DB, p, `true`)
}

// Change says what to change of an account; nil fields stay as they are.
type Change struct {
	Name *string `json:"name"`
	Plan *string `json:"plan"`
}

// check returns every fault of c at once.
func (c Change) check() error {
	var details []decision.Detail
	if c.Name != nil {
		details = checkName(*c.Name)
	}
	if c.Plan != nil {
		details = append(details, checkPlan(*c.Plan)...)
	}
	return apierror.Invalid(details)
}

// Update changes an account, and sends the records of its keys to the edges
// when the plan is another one.
func (s Store) Update(ctx context.Context, id string, c Change) (a Account, err error) {
	if err := c.check(); err != nil {
		return a, err
	}
	err = postgres.InTx(ctx, s.DB, func(tx pgx.Tx) error {
		before, err := lock(ctx, tx, id)
		if err != nil {
			return err
		}
		a, err = one(ctx, tx, "update account", `UPDATE accounts SET name = coalesce($2, name), plan = coalesce($3, plan)
			WHERE id = $1 RETURNING `+columns, id, c.Name, c.Plan)
		if err != nil {
			return err
		}
		err = audit.RecordTx(ctx, tx, audit.Change{Account: id, Action: "account.update", Target: id, Before: before, After: a})
		if err != nil || a.Plan == before.Plan {
			return err
		}
		// Which plan a past day was on, for its invoice. Processes of before this do not write it:
		// while they run, a change counts as if the account had been on the new plan all month.
		if _, err := tx.Exec(ctx, `INSERT INTO account_plans (account_id, plan, until) VALUES ($1, $2, now())`, id, before.Plan); err != nil {
			return fmt.Errorf("note the plan of before: %w", err)
		}
		if err := (usage.Store{}).RefreshTx(ctx, tx, id); err != nil {
			return err
		}
		return apikeys.EmitAccountTx(ctx, tx, id)
	})
	return a, err
}

// checkName wants text; PostgreSQL cannot store a zero byte.
func checkName(name string) []decision.Detail {
	if n := utf8.RuneCountInString(name); strings.TrimSpace(name) == "" || n > 200 || !utf8.ValidString(name) || strings.ContainsRune(name, 0) {
		return []decision.Detail{{Field: "name", Issue: "is not valid", Expected: "1 to 200 characters"}}
	}
	return nil
}

// checkPlan looks at the form only: whether there is such a plan is a constraint
// of the database.
func checkPlan(plan string) []decision.Detail {
	if plan == "" || len(plan) > 40 {
		return []decision.Detail{{Field: "plan", Issue: "is not valid", Expected: "the name of a plan"}}
	}
	return nil
}

// NewID returns a new identifier: prefix and 13 digits of 64 random bits.
func NewID(prefix string) string {
	var b [8]byte
	rand.Read(b[:])
	return keytable.FormatID(prefix, binary.LittleEndian.Uint64(b[:]))
}
