package accounts

import (
	"context"
	"net/mail"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/controlplane"
	"sluice.dev/sluice/controlplane/audit"
	"sluice.dev/sluice/controlplane/postgres"
	"sluice.dev/sluice/filters/decision"
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
	Email     string    `json:"email"` // lower case
	Role      string    `json:"role"`  // Owner, Admin or Member
	CreatedAt time.Time `json:"created_at"`
}

// UserPrefix begins the identifiers of users.
const UserPrefix = "user_"

const userColumns = `id, account_id, email, role, created_at`

func oneUser(ctx context.Context, db postgres.DB, doing, sql string, args ...any) (User, error) {
	rows, _ := db.Query(ctx, sql, args...)
	u, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[User])
	u.CreatedAt = u.CreatedAt.UTC()
	switch postgres.Constraint(err) {
	case "users_email_key":
		return User{}, controlplane.Errorf(decision.Conflict, "There is a user with this e-mail address already.")
	case "users_account_fkey":
		return User{}, controlplane.Errorf(decision.NotFound, "There is no such account.")
	}
	return u, postgres.NotFound(err, doing)
}

// AddUser makes a user with a password's hash. It fails with invalid_request for
// a bad address or role, and with conflict when the address is taken.
func (s Store) AddUser(ctx context.Context, account, email, role, passwordHash string) (User, error) {
	email = NormalEmail(email)
	if err := controlplane.Invalid(append(checkEmail(email), checkRole(role)...)); err != nil {
		return User{}, err
	}
	var u User
	err := postgres.InTx(ctx, s.DB, func(tx pgx.Tx) (err error) {
		u, err = oneUser(ctx, tx, "add user", `INSERT INTO users (id, account_id, email, role, password_hash)
			VALUES ($1, $2, $3, $4, $5) RETURNING `+userColumns, newID(UserPrefix), account, email, role, passwordHash)
		if err != nil {
			return err
		}
		return audit.RecordTx(ctx, tx, audit.Change{Account: account, Action: "user.add", Target: u.ID, After: u})
	})
	return u, err
}

// UserByEmail finds a user in any account; not_found when there is none.
func (s Store) UserByEmail(ctx context.Context, email string) (User, error) {
	return oneUser(ctx, s.DB, "find user", `SELECT `+userColumns+` FROM users WHERE email = $1`, NormalEmail(email))
}

// NormalEmail is the form in which addresses are stored and compared.
func NormalEmail(email string) string { return strings.ToLower(strings.TrimSpace(email)) }

func checkEmail(email string) []decision.Detail {
	a, err := mail.ParseAddress(email)
	if err != nil || a.Address != email || len(email) > 254 {
		return []decision.Detail{{Field: "email", Issue: "is not valid", Expected: "an e-mail address"}}
	}
	return nil
}

func checkRole(role string) []decision.Detail {
	if role != Owner && role != Admin && role != Member {
		return []decision.Detail{{Field: "role", Issue: "is not valid", Expected: "owner, admin or member"}}
	}
	return nil
}

// SetPassword replaces the hash of a user's password.
func (s Store) SetPassword(ctx context.Context, user, passwordHash string) error {
	return postgres.InTx(ctx, s.DB, func(tx pgx.Tx) error {
		u, err := oneUser(ctx, tx, "set password", `UPDATE users SET password_hash = $2 WHERE id = $1 RETURNING `+userColumns, user, passwordHash)
		if err != nil {
			return err
		}
		return audit.RecordTx(ctx, tx, audit.Change{Account: u.Account, Action: "user.set_password", Target: u.ID})
	})
}
