package accounts

import (
	"context"
	"net/mail"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/storage/audit"
	"sluice.dev/sluice/platform/storage/postgres"
)

// Roles of the people of an account. Owners and admins hold every scope.
const (
	Owner  = "owner"
	Admin  = "admin"
	Member = "member"
)

// User is a person who belongs to an account.
type User struct {
	ID        string    `json:"id"`
	Account   string    `json:"-"`
	Email     string    `json:"email"`  // lower case
	Role      string    `json:"role"`   // Owner, Admin or Member
	Status    string    `json:"status"` // active, or invited until the invitation is accepted
	CreatedAt time.Time `json:"created_at"`
}

// UserPrefix begins the identifiers of users.
const UserPrefix = "user_"

// UserColumns are what OneUser reads, for queries of the table users u.
const UserColumns = `u.id, u.account_id, u.email, u.role, CASE WHEN u.password_hash IS NULL THEN 'invited' ELSE 'active' END, u.created_at`

// ScanUser reads a row of UserColumns.
func ScanUser(row pgx.CollectableRow) (User, error) {
	u, err := pgx.RowToStructByPos[User](row)
	u.CreatedAt = u.CreatedAt.UTC()
	return u, err
}

// OneUser runs a query that gives one row of UserColumns. It fails with
// not_found when it gives none, and with conflict when the address is taken: by
// somebody who signs in with it, or in the same account.
func OneUser(ctx context.Context, db postgres.DB, doing, sql string, args ...any) (User, error) {
	rows, _ := db.Query(ctx, sql, args...)
	u, err := pgx.CollectExactlyOneRow(rows, ScanUser)
	switch postgres.Constraint(err) {
	case "users_active_email_key":
		return User{}, apierror.Errorf(decision.Conflict, "Somebody signs in with this e-mail address already. Another one is needed.")
	case "users_account_email_key":
		return User{}, apierror.Errorf(decision.Conflict, "The account has a user with this e-mail address already.")
	case "users_account_fkey":
		return User{}, apierror.Errorf(decision.NotFound, "There is no such account.")
	}
	return u, postgres.NotFound(err, doing)
}

// AddUser makes a user with a password's hash. It fails with invalid_request for
// a bad address or role, and with conflict when the address is taken.
func (s Store) AddUser(ctx context.Context, account, email, role, passwordHash string) (User, error) {
	email = NormalEmail(email)
	if err := apierror.Invalid(append(CheckEmail(email), CheckRole(role)...)); err != nil {
		return User{}, err
	}
	var u User
	err := postgres.InTx(ctx, s.DB, func(tx pgx.Tx) (err error) {
		u, err = OneUser(ctx, tx, "add user", `INSERT INTO users AS u (id, account_id, email, role, password_hash)
			VALUES ($1, $2, $3, $4, $5) RETURNING `+UserColumns, NewID(UserPrefix), account, email, role, passwordHash)
		if err != nil {
			return err
		}
		return audit.RecordTx(ctx, tx, audit.Change{Account: account, Action: "user.add", Target: u.ID, After: u})
	})
	return u, err
}

// UserByEmail finds who signs in with an address, in any account; not_found when
// nobody does.
func (s Store) UserByEmail(ctx context.Context, email string) (User, error) {
	return OneUser(ctx, s.DB, "find user", `SELECT `+UserColumns+` FROM users u
		WHERE email = $1 AND password_hash IS NOT NULL AND removed_at IS NULL`, NormalEmail(email))
}

// User returns one who has not been removed; not_found otherwise.
func (s Store) User(ctx context.Context, id string) (User, error) {
	return OneUser(ctx, s.DB, "find user", `SELECT `+UserColumns+` FROM users u WHERE id = $1 AND removed_at IS NULL`, id)
}

// NormalEmail is the form in which addresses are stored and compared.
func NormalEmail(email string) string { return strings.ToLower(strings.TrimSpace(email)) }

// CheckEmail returns the faults of an address in its normal form.
func CheckEmail(email string) []decision.Detail {
	a, err := mail.ParseAddress(email)
	if err != nil || a.Address != email || len(email) > 254 {
		return []decision.Detail{{Field: "email", Issue: "is not valid", Expected: "an e-mail address"}}
	}
	return nil
}

// CheckRole returns the faults of a role.
func CheckRole(role string) []decision.Detail {
	if role != Owner && role != Admin && role != Member {
		return []decision.Detail{{Field: "role", Issue: "is not valid", Expected: "owner, admin or member"}}
	}
	return nil
}

// SetPassword replaces the hash of a user's password.
func (s Store) SetPassword(ctx context.Context, user, passwordHash string) error {
	return postgres.InTx(ctx, s.DB, func(tx pgx.Tx) error {
		u, err := OneUser(ctx, tx, "set password", `UPDATE users u SET password_hash = $2 WHERE id = $1 AND removed_at IS NULL AND invitation IS NULL RETURNING `+UserColumns, user, passwordHash)
		if err != nil {
			return err
		}
		return audit.RecordTx(ctx, tx, audit.Change{Account: u.Account, Action: "user.set_password", Target: u.ID})
	})
}
