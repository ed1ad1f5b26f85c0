// Package sessions signs people in: passwords hashed by argon2id, and tokens
// that are JWTs signed ES256 (typ at+jwt), which whoever has the key set can
// verify. A session is also a row, so that it can be ended before its token.
package sessions

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/controlplane/accounts"
	"sluice.dev/sluice/controlplane/accounts/scoperegistry"
	"sluice.dev/sluice/controlplane/edgesync/keyfeed"
	"sluice.dev/sluice/filters/credentials/keytable"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/filters/scopes"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/identity"
	"sluice.dev/sluice/platform/limits/refusals"
	"sluice.dev/sluice/platform/storage/audit"
	"sluice.dev/sluice/platform/storage/postgres"
	"sluice.dev/sluice/platform/storage/secretbox"
)

// Prefix begins the identifiers of sessions.
const Prefix = "sess_"

// DefaultTTL is how long a session lasts when Config names no time.
const DefaultTTL = 12 * time.Hour

// Config says how sessions are made.
type Config struct {
	DB postgres.DB
	// Issuer and Audience are the claims iss and aud. Both must be set.
	Issuer, Audience string
	// TTL is how long a session lasts; 0: DefaultTTL.
	TTL time.Duration
	// Box seals the keys that sign tokens; nil: they are stored as they are.
	Box *secretbox.Box
	// Now is the clock; nil: time.Now.
	Now func() time.Time
}

// Service makes, checks and ends sessions.
type Service struct {
	config  Config
	Keyring *Keyring
	refused refusals.Memory // of sign-ins, by subject
}

// New returns a Service.
func New(c Config) *Service {
	if c.TTL == 0 {
		c.TTL = DefaultTTL
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return &Service{config: c, Keyring: &Keyring{DB: c.DB, Box: c.Box, Now: c.Now}}
}

// Session is a new session with its token, which is shown this once.
type Session struct {
	ID        string    `json:"id"`
	Token     string    `json:"token"`
	TokenType string    `json:"token_type"` // Bearer
	ExpiresIn int       `json:"expires_in"` // seconds
	ExpiresAt time.Time `json:"expires_at"` // UTC
	Scopes    []string  `json:"scopes"`
}

// decoy is hashed when there is no such user, so that the answer takes as long.
const decoy = "$argon2id$v=19$m=19456,t=2,p=1$c2x1aWNlIGRlY295IHM$MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE"

// SignIn makes a session for the user with email and password, who calls from
// address. An unknown user and a wrong password give the same authentication
// failure after the same work; too many of them give rate_limit_exceeded.
func (s *Service) SignIn(ctx context.Context, email, password, address string) (Session, error) {
	email = accounts.NormalEmail(email)
	counted, err := s.reserveSignIn(ctx, email, address)
	if err != nil {
		return Session{}, err
	}
	user, ok, err := s.check(ctx, email, password, address)
	if err != nil {
		return Session{}, err
	}
	if !ok {
		return Session{}, apierror.Errorf(decision.AuthRequired, "The e-mail address or the password is wrong.")
	}
	if err := release(ctx, s.config.DB, counted...); err != nil {
		return Session{}, err
	}
	if err := know(ctx, s.config.DB, ofPair(email, address), s.config.Now()); err != nil {
		return Session{}, err
	}
	return s.Create(ctx, user)
}

// check reports whether password is that of the user with email, after the same
// work whether there is such a user or not.
func (s *Service) check(ctx context.Context, email, password, address string) (user string, ok bool, err error) {
	stored := decoy
	err = s.config.DB.QueryRow(ctx, `SELECT id, password_hash FROM users
		WHERE email = $1 AND password_hash IS NOT NULL AND removed_at IS NULL`, email).Scan(&user, &stored)
	if err = postgres.NotFound(err, "find user"); err != nil && apierror.Code(err) != decision.NotFound {
		return "", false, err
	}
	ok, err = passwordIs(ctx, atAddress(address), stored, password)
	return user, ok && user != "", err
}

// PasswordIs reports whether password is that of a user, for callers that guard
// against guessing themselves.
func (s *Service) PasswordIs(ctx context.Context, user, password string) (bool, error) {
	var stored string
	err := s.config.DB.QueryRow(ctx, `SELECT password_hash FROM users WHERE id = $1 AND password_hash IS NOT NULL`, user).Scan(&stored)
	if err != nil {
		return false, postgres.NotFound(err, "find user")
	}
	return passwordIs(ctx, "", stored, password)
}

// Create makes a session for a user without asking for a password: for whoever
// has made sure of the user in another way. For a user of an account that is suspended it
// fails with authentication_required, and says why.
func (s *Service) Create(ctx context.Context, user string) (Session, error) {
	var account, role, reason string
	var suspended bool
	err := s.config.DB.QueryRow(ctx, `SELECT u.account_id, u.role, a.suspended_at IS NOT NULL, a.suspended_reason
		FROM users u JOIN accounts a ON a.id = u.account_id WHERE u.id = $1 AND u.removed_at IS NULL`, user).Scan(&account, &role, &suspended, &reason)
	if err != nil {
		return Session{}, postgres.NotFound(err, "find user")
	}
	if suspended {
		return Session{}, apierror.Errorf(decision.AuthRequired, "Your account is suspended: %s", reason)
	}
	granted, err := s.scopesOf(ctx, role)
	if err != nil {
		return Session{}, err
	}
	now := s.config.Now().Truncate(time.Second).UTC()
	made := Session{ID: accounts.NewID(Prefix), TokenType: "Bearer", ExpiresIn: int(s.config.TTL / time.Second), ExpiresAt: now.Add(s.config.TTL), Scopes: granted}
	made.Token, err = s.token(ctx, user, account, made, now)
	if err != nil {
		return Session{}, err
	}
	return made, s.store(ctx, user, account, made, now)
}

// store keeps the session. The log names the caller who made it, or else the
// user, who then has just given the password.
func (s *Service) store(ctx context.Context, user, account string, made Session, now time.Time) error {
	actor := user
	if caller, ok := identity.From(ctx); ok {
		actor = caller.Key
	}
	return postgres.InTx(ctx, s.config.DB, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `INSERT INTO sessions (id, user_id, scopes, created_at, expires_at) VALUES ($1, $2, $3, $4, $5)`,
			made.ID, user, made.Scopes, now, made.ExpiresAt)
		if err != nil {
			return fmt.Errorf("store session: %w", err)
		}
		return audit.RecordTx(ctx, tx, audit.Change{Actor: actor, Account: account, Action: "session.create", Target: made.ID})
	})
}

