package assets

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/media/api/owner"
	"sluice.dev/sluice/media/files"
	"sluice.dev/sluice/media/files/ffmpeg"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/storage/postgres"
)

// TranscodeQueue is the River queue of transcodings: each takes the processor for
// itself, so that few run at once.
const TranscodeQueue = "media_transcode"

// transcodeTimeout bounds one attempt.
const transcodeTimeout = time.Hour

// TranscodeArgs is the job that makes a rendition.
type TranscodeArgs struct {
	RenditionID string `json:"rendition_id"`
}

// Kind names the job.
func (TranscodeArgs) Kind() string { return "media_transcode" }

// InsertOpts sets the job's queue and how often it is tried.
func (TranscodeArgs) InsertOpts() river.InsertOpts {
	return river.InsertOpts{Queue: TranscodeQueue, MaxAttempts: 3}
}

// Render adds a rendition to an asset that is ready, and the job that makes it. It
// fails with TRANSCODE_002 for a profile that nobody knows, TRANSCODE_003 where the
// picture would have to grow, TRANSCODE_001 when the queue is full, BILLING_002 when
// the storage is used up, and with conflict when it is there already, or the asset
// is not ready. One that has failed is tried again.
func (v Service) Render(ctx context.Context, o owner.Owner, kind Kind, id, profile string) (Rendition, error) {
	p, err := known(profile)
	if err != nil {
		return Rendition{}, err
	}
	if !v.FFmpeg.Available() {
		return Rendition{}, noTranscoder()
	}
	if err := v.checkStorage(ctx, o); err != nil {
		return Rendition{}, err
	}
	r := v.newRendition(o, id, profile)
	err = postgres.InTx(ctx, v.DB, func(tx pgx.Tx) error {
		a, err := one(ctx, tx, `owner = $1 AND kind = $2 AND id = $3 FOR UPDATE`, o.ID, kind, id)
		if err != nil {
			return err
		}
		if a.Status != Ready {
			return apierror.Errorf(decision.Conflict, "It is %s. Renditions are made of what is ready.", a.Status)
		}
		if err := fits(a, p); err != nil {
			return err
		}
		if err := v.insertRendition(ctx, tx, r); err != nil {
			return err
		}
		return v.enqueueRendition(ctx, tx, r)
	})
	return r, err
}

// insertRendition stores r in place of one that has failed.
func (v Service) insertRendition(ctx context.Context, tx pgx.Tx, r Rendition) error {
	l, err := countRenditions(ctx, tx, r.Owner)
	if err == nil {
		err = v.full(l)
	}
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `DELETE FROM media_renditions WHERE asset_id = $1 AND profile = $2 AND status = 'failed'`, r.AssetID, r.Profile)
	if err != nil {
		return fmt.Errorf("drop rendition: %w", err)
	}
	there, err := renditions(ctx, tx, `asset_id = $1 AND profile = $2`, r.AssetID, r.Profile)
	if err == nil && len(there) > 0 {
		err = apierror.Errorf(decision.Conflict, "There is a rendition %s already; it is %s.", r.Profile, there[0].Status)
	}
	if err != nil {
		return err
	}
	return saveRendition(ctx, tx, r)
}

// enqueueRendition inserts the job that makes r.
func (v Service) enqueueRendition(ctx context.Context, tx pgx.Tx, r Rendition) error {
	if _, err := v.Jobs.InsertTx(ctx, tx, TranscodeArgs{RenditionID: r.ID}, nil); err != nil {
		return fmt.Errorf("enqueue transcoding: %w", err)
	}
	return nil
}

