package oauth

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/controlplane/accounts/oauth/rules"
	"sluice.dev/sluice/controlplane/edgesync/keyfeed"
	"sluice.dev/sluice/filters/credentials/keytable"
	"sluice.dev/sluice/platform/storage/audit"
	"sluice.dev/sluice/platform/storage/postgres"
)

// Why a grant ended, in the audit log.
const (
	endedByClient = "revoked by the client"
	endedByCode   = "an authorization code was used twice"
	endedByReuse  = "a refresh token was used twice"
)

// Grant stores a person's consent and returns the code that the application
// exchanges for tokens. granted are the scopes that were consented to.
func (s *Service) Grant(ctx context.Context, app App, user, account string, q rules.Request, granted []string) (code string, err error) {
	id, code, now := newID(GrantPrefix), newSecret(codePrefix), s.now()
	named := ""
	if q.Named {
		named = q.Redirect
	}
	err = postgres.InTx(ctx, s.config.DB, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `INSERT INTO oauth_grants (id, app_id, user_id, scopes, created_at) VALUES ($1, $2, $3, $4, $5)`,
			id, app.ID, user, granted, now)
		if err == nil {
			_, err = tx.Exec(ctx, `INSERT INTO oauth_codes (hash, grant_id, redirect_uri, challenge, expires_at) VALUES ($1, $2, $3, $4, $5)`,
				hashOf(code), id, named, q.Challenge, now.Add(CodeLife))
		}
		if err != nil {
			return fmt.Errorf("store grant: %w", err)
		}
		return audit.RecordTx(ctx, tx, audit.Change{Actor: user, Account: account, Action: "oauth_grant.create", Target: id,
			After: map[string]any{"app": app.ID, "scopes": granted}})
	})
	return code, err
}

// grant is a live one, locked by the transaction that read it.
type grant struct {
	id, app, user, account string
	scopes                 []string
	revoked                bool // or its user was removed
	suspended              bool // its user's account is: it issues nothing until that is resumed
}

// grantColumns are of grants g, users u and accounts a.
const grantColumns = `g.id, g.app_id, g.user_id, u.account_id, g.scopes, g.revoked_at IS NOT NULL OR u.removed_at IS NOT NULL, a.suspended_at IS NOT NULL`

// columns are where a row of grantColumns is scanned to.
func (g *grant) columns() []any {
	return []any{&g.id, &g.app, &g.user, &g.account, &g.scopes, &g.revoked, &g.suspended}
}

// found turns the outcome of looking for a code or a token into invalid_grant.
func found(err error, doing string) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return errNoGrant
	}
	if err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	return nil
}

var errNoGrant = &rules.Error{Code: rules.InvalidGrant, Description: "It is unknown, used, too old, or meant for someone else."}

// end revokes g with all its tokens when tx commits.
func (g grant) end(ctx context.Context, tx pgx.Tx, reason string, now time.Time) error {
	if g.revoked {
		return nil
	}
	err := audit.RecordTx(ctx, tx, audit.Change{Actor: g.app, Account: g.account, Action: "oauth_grant.revoke", Target: g.id,
		After: map[string]string{"reason": reason}})
	if err != nil {
		return err
	}
	return endWhere(ctx, tx, `id = $1`, g.id, now)
}

// EndAllTx ends everything that a person has granted when tx commits: for someone
// who is removed, or whose role changes. Call it last, as it writes to the feed.
func EndAllTx(ctx context.Context, tx pgx.Tx, user string, now time.Time) error {
	return endWhere(ctx, tx, `user_id = $1`, user, now)
}

// endWhere revokes the grants that condition, a part of SQL with $1, selects, and
// tells edges of their access tokens. It takes the grants first and looks at the
// tokens then, so that it sees one that was issued while it waited.
func endWhere(ctx context.Context, tx pgx.Tx, condition, value string, now time.Time) error {
	rows, _ := tx.Query(ctx, `UPDATE oauth_grants SET revoked_at = $2 WHERE id IN (
		SELECT id FROM oauth_grants WHERE `+condition+` AND revoked_at IS NULL ORDER BY id FOR UPDATE) RETURNING id`, value, now)
	ended, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("end grants: %w", err)
	}
	rows, _ = tx.Query(ctx, `UPDATE oauth_access_tokens SET revoked_at = $2
		WHERE grant_id = ANY ($1) AND revoked_at IS NULL AND expires_at > $2 RETURNING id, expires_at`, ended, now)
	return tellEdges(ctx, tx, rows)
}

// tellEdges puts the tokens in rows (id, expiry) into the feed.
func tellEdges(ctx context.Context, tx pgx.Tx, rows pgx.Rows) error {
	records, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (r keytable.Record, err error) {
		var id string
		var until time.Time
		err = row.Scan(&id, &until)
		return keytable.Record{Tag: keytable.TagOfToken(id), Kind: keytable.KindToken, Expires: uint32(until.Unix())}, err
	})
	if err != nil {
		return fmt.Errorf("end tokens: %w", err)
	}
	return keyfeed.PutTx(ctx, tx, records...)
}
