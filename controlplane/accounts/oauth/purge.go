package oauth

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/controlplane/edgesync/keyfeed"
	"sluice.dev/sluice/filters/credentials/keytable"
	"sluice.dev/sluice/platform/storage/postgres"
)

// purgeBatch bounds the rows of one transaction.
const purgeBatch = 1000

// Purge forgets tokens that have expired, telling edges that they may forget
// those that were revoked, and grants that have nothing left. It returns how many
// rows went.
func (s *Service) Purge(ctx context.Context) (total int, err error) {
	for _, some := range []func(context.Context) (int, error){s.purgeAccess, s.purgeRefresh, s.purgeGrants} {
		for n := purgeBatch; n == purgeBatch && err == nil; total += n {
			n, err = some(ctx)
		}
	}
	return total, err
}

// purgeAccess forgets expired access tokens. An edge refuses those by itself, so it
// need not remember that some were revoked.
func (s *Service) purgeAccess(ctx context.Context) (n int, err error) {
	err = postgres.InTx(ctx, s.config.DB, func(tx pgx.Tx) error {
		rows, _ := tx.Query(ctx, `DELETE FROM oauth_access_tokens WHERE id IN (
			SELECT id FROM oauth_access_tokens WHERE expires_at < $1 LIMIT $2 FOR UPDATE SKIP LOCKED)
			RETURNING CASE WHEN revoked_at IS NULL THEN '' ELSE id END`, s.now(), purgeBatch)
		gone, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			return fmt.Errorf("purge access tokens: %w", err)
		}
		n = len(gone)
		var tags []keytable.Tag
		for _, id := range gone {
			if id != "" {
				tags = append(tags, keytable.TagOfToken(id))
			}
		}
		return keyfeed.DeleteTx(ctx, tx, tags...)
	})
	return n, err
}

// purgeRefresh forgets expired refresh tokens, used ones too: they would be refused
// for their age now.
func (s *Service) purgeRefresh(ctx context.Context) (int, error) {
	return s.purge(ctx, "refresh tokens", `DELETE FROM oauth_refresh_tokens WHERE hash IN (
		SELECT hash FROM oauth_refresh_tokens WHERE expires_at < $1 LIMIT $2 FOR UPDATE SKIP LOCKED)`)
}

// purgeGrants takes codes along with their grants.
func (s *Service) purgeGrants(ctx context.Context) (int, error) {
	return s.purge(ctx, "grants", `DELETE FROM oauth_grants WHERE id IN (
		SELECT id FROM oauth_grants g WHERE g.created_at < $1
		AND NOT EXISTS (SELECT FROM oauth_refresh_tokens r WHERE r.grant_id = g.id)
		AND NOT EXISTS (SELECT FROM oauth_access_tokens t WHERE t.grant_id = g.id)
		AND NOT EXISTS (SELECT FROM oauth_codes c WHERE c.grant_id = g.id AND c.expires_at >= $1)
		LIMIT $2 FOR UPDATE SKIP LOCKED)`)
}

// purge runs a statement with the time and the batch as $1 and $2, and returns how
// many rows went.
func (s *Service) purge(ctx context.Context, what, sql string) (int, error) {
	tag, err := s.config.DB.Exec(ctx, sql, s.now(), purgeBatch)
	if err != nil {
		return 0, fmt.Errorf("purge %s: %w", what, err)
	}
	return int(tag.RowsAffected()), nil
}
