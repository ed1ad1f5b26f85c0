package assets

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/media/files"
	"sluice.dev/sluice/media/files/fetch"
	"sluice.dev/sluice/media/plans"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/storage/postgres"
)

// Queue is the River queue of the jobs that fetch from addresses that customers
// chose. Few workers suffice: each holds one range of a file in memory. What else a
// worker does has queues of its own, so that nobody waits for a slow source.
const Queue = "media"

// FetchPlaces is how many of them run at once in a process. An owner has a quarter
// of it at most.
const FetchPlaces = 8

// fetchTimeout bounds one attempt to fetch a source.
const fetchTimeout = 30 * time.Minute

// FetchArgs is the job that fetches the source of an asset.
type FetchArgs struct {
	AssetID string `json:"asset_id"`
	Plan    string `json:"plan"` // whose limits hold
}

// Kind names the job.
func (FetchArgs) Kind() string { return "media_fetch" }

// InsertOpts sets the job's queue and how often it is tried.
func (FetchArgs) InsertOpts() river.InsertOpts { return river.InsertOpts{Queue: Queue, MaxAttempts: 5} }

// FetchWorker does FetchArgs.
type FetchWorker struct {
	river.WorkerDefaults[FetchArgs]
	Service Service
}

// Timeout bounds one attempt.
func (w *FetchWorker) Timeout(*river.Job[FetchArgs]) time.Duration { return fetchTimeout }

// Work fetches the source and makes the asset ready, or failed where another
// attempt would not help. An asset that is no longer processing, or gone, is left
// alone: the job can run twice. One whose owner has its share of the workers is put
// aside.
func (w *FetchWorker) Work(ctx context.Context, job *river.Job[FetchArgs]) error {
	v := w.Service
	a, err := one(ctx, v.DB, `id = $1`, job.Args.AssetID)
	if apierror.Code(err) == decision.NotFound || err == nil && (a.Status != Processing || a.FileID != "") {
		return nil
	}
	if err != nil {
		return err
	}
	leave, err := v.Enter(a.Owner)
	if err != nil {
		return err
	}
	defer leave()
	limits := v.Plans.Of(job.Args.Plan)
	stored, err := v.fetch(ctx, a, limits)
	if err != nil && !final(err) && job.Attempt < job.MaxAttempts {
		return err
	}
	return v.end(ctx, a, limits, stored, err)
}

// fetch stores the source of a. Its first range tells how much room it needs.
func (v Service) fetch(ctx context.Context, a Asset, l plans.Limits) (Stored, error) {
	src := fetch.Open(ctx, v.Client, a.SourceURL)
	size, err := src.Size()
	if err != nil {
		return Stored{}, err
	}
	return v.store(ctx, bounds(a.Owner, l, size), src)
}

// end makes the asset ready with what was stored, or failed for cause.
func (v Service) end(ctx context.Context, a Asset, limits plans.Limits, stored Stored, cause error) error {
	return postgres.InTx(ctx, v.DB, func(tx pgx.Tx) error {
		a, lerr := one(ctx, tx, `id = $1 FOR UPDATE`, a.ID)
		if lerr != nil || a.Status != Processing || a.FileID != "" {
			return drop(ctx, tx, stored, lerr)
		}
		if cause == nil {
			a.Complete(stored)
		} else if err := v.fail(ctx, tx, &a, cause); err != nil {
			return err
		}
		return v.finish(ctx, tx, a, limits)
	})
}

// drop removes a file that came too late for its asset.
func drop(ctx context.Context, tx pgx.Tx, s Stored, err error) error {
	if err != nil && apierror.Code(err) != decision.NotFound {
		return err
	}
	return release(ctx, tx, Asset{FileID: s.FileID})
}

// final says whether another attempt would fail as this one did.
func final(err error) bool {
	if e, ok := errors.AsType[*fetch.Error](err); ok {
		return e.Permanent
	}
	code := apierror.Code(err)
	return code == decision.Storage001 || code == decision.Storage002 || code == decision.QuotaUsed
}

// reason is the error of an asset as its owner sees it.
func reason(err error) (decision.Code, string) {
	if e, ok := errors.AsType[*fetch.Error](err); ok {
		return decision.BadGateway, e.Message
	}
	if e, ok := errors.AsType[*apierror.Error](err); ok {
		return e.Code, e.Message
	}
	return decision.Internal, decision.Lookup(decision.Internal).Message
}

// sweepAfter is the age at which a file that nobody refers to counts as left
// behind. It is far more than fetchTimeout.
const sweepAfter = 24 * time.Hour

// Sweep removes the bytes that writers who died have left behind, and returns of how
// many files.
func (v Service) Sweep(ctx context.Context) (int64, error) {
	return files.Sweep(ctx, v.DB, now(v.Now).Add(-sweepAfter))
}