// startRenditions starts the renditions that wait for a, or fails them with it.
func (v Service) startRenditions(ctx context.Context, tx pgx.Tx, a Asset) error {
	waiting, err := renditions(ctx, tx, `asset_id = $1 AND status = 'processing' ORDER BY id FOR UPDATE`, a.ID)
	if err != nil {
		return err
	}
	for _, r := range waiting {
		if a.Status == Failed {
			r.fail(a.ErrorCode, a.ErrorMessage)
			r.UpdatedAt = now(v.Now)
			err = saveRendition(ctx, tx, r)
		} else {
			err = v.enqueueRendition(ctx, tx, r)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// TranscodeWorker does TranscodeArgs.
type TranscodeWorker struct {
	river.WorkerDefaults[TranscodeArgs]
	Service Service
}

// Timeout bounds one attempt; what comes after ffmpeg takes a moment.
func (w *TranscodeWorker) Timeout(*river.Job[TranscodeArgs]) time.Duration {
	return transcodeTimeout + time.Minute
}

// Work makes the rendition ready, or failed where another attempt would not help.
// One that is no longer processing, or gone, is left alone: the job can run twice.
// One whose owner had a turn later than another who waits is put aside.
func (w *TranscodeWorker) Work(ctx context.Context, job *river.Job[TranscodeArgs]) error {
	v := w.Service
	r, err := rendition(ctx, v.DB, job.Args.RenditionID, "")
	if apierror.Code(err) == decision.NotFound || err == nil && r.Status != Processing {
		return nil
	}
	if err != nil {
		return err
	}
	if err := v.TakeTurn(ctx, r.Owner); err != nil {
		return err
	}
	stored, err := v.transcode(ctx, r)
	if err != nil && !lasting(err) && job.Attempt < job.MaxAttempts {
		return err
	}
	return v.endRendition(ctx, r, stored, err)
}

// lasting says whether another attempt would fail as this one did.
func lasting(err error) bool {
	switch apierror.Code(err) {
	case decision.Transcode002, decision.Transcode003, decision.Storage001, decision.Storage002, decision.QuotaUsed, decision.NotImplemented, decision.NotFound:
		return true
	}
	return false
}

// transcode makes the file of a rendition.
func (v Service) transcode(ctx context.Context, r Rendition) (Stored, error) {
	a, err := one(ctx, v.DB, `id = $1`, r.AssetID)
	if err != nil {
		return Stored{}, err
	}
	p, err := known(r.Profile)
	if err == nil {
		err = fits(a, p)
	}
	if err != nil {
		return Stored{}, err
	}
	limits := v.Plans.Of(r.Plan)
	var stored Stored
	err = v.convert(ctx, a, keep, ffmpeg.Transcode(p), limits.FileBytes, transcodeTimeout, func(out *os.File) error {
		info, err := out.Stat()
		if err != nil {
			return fmt.Errorf("look at result: %w", err)
		}
		stored, err = v.store(ctx, bounds(r.Owner, limits, info.Size()), out)
		return err
	})
	return stored, err
}

// convert runs ffmpeg on the bytes of a, which input puts in place, and hands the
// result to use.
func (v Service) convert(ctx context.Context, a Asset, input func(context.Context, *files.Reader, ffmpeg.Folder) error, recipe ffmpeg.Recipe, most int64, limit time.Duration, use func(*os.File) error) error {
	folder, err := v.FFmpeg.NewFolder()
	if err != nil {
		return err
	}
	defer func() { _ = folder.Close() }() // what is left of it is the machine's to clean
	src, err := files.Open(ctx, v.DB, a.FileID)
	if err != nil {
		return err
	}
	if err := input(ctx, src, folder); err != nil {
		return err
	}
	if err := v.FFmpeg.Run(ctx, folder, recipe, most, limit); err != nil {
		return err
	}
	out, err := os.Open(folder.Output())
	if err != nil {
		return fmt.Errorf("open result: %w", err)
	}
	defer out.Close()
	return use(out)
}

// keep copies src for one conversion.
func keep(_ context.Context, src *files.Reader, to ffmpeg.Folder) error {
	return ffmpeg.Keep(to.Input(), src)
}

// endRendition makes r ready with what was stored, or failed for cause.
func (v Service) endRendition(ctx context.Context, r Rendition, stored Stored, cause error) error {
	return postgres.InTx(ctx, v.DB, func(tx pgx.Tx) error {
		r, err := rendition(ctx, tx, r.ID, "FOR UPDATE")
		if err != nil || r.Status != Processing {
			return drop(ctx, tx, stored, err)
		}
		if cause != nil {
			r.fail(reason(cause))
		} else {
			r.complete(stored)
		}
		r.UpdatedAt = now(v.Now)
		return saveRendition(ctx, tx, r)
	})
}

// noTranscoder is the error where there is no ffmpeg.
func noTranscoder() error {
	return apierror.Errorf(decision.NotImplemented, "There is no ffmpeg here: videos are not converted.")
}
