package legacy

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/media/assets"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/storage/postgres"
)

// ImportArgs is the job that takes videos over from a provider.
type ImportArgs struct {
	Owner string   `json:"owner"`
	IDs   []string `json:"ids"` // empty: all
}

// Kind names the job.
func (ImportArgs) Kind() string { return "media_import" }

// InsertOpts sets the job's queue and how often it is tried.
func (ImportArgs) InsertOpts() river.InsertOpts {
	return river.InsertOpts{Queue: assets.Queue, MaxAttempts: 10}
}

// ImportWorker does ImportArgs.
type ImportWorker struct {
	river.WorkerDefaults[ImportArgs]
	Service Service
}

// Timeout bounds one attempt: a walk through all pages of a slow provider.
func (w *ImportWorker) Timeout(*river.Job[ImportArgs]) time.Duration { return 15 * time.Minute }

// Work imports what is not imported yet; so it can be repeated, and goes on
// where it stopped. While the processing queue is full it waits its turn.
func (w *ImportWorker) Work(ctx context.Context, job *river.Job[ImportArgs]) error {
	v := w.Service
	c, err := get(ctx, v.DB, job.Args.Owner)
	if apierror.Code(err) == decision.NotFound {
		return nil // cleaned up meanwhile
	}
	if err != nil {
		return err
	}
	leave, err := v.Assets.Enter(c.Owner)
	if err != nil {
		return err
	}
	defer leave()
	_, p, err := v.open(ctx, c.By())
	if err == nil {
		_, err = walk(ctx, p, func(found []Video) error { return v.takeAll(ctx, c, job.Args.IDs, found) })
	}
	switch code := apierror.Code(err); {
	case err == nil:
		return end(ctx, v.DB, c.Owner, stateDone, "", v.now())
	case code == decision.Transcode001:
		return river.JobSnooze(30 * time.Second)
	case code == decision.QuotaUsed || code == decision.InvalidRequest || job.Attempt >= job.MaxAttempts:
		return end(ctx, v.DB, c.Owner, stateFailed, message(err), v.now())
	}
	return err
}

// message is why an import failed, as its owner sees it.
func message(err error) string {
	if e, ok := errors.AsType[*apierror.Error](err); ok && e.Message != "" {
		return e.Message
	}
	return decision.Lookup(apierror.Code(err)).Message
}

// takeAll takes over the videos of one page: those that are wanted, and not
// there yet, up to maxImported. What was imported is read anew for each page, so that a page
// that repeats a video does no harm.
func (v Service) takeAll(ctx context.Context, c Connection, ids []string, found []Video) error {
	done := map[string]bool{}
	if err := eachImported(ctx, v.DB, c.Owner, Page{Videos: found}.ids(), func(t Imported) { done[t.LegacyID] = t.VODID != "" }); err != nil {
		return err
	}
	have, err := count(ctx, v.DB, c.Owner)
	if err != nil {
		return err
	}
	for _, video := range found {
		if done[video.ID] || len(ids) > 0 && !slices.Contains(ids, video.ID) {
			continue
		}
		if _, again := done[video.ID]; !again {
			if have.Total++; have.Total > maxImported {
				return apierror.Errorf(decision.QuotaUsed, "%d videos have been taken over, which is the most for one account.", maxImported)
			}
		}
		if err := v.importOne(ctx, c, video); err != nil {
			return err
		}
	}
	return nil
}

// importOne stores the video and that it is imported, both or neither. A video
// that is refused is noted with the reason, and does not stop the others.
func (v Service) importOne(ctx context.Context, c Connection, video Video) error {
	title := []rune(video.Title)
	a, err := v.Assets.Admit(ctx, c.By(), assets.Input{SourceURL: video.DownloadURL, Title: string(title[:min(len(title), assets.MaxTitle)]),
		Metadata: map[string]string{"legacy_id": video.ID}})
	problem := ""
	if apierror.Code(err) == decision.InvalidRequest {
		problem = err.Error()
		a.ID = ""
	} else if err != nil {
		return err
	}
	return postgres.InTx(ctx, v.DB, func(tx pgx.Tx) error {
		fresh, err := saveImported(ctx, tx, c.Owner, video, a.ID, problem)
		if err != nil || !fresh || problem != "" {
			return err
		}
		return v.Assets.EnqueueTx(ctx, tx, c.By(), a)
	})
}
