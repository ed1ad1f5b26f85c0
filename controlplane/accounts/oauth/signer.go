package oauth

import (
	"context"
	"fmt"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"sluice.dev/sluice/controlplane/accounts/sessions"
	"sluice.dev/sluice/platform/storage/postgres"
)

// publishLead is how old a signing key must be, so that replicas and edges know
// it: that of the keyring.
const publishLead = 2 * time.Minute

// keyringSigner signs with the key that the keyring signs sessions with: the
// newest that is old enough, or the only one there is. It reads the key anew each
// time, so that one that was rotated out is never used.
func keyringSigner(db postgres.DB, ring *sessions.Keyring, now func() time.Time) func(context.Context) (Signer, error) {
	return func(ctx context.Context) (Signer, error) {
		if _, err := ring.Public(ctx); err != nil { // makes the first key
			return nil, err
		}
		var kid string
		var stored []byte
		err := db.QueryRow(ctx, `SELECT kid, private_der FROM signing_keys WHERE retired_at IS NULL OR retired_at > $1
			ORDER BY created_at <= $2 DESC, CASE WHEN created_at <= $2 THEN created_at END DESC, created_at, kid LIMIT 1`,
			now(), now().Add(-publishLead)).Scan(&kid, &stored)
		if err != nil {
			return nil, fmt.Errorf("read signing key: %w", err)
		}
		private, err := ring.Private(kid, stored)
		if err != nil {
			return nil, err
		}
		return func(c jwt.Claims) (string, error) {
			t := jwt.NewWithClaims(jwt.SigningMethodES256, c)
			t.Header["typ"], t.Header["kid"] = "at+jwt", kid
			return t.SignedString(private)
		}, nil
	}
}
