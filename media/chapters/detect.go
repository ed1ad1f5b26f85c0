package chapters

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/media/api/form"
	"sluice.dev/sluice/media/api/ident"
	"sluice.dev/sluice/media/api/owner"
	"sluice.dev/sluice/media/assets"
	"sluice.dev/sluice/media/captions"
	"sluice.dev/sluice/media/files"
	"sluice.dev/sluice/media/files/ffmpeg"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/storage/postgres"
)

// searchTimeout bounds one attempt to find the chapters of a film.
const searchTimeout = time.Hour

// Detect queues a search for the chapters of o's asset, which replaces those that were
// found before and leaves those that were set. It fails with not_implemented where there is
// no ffmpeg, with conflict while another search runs or the asset is not ready, and with
// TRANSCODE_001 when the queue is full.
func (v Service) Detect(ctx context.Context, o owner.Owner, in DetectInput) (Detection, error) {
	if !v.Assets.FFmpeg.Available() {
		return Detection{}, apierror.Errorf(decision.NotImplemented, "There is no ffmpeg here: chapters are not found. POST /v1/chapters sets them.")
	}
	least := 30.0
	var f form.Form
	if in.AssetID == "" {
		f.Fail("asset_id", "is missing", "id of a video, a recording or a clip")
	}
	if in.MinLength != nil {
		if least = *in.MinLength; !(least >= 1 && least <= 3600) {
			f.Fail("min_length", "is out of range", "seconds from 1 to 3600")
		}
	}
	if err := f.Err(); err != nil {
		return Detection{}, err
	}
	now := v.Assets.Clock()
	s := search{AssetID: in.AssetID, ID: ident.New("find"), Owner: o.ID, Status: "processing", LeastMS: int64(least * 1000), CreatedAt: now, UpdatedAt: now}
	err := postgres.InTx(ctx, v.Assets.DB, func(tx pgx.Tx) error { return v.enqueue(ctx, tx, o, s) })
	return s.view(), err
}

// enqueue stores a search and its job.
func (v Service) enqueue(ctx context.Context, tx pgx.Tx, o owner.Owner, s search) error {
	if err := v.Assets.QueueTx(ctx, tx, o.ID, `SELECT count(*), count(*) FILTER (WHERE owner = $1) FROM media_chapter_searches WHERE status = 'processing'`); err != nil {
		return err
	}
	a, err := assets.Find(ctx, tx, o.ID, s.AssetID, "FOR UPDATE")
	if err != nil {
		return err
	}
	if a.Status != assets.Ready {
		return apierror.Errorf(decision.Conflict, "It is %s. Chapters are found in what is ready.", a.Status)
	}
	if before, err := lookup(ctx, tx, `asset_id = $1`, a.ID); err == nil && before.Status == "processing" {
		return apierror.Errorf(decision.Conflict, "Its chapters are being looked for already.")
	} else if err != nil && apierror.Code(err) != decision.NotFound {
		return err
	}
	if err := s.save(ctx, tx); err != nil {
		return err
	}
	if _, err := v.Assets.Jobs.InsertTx(ctx, tx, DetectArgs{SearchID: s.ID}, nil); err != nil {
		return fmt.Errorf("enqueue search for chapters: %w", err)
	}
	return nil
}

// DetectArgs is the job that finds the chapters of an asset. It decodes the film, and so
// waits with the transcodings.
type DetectArgs struct {
	SearchID string `json:"search_id"`
}

// Kind names the job.
func (DetectArgs) Kind() string { return "media_chapters" }

// InsertOpts sets the job's queue and how often it is tried.
func (DetectArgs) InsertOpts() river.InsertOpts {
	return river.InsertOpts{Queue: assets.TranscodeQueue, MaxAttempts: 3}
}

// DetectWorker does DetectArgs.
type DetectWorker struct {
	river.WorkerDefaults[DetectArgs]
	Service Service
}

// Timeout bounds one attempt.
func (w *DetectWorker) Timeout(*river.Job[DetectArgs]) time.Duration {
	return searchTimeout + time.Minute
}

// Work finds the chapters, or fails the search where another attempt would not help. What
// it finds is written with the end of the search, in one transaction; a search that has
// ended or is gone is left alone: the job can run twice.
func (w *DetectWorker) Work(ctx context.Context, job *river.Job[DetectArgs]) error {
	v := w.Service
	s, err := lookup(ctx, v.Assets.DB, `id = $1 AND status = 'processing'`, job.Args.SearchID)
	if apierror.Code(err) == decision.NotFound {
		return nil
	}
	if err != nil {
		return err
	}
	if err := v.Assets.TakeTurn(ctx, s.Owner); err != nil {
		return err
	}
	found, err := v.find(ctx, s)
	if err != nil && !assets.Lasting(err) && job.Attempt < job.MaxAttempts {
		return err
	}
	return v.end(ctx, s, found, err)
}

// part is a chapter that was found.
type part struct {
	title   string
	startMS int64
}

