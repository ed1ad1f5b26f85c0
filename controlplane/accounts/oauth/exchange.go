package oauth

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/controlplane/accounts/oauth/rules"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
)

// Exchange turns an authorization code into tokens. redirect and verifier are
// what the client sends with it. A code works once: of any number of exchanges,
// at the same moment too, at most one succeeds, and a second use ends the grant
// with all that was issued from it. It fails with invalid_grant.
func (s *Service) Exchange(ctx context.Context, app App, code, redirect, verifier string) (Tokens, error) {
	sign, err := s.config.Sign(ctx) // before the transaction, which holds a connection
	if err != nil {
		return Tokens{}, err
	}
	return s.answer(ctx, func(tx pgx.Tx) (t Tokens, refusal, err error) {
		g, c, err := lockCode(ctx, tx, code)
		if err != nil {
			return t, nil, err
		}
		switch {
		// A stranger with a stolen code must not end the grant, nor use the code up.
		case g.app != app.ID:
			return t, errNoGrant, nil
		case c.used:
			return t, errNoGrant, g.end(ctx, tx, endedByCode, s.now())
		case g.revoked, g.suspended, !c.expires.After(s.now()):
			return t, errNoGrant, nil
		// From here on the code stays good: the client may mend its request.
		case c.redirect != redirect && (c.redirect != "" || !rules.RedirectMatches(app.RedirectURIs, redirect)):
			return t, refused("redirect_uri is not that of the authorization request."), nil
		case !rules.VerifierFits(c.challenge, verifier):
			return t, refused("code_verifier does not fit the code_challenge."), nil
		}
		if _, err = tx.Exec(ctx, `UPDATE oauth_codes SET used_at = $2 WHERE hash = $1`, hashOf(code), s.now()); err != nil {
			return t, nil, fmt.Errorf("use code: %w", err)
		}
		t, err = s.issue(ctx, tx, sign, g, g.scopes)
		return t, nil, err
	})
}

// refused is invalid_grant with the reason, for whoever has shown a live code: the
// developer of the client, who needs to know which parameter is wrong.
func refused(why string) error { return &rules.Error{Code: rules.InvalidGrant, Description: why} }

// codeRow is what a code was issued with.
type codeRow struct {
	redirect, challenge string
	expires             time.Time
	used                bool
}

// lockCode finds a code with its grant and locks both, the grant first, as
// everything does that takes more than one row. So of two exchanges at once the
// second waits, and then sees what the first one did. It fails with invalid_grant
// when there is no such code.
func lockCode(ctx context.Context, tx pgx.Tx, code string) (g grant, c codeRow, err error) {
	err = tx.QueryRow(ctx, `SELECT `+grantColumns+`, c.redirect_uri, c.challenge, c.expires_at, c.used_at IS NOT NULL
		FROM oauth_codes c JOIN oauth_grants g ON g.id = c.grant_id JOIN users u ON u.id = g.user_id JOIN accounts a ON a.id = u.account_id
		WHERE c.hash = $1 FOR UPDATE OF g, c`, hashOf(code)).Scan(append(g.columns(), &c.redirect, &c.challenge, &c.expires, &c.used)...)
	return g, c, found(err, "find code")
}

// Refresh turns a refresh token into new tokens; the old one is then used up.
// scope, space-separated, may narrow the access token; "" asks for all that was
// granted. It fails with invalid_grant, and ends the grant when the token was
// used before: one of two users of it is a thief. A scope that is wider than the
// grant's fails with invalid_scope, too many live tokens with
// rate_limit_exceeded, and both use nothing up.
func (s *Service) Refresh(ctx context.Context, app App, refresh, scope string) (Tokens, error) {
	sign, err := s.config.Sign(ctx)
	if err != nil {
		return Tokens{}, err
	}
	return s.answer(ctx, func(tx pgx.Tx) (t Tokens, refusal, err error) {
		g, used, err := s.lockRefresh(ctx, tx, refresh)
		if err != nil {
			return t, nil, err
		}
		switch {
		// As with codes: a refresh token in the wrong hands does no harm there.
		case g.app != app.ID:
			return t, errNoGrant, nil
		case used:
			return t, errNoGrant, g.end(ctx, tx, endedByReuse, s.now())
		case g.revoked, g.suspended:
			return t, errNoGrant, nil
		}
		list, bad := rules.Narrow(g.scopes, scope)
		if bad != nil {
			return t, bad, nil
		}
		if err := s.mayIssue(ctx, tx, g); err != nil {
			return t, nil, err
		}
		if _, err = tx.Exec(ctx, `UPDATE oauth_refresh_tokens SET used_at = $2 WHERE hash = $1`, hashOf(refresh), s.now()); err != nil {
			return t, nil, fmt.Errorf("use refresh token: %w", err)
		}
		t, err = s.issue(ctx, tx, sign, g, list)
		return t, nil, err
	})
}

// lockRefresh finds a refresh token that has not expired.
func (s *Service) lockRefresh(ctx context.Context, tx pgx.Tx, refresh string) (g grant, used bool, err error) {
	err = tx.QueryRow(ctx, `SELECT `+grantColumns+`, r.used_at IS NOT NULL
		FROM oauth_refresh_tokens r JOIN oauth_grants g ON g.id = r.grant_id JOIN users u ON u.id = g.user_id JOIN accounts a ON a.id = u.account_id
		WHERE r.hash = $1 AND r.expires_at > $2 FOR UPDATE OF g, r`, hashOf(refresh), s.now()).Scan(append(g.columns(), &used)...)
	return g, used, found(err, "find refresh token")
}

// maxLive bounds the access tokens of one grant that are live at once, so that a
// client that refreshes in a loop fills neither our tables nor the edges'.
const maxLive = 100

// mayIssue fails with rate_limit_exceeded when the grant has maxLive tokens.
func (s *Service) mayIssue(ctx context.Context, tx pgx.Tx, g grant) error {
	var live int
	var next *time.Time
	err := tx.QueryRow(ctx, `SELECT count(*), min(expires_at) FROM oauth_access_tokens WHERE grant_id = $1 AND expires_at > $2`,
		g.id, s.now()).Scan(&live, &next)
	if err != nil {
		return fmt.Errorf("count tokens: %w", err)
	}
	if live < maxLive {
		return nil
	}
	return &apierror.Error{Code: decision.RateLimited, RetryAfter: int(next.Sub(s.now()) / time.Second)}
}
