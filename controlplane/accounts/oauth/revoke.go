package oauth

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/platform/storage/postgres"
)

// Revoke ends a token of app (RFC 7009). A refresh token takes its whole grant
// with it, an access token only itself. A token that is unknown, or another
// application's, is left alone, and that is no failure.
func (s *Service) Revoke(ctx context.Context, app App, token string) error {
	err := postgres.InTx(ctx, s.config.DB, func(tx pgx.Tx) error {
		g, _, err := s.lockRefresh(ctx, tx, token)
		if err == nil && g.app == app.ID {
			return g.end(ctx, tx, endedByClient, s.now())
		}
		if err != nil && !errors.Is(err, errNoGrant) {
			return err
		}
		rows, _ := tx.Query(ctx, `UPDATE oauth_access_tokens t SET revoked_at = $3 FROM oauth_grants g
			WHERE t.hash = $1 AND g.id = t.grant_id AND g.app_id = $2 AND t.revoked_at IS NULL AND t.expires_at > $3
			RETURNING t.id, t.expires_at`, hashOf(token), app.ID, s.now())
		return tellEdges(ctx, tx, rows)
	})
	return err
}

// Introspection is what the server says about a token (RFC 7662). Of one that is
// not active nothing but that is said.
type Introspection struct {
	Active   bool   `json:"active"`
	Scope    string `json:"scope,omitempty"` // space-separated
	Client   string `json:"client_id,omitempty"`
	Subject  string `json:"sub,omitempty"` // the user
	Account  string `json:"account,omitempty"`
	Type     string `json:"token_type,omitempty"` // Bearer; absent: a refresh token
	Issuer   string `json:"iss,omitempty"`
	Audience string `json:"aud,omitempty"`
	IssuedAt int64  `json:"iat,omitempty"` // unix seconds
	Expires  int64  `json:"exp,omitempty"` // unix seconds
	ID       string `json:"jti,omitempty"` // access tokens only
}

// Introspect tells app about one of its own tokens; any other is not active.
func (s *Service) Introspect(ctx context.Context, app App, token string) (Introspection, error) {
	var list []string
	var issued, expires time.Time
	i := Introspection{Active: true, Client: app.ID, Issuer: s.config.Issuer, Audience: s.config.Audience}
	err := s.config.DB.QueryRow(ctx, `
		SELECT t.id, t.kind, t.scopes, g.user_id, u.account_id, t.issued_at, t.expires_at
		FROM (
			SELECT id, 'Bearer' AS kind, grant_id, scopes, issued_at, expires_at FROM oauth_access_tokens
			WHERE hash = $1 AND revoked_at IS NULL
			UNION ALL
			SELECT '', '', r.grant_id, o.scopes, r.issued_at, r.expires_at FROM oauth_refresh_tokens r JOIN oauth_grants o ON o.id = r.grant_id
			WHERE r.hash = $1 AND r.used_at IS NULL
		) t
		JOIN oauth_grants g ON g.id = t.grant_id JOIN users u ON u.id = g.user_id JOIN accounts a ON a.id = u.account_id
		WHERE g.app_id = $2 AND g.revoked_at IS NULL AND u.removed_at IS NULL AND a.suspended_at IS NULL AND t.expires_at > $3`,
		hashOf(token), app.ID, s.now()).Scan(&i.ID, &i.Type, &list, &i.Subject, &i.Account, &issued, &expires)
	if errors.Is(err, pgx.ErrNoRows) {
		return Introspection{}, nil
	}
	if err != nil {
		return Introspection{}, fmt.Errorf("introspect: %w", err)
	}
	i.Scope, i.IssuedAt, i.Expires = strings.Join(list, " "), issued.Unix(), expires.Unix()
	return i, nil
}