// token signs the claims of a session.
func (s *Service) token(ctx context.Context, user, account string, made Session, now time.Time) (string, error) {
	key, err := s.Keyring.signer(ctx)
	if err != nil {
		return "", err
	}
	return sign(key, Claims{
		RegisteredClaims: jwt.RegisteredClaims{Issuer: s.config.Issuer, Audience: jwt.ClaimStrings{s.config.Audience}, Subject: user,
			IssuedAt: jwt.NewNumericDate(now), ExpiresAt: jwt.NewNumericDate(made.ExpiresAt), ID: made.ID},
		Account: account, Scopes: made.Scopes,
	})
}

// reserved are the scopes that plain members do not have.
var reserved = []string{"users:write", "billing:write"}

// scopesOf returns what a role may do in its account.
func (s *Service) scopesOf(ctx context.Context, role string) ([]string, error) {
	if role != accounts.Member {
		return []string{scopes.Admin}, nil
	}
	_, offered, err := scoperegistry.LoadOffered(ctx, s.config.DB)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(offered.Plain(), func(n string) bool { return slices.Contains(reserved, n) }), nil
}

// Verify returns the claims of a token whose session has not been ended, and whose account
// is not suspended. It fails with AUTH_001 when it has run out, else with invalid_token.
//
// It takes time linear in token before the signature is checked, and memory of at
// most 16 bytes for each of its bytes.
func (s *Service) Verify(ctx context.Context, token string) (Claims, error) {
	c, err := verify(ctx, s.Keyring.public, s.config.Issuer, s.config.Audience, s.config.Now(), token)
	if err != nil {
		return Claims{}, err
	}
	var live bool
	err = s.config.DB.QueryRow(ctx, `SELECT EXISTS (SELECT FROM sessions s JOIN users u ON u.id = s.user_id JOIN accounts a ON a.id = u.account_id
		WHERE s.id = $1 AND s.user_id = $2 AND s.revoked_at IS NULL AND a.suspended_at IS NULL)`,
		c.ID, c.Subject).Scan(&live)
	if err != nil {
		return Claims{}, fmt.Errorf("find session: %w", err)
	}
	if !live {
		return Claims{}, &apierror.Error{Code: decision.InvalidToken}
	}
	return c, nil
}

