package assets

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/media/files/ffmpeg"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/storage/postgres"
)

// CutQueue is the River queue of clips that are copied out of their sources, which
// takes seconds. Precise ones are encoded anew, and wait with the transcodings.
const CutQueue = "media_cut"

// CutPlaces is how many clips are cut at once in a process. An owner has a quarter of
// it at most, and one in any case.
const CutPlaces = 2

// cutTimeout bounds one attempt to cut a clip.
const cutTimeout = 15 * time.Minute

// CutArgs is the job that cuts a clip out of the file that it has for now: its
// source's, or what was fetched for it.
type CutArgs struct {
	AssetID string `json:"asset_id"`
}

// Kind names the job.
func (CutArgs) Kind() string { return "media_cut" }

// InsertOpts sets the job's queue and how often it is tried.
func (CutArgs) InsertOpts() river.InsertOpts {
	return river.InsertOpts{Queue: CutQueue, MaxAttempts: 3}
}

// enqueueCut inserts the job that cuts a.
func (v Service) enqueueCut(ctx context.Context, tx pgx.Tx, a Asset) error {
	opts := CutArgs{}.InsertOpts()
	if a.Precise {
		opts.Queue = TranscodeQueue
	}
	if _, err := v.Jobs.InsertTx(ctx, tx, CutArgs{AssetID: a.ID}, &opts); err != nil {
		return fmt.Errorf("enqueue cut: %w", err)
	}
	return nil
}

// countCuts is the length of the queue of clips to be cut, those among them whose source
// is not ready yet. Clips of an address are counted with what is fetched until they have it.
func countCuts(ctx context.Context, tx pgx.Tx, owner string) (line, error) {
	return countLine(ctx, tx, owner, `SELECT count(*), count(*) FILTER (WHERE owner = $1) FROM media_assets
		WHERE status = 'processing' AND kind = 'clip' AND (file_id <> '' OR source_id <> '')`)
}

// CutWorker does CutArgs.
type CutWorker struct {
	river.WorkerDefaults[CutArgs]
	Service Service
}

// Timeout bounds one attempt; what comes after ffmpeg takes a moment.
func (w *CutWorker) Timeout(*river.Job[CutArgs]) time.Duration { return cutTimeout + time.Minute }

// Work gives the clip a file of its own, or fails it where another attempt would not
// help. One that waits for nothing, or is gone, is left alone: the job can run twice.
// One whose owner has its share of the workers is put aside.
func (w *CutWorker) Work(ctx context.Context, job *river.Job[CutArgs]) error {
	v := w.Service
	a, err := one(ctx, v.DB, `id = $1`, job.Args.AssetID)
	if apierror.Code(err) == decision.NotFound || err == nil && !a.uncut() {
		return nil
	}
	if err != nil {
		return err
	}
	leave, ok := v.Cuts.TryEnter(a.Owner)
	if !ok {
		return river.JobSnooze(aside)
	}
	defer leave()
	stored, err := v.cut(ctx, a)
	if err != nil && !lasting(err) && job.Attempt < job.MaxAttempts {
		return err
	}
	return v.endCut(ctx, a, stored, err)
}

// cut makes the file of a clip.
func (v Service) cut(ctx context.Context, a Asset) (stored Stored, err error) {
	limits := v.Plans.Of(a.Plan)
	recipe := ffmpeg.Cut(seconds(a.StartMS), seconds(a.EndMS-a.StartMS), a.Format, a.Precise)
	err = v.convert(ctx, a, keep, recipe, limits.FileBytes, cutTimeout, func(out *os.File) error {
		info, err := out.Stat()
		if err != nil {
			return fmt.Errorf("look at result: %w", err)
		}
		stored, err = v.store(ctx, bounds(a.Owner, limits, info.Size()), out)
		return err
	})
	return stored, err
}

// endCut makes the clip ready with what was stored, or failed for cause, and lets go
// of the file that it was cut from.
func (v Service) endCut(ctx context.Context, a Asset, stored Stored, cause error) error {
	return postgres.InTx(ctx, v.DB, func(tx pgx.Tx) error {
		a, err := one(ctx, tx, `id = $1 FOR UPDATE`, a.ID)
		if err != nil || !a.uncut() {
			return drop(ctx, tx, stored, err)
		}
		whole := a.FileID
		if err := lockFile(ctx, tx, whole); err != nil {
			return err
		}
		if cause != nil {
			a.Fail(reason(cause))
		} else {
			a.cutTo(stored)
		}
		if err := save(ctx, tx, a); err != nil {
			return err
		}
		if err := dropFile(ctx, tx, whole); err != nil {
			return err
		}
		return v.finish(ctx, tx, a, v.Plans.Of(a.Plan))
	})
}
