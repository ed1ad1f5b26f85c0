package config

import (
	"context"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/platform/storage/postgres"
)

// Edit stores what change makes of the newest version as the next one, and
// announces it. Nobody else can store a version meanwhile, so that of edits
// made at the same time none is lost. It returns the version that is then the
// newest, and what was changed: nothing when that is the one there was. It fails
// as Put does.
//
// change must not alter what its argument's lists and maps hold.
func (s Store) Edit(ctx context.Context, author, note string, change func(Version) (Document, error)) (v Version, changes []Change, err error) {
	err = postgres.InTx(ctx, s.DB, func(tx pgx.Tx) error {
		now, err := s.locked(ctx, tx)
		if err != nil {
			return err
		}
		d, err := change(now)
		if err != nil {
			return err
		}
		v, changes, err = put(ctx, tx, now, d, author, note)
		return err
	})
	if err == nil {
		s.Memory.keep(v)
	}
	return v, changes, err
}
