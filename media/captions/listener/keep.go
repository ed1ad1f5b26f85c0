package listener

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/media/captions"
	"sluice.dev/sluice/media/captions/onair"
	"sluice.dev/sluice/media/transcribe"
	"sluice.dev/sluice/platform/storage/postgres"
)

// Keeper keeps what was captioned in broadcasts that have ended: as the track of the
// stream, and as the captions of the recording.
type Keeper struct {
	Store      onair.Store
	Captions   captions.Service
	Transcribe transcribe.Service
}

// keep keeps what is left of broadcasts to which nobody listens any more. What was said
// leaves its rows in the transaction that stores and announces it: killed before, it is
// done again, and never twice.
func (k Keeper) keep(ctx context.Context, listening func(session string) bool) error {
	list, err := k.Store.Ended(ctx)
	for _, b := range list {
		if !listening(b.Session) {
			err = errors.Join(err, k.one(ctx, b))
		}
	}
	return err
}

// one keeps one language of a broadcast.
func (k Keeper) one(ctx context.Context, b onair.Broadcast) error {
	start, recorded := b.StartedAt, b.Ready && b.Recorded != nil
	if recorded {
		start = *b.Recorded
	}
	address, err := k.Transcribe.Address(ctx, b.Recording, b.Language)
	if err != nil {
		return err
	}
	return postgres.InTx(ctx, k.Store.DB, func(tx pgx.Tx) error {
		t, err := b.Take(ctx, tx, start)
		if err != nil || len(t.Words) == 0 {
			return err
		}
		if err := k.Captions.Fill(ctx, tx, b.StreamID, b.Language, t, !recorded); err != nil || !recorded {
			return err
		}
		return k.Transcribe.Adopt(ctx, tx, b.Owner, b.Recording, b.Language, address, t)
	})
}
