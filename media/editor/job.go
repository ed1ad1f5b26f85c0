package editor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/media/api/ident"
	"sluice.dev/sluice/media/api/owner"
	"sluice.dev/sluice/media/assets"
	"sluice.dev/sluice/media/files"
	"sluice.dev/sluice/media/files/ffmpeg"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/storage/postgres"
)

// look is the pause between two looks at whether a render is still wanted, at which its
// progress is written.
const look = time.Second

// attempt bounds one attempt of a render: five minutes, and half a minute for each second
// of the video, two hours at most.
func attempt(p plan) time.Duration {
	return min(5*time.Minute+30*p.length(), 2*time.Hour)
}

// RenderArgs is the job that makes the video of a render. It waits in the queue of
// transcodings, which take the processor for themselves as it does.
type RenderArgs struct {
	RenderID string `json:"render_id"`
	Seconds  int    `json:"seconds"` // that an attempt may take
}

// Kind names the job.
func (RenderArgs) Kind() string { return "media_render" }

// InsertOpts sets the job's queue and how often it is tried.
func (RenderArgs) InsertOpts() river.InsertOpts {
	return river.InsertOpts{Queue: assets.TranscodeQueue, MaxAttempts: 4}
}

// RenderWorker does RenderArgs.
type RenderWorker struct {
	river.WorkerDefaults[RenderArgs]
	Service Service
}

// Timeout bounds one attempt, after which a job whose worker died is taken up again.
func (w *RenderWorker) Timeout(job *river.Job[RenderArgs]) time.Duration {
	return time.Duration(job.Args.Seconds)*time.Second + time.Minute
}

// errGone says that a render was cancelled, or given to another attempt.
var errGone = errors.New("the render is not wanted any more")

// Work makes the video, or fails the render where another attempt would not help. The
// row decides: a render that has ended is left alone, an attempt that has lost it changes
// nothing, and the video is stored, announced and named in the row by one transaction.
// The bytes of an attempt that dies are dropped with its reservation (files.Sweep).
func (w *RenderWorker) Work(ctx context.Context, job *river.Job[RenderArgs]) error {
	v := w.Service
	r, err := one(ctx, v.Assets.DB, `id = $1`, job.Args.RenderID)
	if apierror.Code(err) == decision.NotFound || err == nil && r.ended() {
		return nil
	}
	if err != nil {
		return err
	}
	if err := v.Assets.TakeTurn(ctx, r.Owner); err != nil {
		return err
	}
	r.Holder = ident.New("try")
	if mine, err := claim(ctx, v.Assets.DB, r.ID, r.Holder, v.Assets.Clock()); err != nil || !mine {
		return err
	}
	stored, err := v.work(ctx, r, time.Duration(job.Args.Seconds)*time.Second)
	if errors.Is(err, errGone) {
		return nil
	}
	if err != nil && !assets.Lasting(err) && job.Attempt < job.MaxAttempts {
		return errors.Join(err, requeue(context.WithoutCancel(ctx), v.Assets.DB, r.ID, r.Holder, v.Assets.Clock()))
	}
	return v.end(ctx, r, stored, err)
}

// work makes and stores the video of r, and tells how far it is.
func (v Service) work(ctx context.Context, r Render, limit time.Duration) (assets.Stored, error) {
	var in Input
	if err := json.Unmarshal(r.Request, &in); err != nil {
		return assets.Stored{}, fmt.Errorf("read timeline: %w", err)
	}
	o := owner.Owner{ID: r.Owner, Account: r.Account, Plan: r.Plan}
	p, err := v.plan(ctx, o, in)
	if err != nil {
		return assets.Stored{}, changed(err)
	}
	ctx, stop := context.WithCancelCause(ctx)
	var progress atomic.Int64
	var watching sync.WaitGroup
	watching.Go(func() { v.watch(ctx, r, &progress, stop) })
	defer watching.Wait()
	defer stop(nil)
	folder, err := v.Assets.FFmpeg.NewFolder()
	if err != nil {
		return assets.Stored{}, err
	}
	defer func() { _ = folder.Close() }() // what is left of it is the machine's to clean
	most := v.most(r.Plan, p)
	film := &lazy{open: func() (*os.File, error) {
		if err := v.gather(ctx, p, folder); err != nil {
			return nil, err
		}
		if err := p.make(ctx, v.Assets.FFmpeg, folder, most, limit, func(made time.Duration) { progress.Store(percent(made, p.length())) }); err != nil {
			return nil, err
		}
		return os.Open(folder.Output())
	}}
	defer film.close()
	stored, err := v.Assets.Store(ctx, o, most, film)
	if err != nil && errors.Is(context.Cause(ctx), errGone) {
		err = errGone
	}
	return stored, err
}

