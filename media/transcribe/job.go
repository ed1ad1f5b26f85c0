package transcribe

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/media/api/ident"
	"sluice.dev/sluice/media/assets"
	"sluice.dev/sluice/media/files"
	"sluice.dev/sluice/media/files/ffmpeg"
	"sluice.dev/sluice/media/transcribe/transcript"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/events"
	"sluice.dev/sluice/platform/storage/postgres"
)

// Queue is the River queue of transcriptions, and Places how many run at once in a
// process. An owner has a quarter of it at most, and one in any case.
const (
	Queue  = "media_transcribe"
	Places = 2
)

// Bounds of a job.
const (
	jobTimeout = 3 * time.Hour
	aside      = 3 * time.Second // for how long a job waits whose owner has its share
	maxText    = 16 << 20        // bytes of a transcript
)

// Args is the job that transcribes an asset.
type Args struct {
	TranscriptID string `json:"transcript_id"`
}

// Kind names the job.
func (Args) Kind() string { return "media_transcribe" }

// InsertOpts sets the job's queue and how often it is tried.
func (Args) InsertOpts() river.InsertOpts { return river.InsertOpts{Queue: Queue, MaxAttempts: 3} }

// Worker does Args.
type Worker struct {
	river.WorkerDefaults[Args]
	Service Service
}

// Timeout bounds one attempt.
func (w *Worker) Timeout(*river.Job[Args]) time.Duration { return jobTimeout }

// Work makes the transcript ready, or failed where another attempt would not help. One
// that is no longer processing, or gone, is left alone: the job can run twice. One whose
// owner has its share of the workers is put aside.
func (w *Worker) Work(ctx context.Context, job *river.Job[Args]) error {
	v := w.Service
	r, err := one(ctx, v.DB, `id = $1`, job.Args.TranscriptID)
	if apierror.Code(err) == decision.NotFound || err == nil && r.Status != Processing {
		return nil
	}
	if err != nil {
		return err
	}
	leave, ok := v.Working.TryEnter(r.Owner)
	if !ok {
		return river.JobSnooze(aside)
	}
	defer leave()
	t, err := v.ofAsset(ctx, r)
	if err != nil && !lasting(err) && job.Attempt < job.MaxAttempts {
		return err
	}
	return v.end(ctx, r, t, err)
}

// ofAsset transcribes the file of r's asset.
func (v Service) ofAsset(ctx context.Context, r row) (t transcript.Transcript, err error) {
	if err := v.Available(ctx); err != nil {
		return t, err
	}
	a, err := v.Assets.Any(ctx, r.Owner, r.AssetID)
	if err != nil {
		return t, err
	}
	folder, drop, err := v.newFolder()
	if err != nil {
		return t, err
	}
	defer drop()
	src, err := files.Open(ctx, v.DB, a.FileID)
	if err != nil {
		return t, err
	}
	if err := ffmpeg.Keep(folder.Input(), src); err != nil {
		return t, err
	}
	return v.transcribe(ctx, r.Owner, folder, r.Language, maxJob, func(share float64) { v.step(ctx, r.ID, share) })
}

// Address is where players get the captions of an asset, for six hours.
func (v Service) Address(ctx context.Context, asset, language string) (string, error) {
	return v.Assets.Beside(ctx, asset, file(language))
}

// Adopt stores t as the captions of an owner's ready asset, in the caller's transaction,
// and says captions.generated with their Address. Where there are captions in the language
// already, those stay.
func (v Service) Adopt(ctx context.Context, tx pgx.Tx, owner, id, language, address string, t transcript.Transcript) error {
	text, err := json.Marshal(t)
	if err != nil || len(text) > maxText {
		return err
	}
	a, err := assets.Find(ctx, tx, owner, id, "")
	if err != nil {
		return ignoreGone(err)
	}
	at := v.now()
	r := row{ID: ident.New("trns"), AssetID: a.ID, Owner: a.Owner, Account: a.Account, Language: language, Status: Ready, Progress: 100, Cues: len(t.Cues()), Engine: t.Engine, CreatedAt: at, UpdatedAt: at}
	tag, err := tx.Exec(ctx, `INSERT INTO media_transcripts (`+columns+`, transcript) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14) ON CONFLICT (asset_id, language) DO NOTHING`,
		r.ID, r.AssetID, r.Owner, r.Account, r.Language, r.Status, r.Progress, r.Cues, r.Engine, r.ErrorCode, r.ErrorMessage, r.CreatedAt, r.UpdatedAt, text)
	if err != nil {
		return fmt.Errorf("store captions of a broadcast: %w", err)
	}
	if tag.RowsAffected() == 0 {
		return nil
	}
	return v.announce(ctx, tx, r, a.StreamID, address)
}

// announce says captions.generated.
func (v Service) announce(ctx context.Context, tx pgx.Tx, r row, stream, url string) error {
	if r.Account == "" {
		return nil
	}
	return v.Events.EmitTx(ctx, tx, events.Event{Account: r.Account, Type: "captions.generated", StreamID: stream, Time: v.Now(),
		Data: map[string]any{"language": r.Language, "format": "vtt", "url": url, "vod_id": r.AssetID}})
}

// end makes r ready with t, or failed for cause, and says captions.generated in the
// same transaction, once.
func (v Service) end(ctx context.Context, r row, t transcript.Transcript, cause error) error {
	text, err := json.Marshal(t)
	if err != nil {
		return fmt.Errorf("encode transcript: %w", err)
	}
	if cause == nil && len(text) > maxText {
		cause = apierror.Errorf(decision.Storage001, "The transcript is larger than %d bytes.", maxText)
	}
	a, err := v.Assets.Any(ctx, r.Owner, r.AssetID)
	if err != nil {
		return ignoreGone(err)
	}
	url, err := v.Address(ctx, r.AssetID, r.Language)
	if err != nil {
		return err
	}
	return postgres.InTx(ctx, v.DB, func(tx pgx.Tx) error {
		r, err := one(ctx, tx, `id = $1 FOR UPDATE`, r.ID)
		if err != nil || r.Status != Processing {
			return ignoreGone(err)
		}
		if cause != nil {
			code, message := reason(cause)
			_, err = tx.Exec(ctx, `UPDATE media_transcripts SET status = 'failed', error_code = $2, error_message = $3, updated_at = $4 WHERE id = $1`, r.ID, code, message, v.now())
		} else {
			_, err = tx.Exec(ctx, `UPDATE media_transcripts SET status = 'ready', progress = 100, transcript = $2, cues = $3, engine = $4, updated_at = $5 WHERE id = $1`,
				r.ID, text, len(t.Cues()), t.Engine, v.now())
		}
		if err != nil {
			return fmt.Errorf("end transcript: %w", err)
		}
		if cause != nil {
			return nil
		}
		return v.announce(ctx, tx, r, a.StreamID, url)
	})
}

// ignoreGone is nil for a row that was deleted meanwhile.
func ignoreGone(err error) error {
	if apierror.Code(err) == decision.NotFound {
		return nil
	}
	return err
}

// reason is what callers are told of a failure.
func reason(err error) (decision.Code, string) {
	e := apierror.From(err)
	if e.Code == decision.Internal || e.Message == "" {
		return e.Code, "The transcription has failed."
	}
	return e.Code, e.Message
}
