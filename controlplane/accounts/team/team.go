// Package team lets an account invite people, give them roles and remove them
// (contract 3.3: users:read, users:write).
package team

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/controlplane/accounts"
	"sluice.dev/sluice/controlplane/accounts/oauth"
	"sluice.dev/sluice/controlplane/accounts/sessions"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/filters/scopes"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/clock"
	"sluice.dev/sluice/platform/http/paging"
	"sluice.dev/sluice/platform/storage/audit"
	"sluice.dev/sluice/platform/storage/postgres"
)

// InvitationLife is for how long an invitation can be accepted.
const InvitationLife = 7 * 24 * time.Hour

// MaxPeople is how many people an account may have, invited ones included.
const MaxPeople = 1000

// Store keeps the people of accounts.
type Store struct {
	DB postgres.DB
	// Now is the clock; nil: time.Now.
	Now func() time.Time
}

// now is the time by the clock of s.
func (s Store) now() time.Time { return clock.Or(s.Now) }

// Invitation is a new member's way in. The token is shown this once: whoever
// invites hands it on, by whatever way they trust.
type Invitation struct {
	accounts.User
	Token     string    `json:"invitation_token"`
	ExpiresAt time.Time `json:"invitation_expires_at"` // UTC
}

// Invite adds a person to an account. by holds the scopes of whoever invites:
// only who has everything may make owners and admins (AUTH_002). It fails with
// invalid_request for a bad address or role, and with conflict when the account has
// the address already, or MaxPeople. What other accounts have makes no difference.
func (s Store) Invite(ctx context.Context, account, email, role string, by []string) (i Invitation, err error) {
	email = accounts.NormalEmail(email)
	if err := apierror.Invalid(append(accounts.CheckEmail(email), accounts.CheckRole(role)...)); err != nil {
		return i, err
	}
	if err := mayGrant(by, role); err != nil {
		return i, err
	}
	i.Token, i.ExpiresAt = newToken(), s.now().Add(InvitationLife).UTC().Truncate(time.Second)
	hash := sha256.Sum256([]byte(i.Token))
	err = postgres.InTx(ctx, s.DB, func(tx pgx.Tx) error {
		if err := checkRoom(ctx, tx, account); err != nil {
			return err
		}
		i.User, err = accounts.OneUser(ctx, tx, "invite", `INSERT INTO users AS u (id, account_id, email, role, invitation, invited_until, created_at)
			VALUES ($1, $2, $3, $4, $5, $6, $7) RETURNING `+accounts.UserColumns, accounts.NewID(accounts.UserPrefix), account, email, role, hash[:], i.ExpiresAt, s.now())
		if err != nil {
			return err
		}
		return audit.RecordTx(ctx, tx, audit.Change{Account: account, Action: "user.invite", Target: i.ID, After: i.User})
	})
	return i, err
}