// find looks through a film.
func (v Service) find(ctx context.Context, s search) ([]part, error) {
	a, err := assets.Find(ctx, v.Assets.DB, s.Owner, s.AssetID, "")
	if err != nil {
		return nil, err
	}
	length := seconds(a.DurationMS)
	if a.Height == 0 && a.AudioCodec == "" {
		return nil, apierror.Errorf(decision.Storage002, "The file has neither picture nor sound.")
	}
	folder, err := v.Assets.FFmpeg.NewFolder()
	if err != nil {
		return nil, err
	}
	defer func() { _ = folder.Close() }() // what is left of it is the machine's to clean
	src, err := files.Open(ctx, v.Assets.DB, a.FileID)
	if err != nil {
		return nil, err
	}
	if err := ffmpeg.Keep(folder.Input(), src); err != nil {
		return nil, err
	}
	input := ffmpeg.Input{Name: "input", From: a.Part(), Length: length}
	if err := v.Assets.FFmpeg.Run(ctx, folder, ffmpeg.Measure(input, a.Height > 0, a.AudioCodec != ""), ffmpeg.MeasureBytes, searchTimeout); err != nil {
		return nil, err
	}
	seen, err := ffmpeg.Found(folder, length)
	if err != nil {
		return nil, fmt.Errorf("read signals: %w", err)
	}
	cues, err := v.cues(ctx, a, folder, input)
	if err != nil {
		return nil, err
	}
	return parts(divide(length, seen, cues, seconds(s.LeastMS)), cues, length), nil
}

// parts are the chapters that begin at some times.
func parts(starts []float64, cues []captions.Cue, length float64) (list []part) {
	for i, at := range starts {
		end := max(length, at)
		if i+1 < len(starts) {
			end = starts[i+1]
		}
		list = append(list, part{title(cues, at, end, i+1), int64(at*1000 + 0.5)})
	}
	return list
}

// cues are the captions of a film: of its own text track, else those that Captions knows,
// else none.
func (v Service) cues(ctx context.Context, a assets.Asset, folder ffmpeg.Folder, input ffmpeg.Input) ([]captions.Cue, error) {
	err := v.Assets.FFmpeg.Run(ctx, folder, ffmpeg.Subtitles(input), captions.MaxContent, searchTimeout)
	if err == nil {
		raw, err := os.ReadFile(folder.Output())
		if err != nil {
			return nil, fmt.Errorf("read text track: %w", err)
		}
		return captions.Cues(strings.ToValidUTF8(string(raw), ""), mostCues), nil
	}
	if !errors.Is(err, ffmpeg.ErrFile) && apierror.Code(err) != decision.Storage001 {
		return nil, err
	}
	text, err := v.Captions(ctx, a)
	if err != nil || text == "" {
		return nil, err
	}
	list := captions.Cues(text, mostCues)
	if a.Kind == assets.Clip { // which begins later than what it is of
		late := time.Duration(a.StartMS) * time.Millisecond
		kept := list[:0]
		for _, c := range list {
			if c.End > late {
				kept = append(kept, captions.Cue{Start: max(c.Start-late, 0), End: c.End - late, Text: c.Text})
			}
		}
		list = kept
	}
	return list, nil
}

// end writes what was found in place of what was found before, beside what people have set,
// or the cause why nothing was.
func (v Service) end(ctx context.Context, s search, found []part, cause error) error {
	return postgres.InTx(ctx, v.Assets.DB, func(tx pgx.Tx) error {
		if _, err := assets.Find(ctx, tx, s.Owner, s.AssetID, "FOR UPDATE"); err != nil {
			return gone(err)
		}
		s, err := lookup(ctx, tx, `id = $1 AND status = 'processing'`, s.ID)
		if err != nil {
			return gone(err)
		}
		s.Status, s.UpdatedAt = "ready", v.Assets.Clock()
		if cause != nil {
			s.Status = "failed"
			s.ErrorCode, s.ErrorMessage = assets.Reason(cause)
			return s.save(ctx, tx)
		}
		if _, err := tx.Exec(ctx, `DELETE FROM media_chapters WHERE asset_id = $1 AND found`, s.AssetID); err != nil {
			return fmt.Errorf("drop chapters: %w", err)
		}
		there, err := of(ctx, tx, s.AssetID)
		if err != nil {
			return err
		}
		for _, p := range found {
			if len(there) >= maxChapters || near(there, seconds(p.startMS)) {
				continue
			}
			if err := insert(ctx, tx, ident.New("chap"), s.AssetID, p.title, p.startMS, true, s.UpdatedAt); err != nil {
				return fmt.Errorf("save chapter: %w", err)
			}
			there = append(there, Chapter{Start: seconds(p.startMS)})
		}
		return s.save(ctx, tx)
	})
}

// near reports whether a chapter begins within a second of a time.
func near(list []Chapter, at float64) bool {
	for _, c := range list {
		if at-c.Start < 1 && c.Start-at < 1 {
			return true
		}
	}
	return false
}

// gone drops the error of what was deleted meanwhile.
func gone(err error) error {
	if apierror.Code(err) == decision.NotFound {
		return nil
	}
	return err
}
