package assets

import (
	"context"
	"io"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/media/api/owner"
	"sluice.dev/sluice/media/files"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/storage/postgres"
)

// What parts of the product that make films of assets, or look into them, share with
// this one: the editor, and chapters.

// Find returns an owner's asset of any kind, or not_found. lock is empty or FOR UPDATE.
func Find(ctx context.Context, db postgres.DB, owner, id, lock string) (Asset, error) {
	return one(ctx, db, `owner = $1 AND id = $2 `+lock, owner, id)
}

// Part is where in its file a ready asset lies, in seconds from its start: clips of before
// share their source's file.
func (a Asset) Part() (from float64) {
	if a.Kind == Clip && !a.Cut {
		return seconds(a.StartMS)
	}
	return 0
}

// TakeTurn returns nil when owner is next of those who wait for the encoder; else what
// puts its job aside for a moment.
func (v Service) TakeTurn(ctx context.Context, owner string) error {
	others, err := waitForEncoder(ctx, v.DB, owner)
	if err == nil && !v.Turns.Take(owner, others) {
		err = river.JobSnooze(aside)
	}
	return err
}

// CheckRoom fails with BILLING_002 when the storage of o has no room for so many bytes
// more, and with STORAGE_001 when its plan has no file of that size.
func (v Service) CheckRoom(ctx context.Context, o owner.Owner, bytes int64) error {
	l := v.Plans.Of(o.Plan)
	if l.StorageBytes == 0 {
		return nil
	}
	taken, err := files.Taken(ctx, v.DB, o.ID)
	if err == nil && taken+bytes > l.StorageBytes {
		err = apierror.Errorf(decision.QuotaUsed, "It may take %d bytes; of the plan's storage of %d bytes %d are left.", bytes, l.StorageBytes, max(0, l.StorageBytes-taken))
	}
	return err
}

// HoldRoomTx fails with BILLING_002 when the storage of o has no room for so many bytes more
// that tx stores. No file of o is begun before tx ends.
func (v Service) HoldRoomTx(ctx context.Context, tx pgx.Tx, o owner.Owner, bytes int64) error {
	if bytes == 0 {
		return nil
	}
	return files.HoldTx(ctx, tx, o.ID, bytes, v.Plans.Of(o.Plan).StorageBytes)
}

// FileLimit is how large a file of a plan may be; 0: any size.
func (v Service) FileLimit(plan string) int64 { return v.Plans.Of(plan).FileBytes }

// Store keeps what src makes as a file of o, of at most most bytes, for which room is
// set aside before src is read. It fails as files.Write does, and with STORAGE_002 when it
// is no film.
func (v Service) Store(ctx context.Context, o owner.Owner, most int64, src io.Reader) (Stored, error) {
	return v.store(ctx, bounds(o.ID, v.Plans.Of(o.Plan), most), src)
}

// AddTx makes a ready video of a file of Store, and emits its events.
func (v Service) AddTx(ctx context.Context, tx pgx.Tx, o owner.Owner, title string, metadata map[string]string, stored Stored) (Asset, error) {
	a := Asset{Kind: VOD, Title: title, Metadata: labels(metadata)}
	v.initialize(&a, o)
	a.Complete(stored)
	return a, v.finish(ctx, tx, a, v.Plans.Of(o.Plan))
}

// DropTx removes a file of Store that came too late.
func DropTx(ctx context.Context, tx pgx.Tx, stored Stored) error {
	return files.RemoveTx(ctx, tx, stored.FileID)
}

// Lasting says whether another attempt would fail as this one did.
func Lasting(err error) bool { return lasting(err) }

// Reason is an error as the owner of what failed sees it.
func Reason(err error) (decision.Code, string) { return reason(err) }

// QueueTx fails with TRANSCODE_001 when a queue has no place for one more of an owner.
// sql counts all that wait and those of the owner, $1.
func (v Service) QueueTx(ctx context.Context, tx pgx.Tx, owner, sql string) error {
	l, err := countLine(ctx, tx, owner, sql)
	if err != nil {
		return err
	}
	return v.full(l)
}

// Link is a signed address of a file below an asset's, such as chapters.vtt, which holds
// as long as that of the asset's bytes.
func (v Service) Link(ctx context.Context, a Asset, file string) (string, error) {
	key, err := v.Keys.Key(ctx)
	if err != nil {
		return "", err
	}
	return below(v.address(a.ID, key, linkTTL), file), nil
}

// Clock is the time, at the precision of the database and of the API.
func (v Service) Clock() time.Time { return now(v.Now) }

// FindAll returns those of an owner's assets that have one of some ids.
func FindAll(ctx context.Context, db postgres.DB, owner string, ids []string) ([]Asset, error) {
	return many(ctx, db, `owner = $1 AND id = ANY ($2)`, owner, ids)
}