// checkRoom fails with conflict when the account has as many people as it may.
func checkRoom(ctx context.Context, tx pgx.Tx, account string) error {
	var full bool
	err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM users WHERE account_id = $1 AND removed_at IS NULL OFFSET $2)`,
		account, MaxPeople-1).Scan(&full)
	if err != nil {
		return fmt.Errorf("count users: %w", err)
	}
	if full {
		return apierror.Errorf(decision.Conflict, "An account can have at most %d people.", MaxPeople)
	}
	return nil
}

// errInvitation is what is wrong with a token that opens nothing.
var errInvitation = apierror.Invalid([]decision.Detail{{Field: "token", Issue: "is unknown, used or too old", Expected: "the token of an open invitation"}})

// Find fails as Accept does, with invalid_request, when the token is unknown, used
// or too old.
func (s Store) Find(ctx context.Context, token string) error {
	hash := sha256.Sum256([]byte(token))
	var open bool
	err := s.DB.QueryRow(ctx, `SELECT EXISTS (SELECT FROM users WHERE invitation = $1 AND invited_until > $2 AND removed_at IS NULL)`,
		hash[:], s.now()).Scan(&open)
	if err != nil {
		return fmt.Errorf("find invitation: %w", err)
	}
	if !open {
		return errInvitation
	}
	return nil
}

// Accept turns an invitation into a membership with a password's hash. It fails
// with invalid_request when the token is unknown, used or too old, and with conflict
// when somebody signs in with the address already: it belongs to whoever accepts
// first.
func (s Store) Accept(ctx context.Context, token, passwordHash string) (u accounts.User, err error) {
	hash := sha256.Sum256([]byte(token))
	err = postgres.InTx(ctx, s.DB, func(tx pgx.Tx) error {
		u, err = accounts.OneUser(ctx, tx, "accept invitation", `UPDATE users u SET password_hash = $2, invitation = NULL, invited_until = NULL
			WHERE invitation = $1 AND invited_until > $3 AND removed_at IS NULL RETURNING `+accounts.UserColumns, hash[:], passwordHash, s.now())
		if apierror.Code(err) == decision.NotFound {
			return errInvitation
		}
		if err != nil {
			return err
		}
		return audit.RecordTx(ctx, tx, audit.Change{Actor: u.ID, Account: u.Account, Action: "user.join", Target: u.ID})
	})
	return u, err
}

// List is how people are listed: oldest first, by address if asked for.
var List = paging.Table[accounts.User]{
	Columns: accounts.UserColumns, From: "users u", Scan: accounts.ScanUser,
	Sorts: []paging.Sort[accounts.User]{
		paging.Time("created_at", "u.created_at", func(u accounts.User) time.Time { return u.CreatedAt }),
		paging.Text("email", "u.email", func(u accounts.User) string { return u.Email }),
	},
	Ascending: true,
	ID:        "u.id", IDOf: func(u accounts.User) string { return u.ID },
	Created: "u.created_at", Name: "u.email", Param: "email",
}

// Page returns page p of an account's people.
func (s Store) Page(ctx context.Context, account string, p paging.Page) (paging.List[accounts.User], error) {
	return List.Read(ctx, s.DB, p, `u.account_id = $1 AND u.removed_at IS NULL`, account)
}

// Get returns one person of the account; not_found for anyone else.
func (s Store) Get(ctx context.Context, account, id string) (accounts.User, error) {
	return get(ctx, s.DB, account, id)
}

// get is Get within a transaction or without.
func get(ctx context.Context, db postgres.DB, account, id string) (accounts.User, error) {
	return accounts.OneUser(ctx, db, "get user", `SELECT `+accounts.UserColumns+` FROM users u
		WHERE id = $1 AND account_id = $2 AND removed_at IS NULL`, id, account)
}

// SetRole gives a person another role and ends their sessions, whose scopes are
// those of the old one. by holds the scopes of whoever does it; both roles must
// be within them. An account keeps at least one active owner: else conflict.
func (s Store) SetRole(ctx context.Context, account, id, role string, by []string) (u accounts.User, err error) {
	if err := apierror.Invalid(accounts.CheckRole(role)); err != nil {
		return u, err
	}
	if err := mayGrant(by, role); err != nil {
		return u, err
	}
	err = s.change(ctx, account, id, by, func(tx pgx.Tx, before accounts.User) error {
		u = before
		if before.Role == role {
			return nil
		}
		u, err = accounts.OneUser(ctx, tx, "set role", `UPDATE users u SET role = $2 WHERE id = $1 RETURNING `+accounts.UserColumns, id, role)
		if err != nil {
			return err
		}
		if err := s.keepAnOwner(ctx, tx, account, before); err != nil {
			return err
		}
		err := audit.RecordTx(ctx, tx, audit.Change{Account: account, Action: "user.set_role", Target: id, Before: before, After: u})
		if err != nil {
			return err
		}
		return s.endAllTx(ctx, tx, id)
	})
	return u, err
}

// Remove takes a person out of the account and ends their sessions. Keys that
// they made belong to the account and stay. The rules are those of SetRole.
func (s Store) Remove(ctx context.Context, account, id string, by []string) error {
	return s.change(ctx, account, id, by, func(tx pgx.Tx, before accounts.User) error {
		_, err := tx.Exec(ctx, `UPDATE users SET removed_at = $2, password_hash = NULL, invitation = NULL WHERE id = $1`, id, s.now())
		if err != nil {
			return fmt.Errorf("remove user: %w", err)
		}
		if err := s.keepAnOwner(ctx, tx, account, before); err != nil {
			return err
		}
		if err := audit.RecordTx(ctx, tx, audit.Change{Account: account, Action: "user.remove", Target: id, Before: before}); err != nil {
			return err
		}
		return s.endAllTx(ctx, tx, id)
	})
}

// endAllTx ends what acts for a person: sessions, and grants to applications.
func (s Store) endAllTx(ctx context.Context, tx pgx.Tx, id string) error {
	if err := oauth.EndAllTx(ctx, tx, id, s.now()); err != nil {
		return err
	}
	return sessions.EndAllTx(ctx, tx, id, s.now())
}

// change runs f with the account locked, so that two changes at once cannot
// both take away the last owner but one.
func (s Store) change(ctx context.Context, account, id string, by []string, f func(pgx.Tx, accounts.User) error) error {
	return postgres.InTx(ctx, s.DB, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SELECT 1 FROM accounts WHERE id = $1 FOR UPDATE`, account); err != nil {
			return fmt.Errorf("lock account: %w", err)
		}
		before, err := get(ctx, tx, account, id)
		if err != nil {
			return err
		}
		if err := mayGrant(by, before.Role); err != nil {
			return err
		}
		return f(tx, before)
	})
}

// keepAnOwner fails with conflict if before was an owner and none is left.
func (s Store) keepAnOwner(ctx context.Context, tx pgx.Tx, account string, before accounts.User) error {
	if before.Role != accounts.Owner {
		return nil
	}
	var left bool
	err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM users WHERE account_id = $1 AND role = 'owner' AND removed_at IS NULL
		AND password_hash IS NOT NULL)`, account).Scan(&left)
	if err != nil {
		return fmt.Errorf("count owners: %w", err)
	}
	if !left {
		return apierror.Errorf(decision.Conflict, "An account keeps at least one active owner.")
	}
	return nil
}

// mayGrant refuses who has not everything to deal with owners and admins, who
// have.
func mayGrant(by []string, role string) error {
	if role == accounts.Member || scopes.Covers(by, scopes.Admin) {
		return nil
	}
	return &apierror.Error{Code: decision.ScopeMissing, Message: "Only owners and admins may change owners and admins.",
		Details: []decision.Detail{{Field: "role", Issue: "has more scopes than the caller", Expected: accounts.Member}}}
}

// newToken has 256 bits.
func newToken() string {
	b := make([]byte, 32)
	rand.Read(b)
	return "inv_" + base64.RawURLEncoding.EncodeToString(b)
}