// changed says in a sentence what has become wrong with a timeline since it was queued.
func changed(err error) error {
	e, ok := errors.AsType[*apierror.Error](err)
	if !ok || len(e.Details) == 0 {
		return err
	}
	return apierror.Errorf(decision.NotFound, "%s %s.", e.Details[0].Field, e.Details[0].Issue)
}

// percent is how much of a video is made; the last of it is its sound, and storing.
func percent(made, whole time.Duration) int64 {
	return min(max(int64(97*made/max(whole, 1)), 0), 97)
}

// watch writes the progress of r until ctx ends, and ends it when r is not wanted any more.
func (v Service) watch(ctx context.Context, r Render, progress *atomic.Int64, stop context.CancelCauseFunc) {
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if mine, err := advance(ctx, v.Assets.DB, r.ID, r.Holder, int(progress.Load()), v.Assets.Clock()); err == nil && !mine {
			stop(errGone)
			return
		}
	}
}

// gather puts what ffmpeg reads for p into a folder.
func (v Service) gather(ctx context.Context, p plan, to ffmpeg.Folder) error {
	for _, n := range p.used() {
		if err := v.fetch(ctx, p.sources[n], to.File(sourceName(n))); err != nil {
			return err
		}
	}
	return nil
}

// fetch copies a film out of the database.
func (v Service) fetch(ctx context.Context, s Source, name string) error {
	src, err := files.Open(ctx, v.Assets.DB, s.FileID)
	if apierror.Code(err) == decision.NotFound {
		return apierror.Errorf(decision.NotFound, "%s was deleted.", s.AssetID)
	}
	if err != nil {
		return err
	}
	return ffmpeg.Keep(name, src)
}

// lazy is a file that is made when it is first read from.
type lazy struct {
	open func() (*os.File, error)
	file *os.File
	err  error
}

// Read makes the file, and reads it.
func (l *lazy) Read(p []byte) (int, error) {
	if l.file == nil && l.err == nil {
		l.file, l.err = l.open()
	}
	if l.err != nil {
		return 0, l.err
	}
	return l.file.Read(p)
}

func (l *lazy) close() {
	if l.file != nil {
		_ = l.file.Close() // nothing was written to it
	}
}

// end makes r ready with a video of what was stored, or failed for cause.
func (v Service) end(ctx context.Context, r Render, stored assets.Stored, cause error) error {
	return postgres.InTx(ctx, v.Assets.DB, func(tx pgx.Tx) error {
		now, err := one(ctx, tx, `id = $1 FOR UPDATE`, r.ID)
		if err != nil && apierror.Code(err) != decision.NotFound {
			return err
		}
		if err != nil || now.Status != Rendering || now.Holder != r.Holder {
			return assets.DropTx(ctx, tx, stored)
		}
		now.UpdatedAt, now.Holder = v.Assets.Clock(), ""
		if cause != nil {
			now.Status = Failed
			now.ErrorCode, now.ErrorMessage = assets.Reason(cause)
			return save(ctx, tx, now)
		}
		a, err := v.Assets.AddTx(ctx, tx, owner.Owner{ID: r.Owner, Account: r.Account, Plan: r.Plan}, r.Title, r.Metadata, stored)
		if err != nil {
			return err
		}
		now.Status, now.Progress, now.AssetID = Ready, 100, a.ID
		return save(ctx, tx, now)
	})
}
