package oauth

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/platform/storage/postgres"
)

// Claims are what an access token says (RFC 9068). Account and Scopes are those
// of a session's token, so that whoever verifies one verifies the other.
type Claims struct {
	jwt.RegisteredClaims          // iss, aud, sub (user), iat, exp, jti
	Account              string   `json:"account"`
	Client               string   `json:"client_id"`
	Scope                string   `json:"scope"` // space-separated
	Scopes               []string `json:"scopes"`
}

// Tokens is the answer of the token endpoint (contract 2.7).
type Tokens struct {
	Access    string `json:"access_token"`
	Type      string `json:"token_type"` // Bearer
	ExpiresIn int    `json:"expires_in"` // seconds
	Refresh   string `json:"refresh_token"`
	Scope     string `json:"scope"` // space-separated
}

// issue stores and returns new tokens of grant g, the access token for scopes.
// The grant is locked by tx.
func (s *Service) issue(ctx context.Context, tx pgx.Tx, sign Signer, g grant, scopes []string) (t Tokens, err error) {
	now, id, refresh := s.now(), newID(TokenPrefix), newSecret(refreshPrefix)
	end := now.Add(AccessLife)
	t = Tokens{Type: "Bearer", ExpiresIn: int(AccessLife / time.Second), Refresh: refresh, Scope: strings.Join(scopes, " ")}
	t.Access, err = sign(Claims{
		RegisteredClaims: jwt.RegisteredClaims{Issuer: s.config.Issuer, Audience: jwt.ClaimStrings{s.config.Audience}, Subject: g.user,
			IssuedAt: jwt.NewNumericDate(now), ExpiresAt: jwt.NewNumericDate(end), ID: id},
		Account: g.account, Client: g.app, Scope: t.Scope, Scopes: scopes,
	})
	if err != nil {
		return Tokens{}, fmt.Errorf("sign access token: %w", err)
	}
	_, err = tx.Exec(ctx, `INSERT INTO oauth_access_tokens (id, hash, grant_id, scopes, issued_at, expires_at) VALUES ($1, $2, $3, $4, $5, $6)`,
		id, hashOf(t.Access), g.id, scopes, now, end)
	if err == nil {
		_, err = tx.Exec(ctx, `INSERT INTO oauth_refresh_tokens (hash, grant_id, issued_at, expires_at) VALUES ($1, $2, $3, $4)`,
			hashOf(refresh), g.id, now, now.Add(RefreshLife))
	}
	if err != nil {
		return Tokens{}, fmt.Errorf("store tokens: %w", err)
	}
	return t, nil
}

// answer runs f in a transaction that commits even when f refuses with a
// refusal: ending a grant because of a replay must last.
func (s *Service) answer(ctx context.Context, f func(tx pgx.Tx) (t Tokens, refusal, err error)) (t Tokens, err error) {
	var refusal error
	err = postgres.InTx(ctx, s.config.DB, func(tx pgx.Tx) (err error) {
		t, refusal, err = f(tx)
		return err
	})
	if err == nil {
		err = refusal
	}
	if err != nil {
		return Tokens{}, err
	}
	return t, nil
}
