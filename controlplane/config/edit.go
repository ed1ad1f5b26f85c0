package config

import (
	"context"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/controlplane"
	"sluice.dev/sluice/controlplane/postgres"
	"sluice.dev/sluice/filters/decision"
)

// Edit stores what change makes of the newest version as the next one, and
// announces it. Nobody else can store a version meanwhile, so that of edits
// made at the same time none is lost. It returns the versions before and after,
// which are the same when nothing was changed, and fails as Put does.
//
// change must not alter what its argument's lists and maps hold.
func (s Store) Edit(ctx context.Context, author, note string, change func(Version) (Document, error)) (before, after Version, err error) {
	err = postgres.InTx(ctx, s.DB, func(tx pgx.Tx) error {
		if err := lock(ctx, tx); err != nil {
			return err
		}
		if before, err = latest(ctx, tx); err != nil && controlplane.ErrorCode(err) != decision.NotFound {
			return err
		}
		d, err := change(before)
		if err != nil {
			return err
		}
		after, err = put(ctx, tx, d, author, note, before.Number)
		return err
	})
	return before, after, err
}
