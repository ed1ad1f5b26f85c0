// Package seed makes what a local stack needs to be tried out at once: an
// account, its owner, keys and a session. Running it again changes nothing that
// still works.
package seed

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"time"

	"sluice.dev/sluice/controlplane/accounts"
	"sluice.dev/sluice/controlplane/accounts/apikeys"
	"sluice.dev/sluice/controlplane/accounts/scoperegistry"
	"sluice.dev/sluice/controlplane/accounts/sessions"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/filters/scopes"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/storage/postgres"
)

// Names of the seeded account, its plan and its owner.
const (
	AccountName = "Local"
	Plan        = "local"
	Email       = "owner@sluice.local"
)

// keyLife is how long the seeded keys last: a local stack is often left alone
// for longer than the usual 90 days.
const keyLife = apikeys.MaxDays * 24 * time.Hour

// sessionMargin is how much life a kept session must have left.
const sessionMargin = time.Hour

// Config says what is there already, and what to use.
type Config struct {
	// Have is the content of an earlier dev.env; what still works is kept. nil:
	// nothing.
	Have map[string]string
	// Sessions makes and checks the owner's session.
	Sessions *sessions.Service
	// Now is the clock; nil: time.Now.
	Now func() time.Time
}

// Result is what the stack's user needs to know.
type Result struct {
	Account      string // acct_…
	APIKey       string // every scope that is no wildcard
	AdminKey     string // scope *
	SessionToken string
	Email        string
	Password     string
}

// seeder is Local at work.
type seeder struct {
	Config
	db       postgres.DB
	accounts accounts.Store
	keys     apikeys.Store
}

// Local makes the account, owner, keys and session that are missing.
func Local(ctx context.Context, db postgres.DB, c Config) (Result, error) {
	if c.Now == nil {
		c.Now = time.Now
	}
	s := seeder{c, db, accounts.Store{DB: db}, apikeys.Store{DB: db, Now: c.Now}}
	r, err := s.all(ctx)
	if err != nil {
		return Result{}, fmt.Errorf("seed the local account: %w", err)
	}
	return r, nil
}

// all makes everything, in the order in which one needs the other.
func (s seeder) all(ctx context.Context) (r Result, err error) {
	r.Email = Email
	if r.Account, err = s.account(ctx); err != nil {
		return r, err
	}
	user, password, err := s.owner(ctx, r.Account)
	if err != nil {
		return r, err
	}
	r.Password = password
	_, offered, err := scoperegistry.LoadOffered(ctx, s.db)
	if err != nil {
		return r, err
	}
	if r.APIKey, err = s.key(ctx, r.Account, "SLUICE_API_KEY", offered.Plain()); err != nil {
		return r, err
	}
	if r.AdminKey, err = s.key(ctx, r.Account, "SLUICE_ADMIN_KEY", []string{scopes.Admin}); err != nil {
		return r, err
	}
	r.SessionToken, err = s.session(ctx, user)
	return r, err
}

// account is the one of the owner, who is known by the e-mail address.
func (s seeder) account(ctx context.Context) (string, error) {
	owner, err := s.accounts.UserByEmail(ctx, Email)
	if apierror.Code(err) != decision.NotFound {
		return owner.Account, err
	}
	if _, err := accounts.EnsurePlans(ctx, s.db, Plan); err != nil {
		return "", err
	}
	a, err := s.accounts.CreateOperator(ctx, AccountName, Plan)
	return a.ID, err
}

// owner keeps the owner if the password is known, else sets a new one.
func (s seeder) owner(ctx context.Context, account string) (user, password string, err error) {
	password = s.Have["SLUICE_USER_PASSWORD"]
	owner, err := s.accounts.UserByEmail(ctx, Email)
	known := err == nil && password != ""
	if known {
		if known, err = s.Sessions.PasswordIs(ctx, owner.ID, password); err != nil {
			return "", "", err
		}
	}
	if known {
		return owner.ID, password, nil
	}
	password = randomText()
	hash, err := sessions.HashPassword(ctx, password, "")
	if err != nil {
		return "", "", err
	}
	if owner.ID != "" {
		return owner.ID, password, s.accounts.SetPassword(ctx, owner.ID, hash)
	}
	owner, err = s.accounts.AddUser(ctx, account, Email, accounts.Owner, hash)
	return owner.ID, password, err
}

// key keeps the key in the environment if it works and has the scopes, which
// may have grown since; else it makes one.
func (s seeder) key(ctx context.Context, account, variable string, want []string) (string, error) {
	text := s.Have[variable]
	h, err := s.keys.Find(ctx, text)
	if err == nil && h.Account == account && covers(h.Scopes, want) {
		return text, nil
	}
	if code := apierror.Code(err); code == decision.Unavailable || code == decision.Internal {
		return "", err
	}
	end := s.Now().Add(keyLife)
	c, err := s.keys.Create(ctx, apikeys.Spec{Account: account, Name: variable, Scopes: want, ExpiresAt: &end, Creator: []string{scopes.Admin}})
	return c.Text, err
}

// covers reports whether held covers every scope of want.
func covers(held, want []string) bool {
	for _, w := range want {
		if !scopes.Covers(held, w) {
			return false
		}
	}
	return true
}

// session keeps the environment's token if it is the user's and lasts a while.
func (s seeder) session(ctx context.Context, user string) (string, error) {
	token := s.Have["SLUICE_SESSION_TOKEN"]
	c, err := s.Sessions.Verify(ctx, token)
	if err == nil && c.Subject == user && c.ExpiresAt.After(s.Now().Add(sessionMargin)) {
		return token, nil
	}
	made, err := s.Sessions.Create(ctx, user)
	return made.Token, err
}

// randomText has 144 bits.
func randomText() string {
	b := make([]byte, 18)
	rand.Read(b)
	return base64.RawURLEncoding.EncodeToString(b)
}