// End ends a session everywhere. It fails with not_found when it has ended.
func (s *Service) End(ctx context.Context, id string) error {
	return postgres.InTx(ctx, s.config.DB, func(tx pgx.Tx) error {
		var until time.Time
		var account string
		err := tx.QueryRow(ctx, `UPDATE sessions s SET revoked_at = $2 FROM users u
			WHERE s.id = $1 AND s.revoked_at IS NULL AND u.id = s.user_id RETURNING s.expires_at, u.account_id`,
			id, s.config.Now()).Scan(&until, &account)
		if err != nil {
			return postgres.NotFound(err, "end session")
		}
		if err := audit.RecordTx(ctx, tx, audit.Change{Account: account, Action: "session.end", Target: id}); err != nil {
			return err
		}
		return keyfeed.PutTx(ctx, tx, revoked(id, until))
	})
}

// EndAllTx ends every session of a user when tx commits: for someone who is
// removed, or whose scopes change. Call it last, as it writes to the feed.
func EndAllTx(ctx context.Context, tx pgx.Tx, user string, now time.Time) error {
	rows, _ := tx.Query(ctx, `UPDATE sessions SET revoked_at = $2 WHERE user_id = $1 AND revoked_at IS NULL AND expires_at > $2
		RETURNING id, expires_at`, user, now)
	ended, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (r keytable.Record, err error) {
		var id string
		var until time.Time
		err = row.Scan(&id, &until)
		return revoked(id, until), err
	})
	if err != nil {
		return fmt.Errorf("end sessions: %w", err)
	}
	return keyfeed.PutTx(ctx, tx, ended...)
}

// revoked is what edges are told of a session that ended before its token.
func revoked(id string, until time.Time) keytable.Record {
	return keytable.Record{Tag: keytable.TagOfToken(id), Kind: keytable.KindToken, Expires: uint32(until.Unix())}
}

// purgeBatch bounds the sessions of one transaction.
const purgeBatch = 1000

// SigningKeyAge is how old a signing key becomes before another takes its place.
const SigningKeyAge = 30 * 24 * time.Hour

// RotateSigningKey adds a signing key when the present one is older than
// SigningKeyAge, and seals those that are not. It returns how many it added.
func (s *Service) RotateSigningKey(ctx context.Context) (int, error) {
	if err := s.Keyring.sealAll(ctx); err != nil {
		return 0, err
	}
	added, err := s.Keyring.Rotate(ctx, SigningKeyAge, s.config.TTL)
	if added {
		return 1, err
	}
	return 0, err
}

// Purge forgets sessions that have run out, and tells edges that they may forget
// those that had been ended. It forgets old sign-in attempts too. It returns how
// many sessions went.
func (s *Service) Purge(ctx context.Context) (total int, err error) {
	if err := forget(ctx, s.config.DB, s.config.Now()); err != nil {
		return 0, err
	}
	for n := purgeBatch; n == purgeBatch && err == nil; total += n {
		n, err = s.purgeSome(ctx)
	}
	return total, err
}

// purgeSome forgets at most purgeBatch sessions.
func (s *Service) purgeSome(ctx context.Context) (n int, err error) {
	err = postgres.InTx(ctx, s.config.DB, func(tx pgx.Tx) error {
		rows, _ := tx.Query(ctx, `DELETE FROM sessions WHERE id IN (
			SELECT id FROM sessions WHERE expires_at < $1 LIMIT $2 FOR UPDATE SKIP LOCKED)
			RETURNING CASE WHEN revoked_at IS NULL THEN '' ELSE id END`, s.config.Now(), purgeBatch)
		ended, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			return fmt.Errorf("purge sessions: %w", err)
		}
		n = len(ended)
		var tags []keytable.Tag
		for _, id := range ended {
			if id != "" {
				tags = append(tags, keytable.TagOfToken(id))
			}
		}
		return keyfeed.DeleteTx(ctx, tx, tags...)
	})
	return n, err
}
