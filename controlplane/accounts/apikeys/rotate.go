package apikeys

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/controlplane/accounts/scoperegistry"
	"sluice.dev/sluice/filters/scopes"
	"sluice.dev/sluice/platform/storage/postgres"
)

// Bounds of the time in which a rotated key and its successor both work.
const (
	DefaultOverlap = 24 * time.Hour
	MaxOverlap     = 7 * 24 * time.Hour
)

// Rotate makes a successor of a key, with its name, scopes and limit, and a lifetime as
// long as the old one's was. The old key works for overlap more, never beyond
// its own end; with no overlap it is revoked at once. creator holds the scopes
// of whoever rotates: AUTH_002 when the key has more.
func (s Store) Rotate(ctx context.Context, account, id string, overlap time.Duration, creator []string) (Created, error) {
	var c Created
	err := postgres.InTx(ctx, s.DB, func(tx pgx.Tx) (err error) {
		if err := lockAccount(ctx, tx, account); err != nil {
			return err
		}
		old, err := lock(ctx, tx, account, id, creator)
		if err != nil {
			return err
		}
		if err := notRotated(old); err != nil {
			return err
		}
		if c, err = s.insert(ctx, tx, s.successor(old)); err != nil {
			return err
		}
		if err := record(ctx, tx, "key.rotate", old, old, c.Key); err != nil {
			return err
		}
		return s.hand(ctx, tx, old, c.ID, overlap)
	})
	return c, err
}

// successor describes the key that follows old.
func (s Store) successor(old Key) Spec {
	spec := Spec{Account: old.Account, Name: old.Name, Scopes: old.Scopes, PerMinute: old.PerMinute}
	if old.ExpiresAt != nil {
		end := s.now().Add(old.ExpiresAt.Sub(old.CreatedAt))
		spec.ExpiresAt = &end
	}
	return spec
}

// hand moves the use of key old to key next.
func (s Store) hand(ctx context.Context, tx pgx.Tx, old Key, next string, overlap time.Duration) error {
	known, err := scoperegistry.Load(ctx, tx)
	if err != nil {
		return err
	}
	if err := emitTx(ctx, tx, known, next); err != nil {
		return err
	}
	if overlap <= 0 {
		return s.revokeTx(ctx, tx, old.Account, old.ID)
	}
	end := s.now().Add(overlap)
	if old.ExpiresAt != nil && old.ExpiresAt.Before(end) {
		return nil
	}
	if _, err := tx.Exec(ctx, `UPDATE api_keys SET expires_at = $2 WHERE id = $1`, old.ID, truncate(&end)); err != nil {
		return fmt.Errorf("shorten key: %w", err)
	}
	return emitTx(ctx, tx, known, old.ID)
}

// Holder is a key as found by its text, for the control plane's own API.
type Holder struct {
	Key
	Plan     string
	Operator bool // of the operator's own account
}

// Admin reports whether the holder may use the admin API.
func (h Holder) Admin() bool { return h.Operator && scopes.Covers(h.Scopes, scopes.Admin) }
