package transcribe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/media/transcribe/transcript"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/storage/postgres"
)

// The states of a transcript.
const (
	Processing = "processing"
	Ready      = "ready"
	Failed     = "failed"
)

// row is a row of media_transcripts, without the transcript.
type row struct {
	ID           string        `db:"id"`
	AssetID      string        `db:"asset_id"`
	Owner        string        `db:"owner"`
	Account      string        `db:"account"` // empty: nobody hears of it
	Language     string        `db:"language"`
	Status       string        `db:"status"`
	Progress     int           `db:"progress"` // percent
	Cues         int           `db:"cues"`
	Engine       string        `db:"engine"`
	ErrorCode    decision.Code `db:"error_code"`
	ErrorMessage string        `db:"error_message"`
	CreatedAt    time.Time     `db:"created_at"`
	UpdatedAt    time.Time     `db:"updated_at"`
}

const columns = `id, asset_id, owner, account, language, status, progress, cues, engine, error_code, error_message, created_at, updated_at`

// many reads the rows that a condition finds.
func many(ctx context.Context, db postgres.DB, where string, args ...any) ([]row, error) {
	rows, _ := db.Query(ctx, `SELECT `+columns+` FROM media_transcripts WHERE `+where, args...)
	found, err := pgx.CollectRows(rows, pgx.RowToStructByName[row])
	if err != nil {
		return nil, fmt.Errorf("read transcripts: %w", err)
	}
	return found, nil
}

// one reads the row that a condition finds, or not_found.
func one(ctx context.Context, db postgres.DB, where string, args ...any) (row, error) {
	found, err := many(ctx, db, where, args...)
	if err == nil && len(found) == 0 {
		err = &apierror.Error{Code: decision.NotFound}
	}
	if err != nil {
		return row{}, err
	}
	return found[0], nil
}

// Languages are those in which an asset has captions, in the order of their tags.
func Languages(ctx context.Context, db postgres.DB, asset string) (tags []string, err error) {
	found, err := many(ctx, db, `asset_id = $1 AND status = 'ready' ORDER BY language`, asset)
	for _, r := range found {
		tags = append(tags, r.Language)
	}
	return tags, err
}

// errThere says that a transcript of the language is there, or being made.
var errThere = errors.New("there is a transcript in this language")

// insert stores r, in place of one that has failed, and the job that makes it: r is
// processing exactly while its job is there.
func (v Service) insert(ctx context.Context, r row) error {
	return postgres.InTx(ctx, v.DB, func(tx pgx.Tx) error {
		if err := v.full(ctx, tx, r.Owner); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `DELETE FROM media_transcripts WHERE asset_id = $1 AND language = $2 AND status = 'failed'`, r.AssetID, r.Language)
		if err == nil {
			_, err = tx.Exec(ctx, `INSERT INTO media_transcripts (`+columns+`, transcript) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, '')`,
				r.ID, r.AssetID, r.Owner, r.Account, r.Language, r.Status, r.Progress, r.Cues, r.Engine, r.ErrorCode, r.ErrorMessage, r.CreatedAt, r.UpdatedAt)
		}
		switch postgres.Constraint(err) {
		case "media_transcripts_once":
			return errThere
		case "media_transcripts_asset_fkey":
			return &apierror.Error{Code: decision.NotFound}
		}
		if err != nil {
			return fmt.Errorf("insert transcript: %w", err)
		}
		if _, err := v.Jobs.InsertTx(ctx, tx, Args{TranscriptID: r.ID}, nil); err != nil {
			return fmt.Errorf("enqueue transcription: %w", err)
		}
		return nil
	})
}

// full is TRANSCODE_001 for a queue that has no place for one more of an owner. Of an
// owner's requests at once each counts those before it: they wait for each other.
func (v Service) full(ctx context.Context, tx pgx.Tx, owner string) error {
	var all, own int
	_, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock(hashtextextended('media_transcripts ' || $1, 0))`, owner)
	if err == nil {
		err = tx.QueryRow(ctx, `SELECT count(*), count(*) FILTER (WHERE owner = $1) FROM media_transcripts WHERE status = 'processing'`, owner).Scan(&all, &own)
	}
	if err != nil {
		return fmt.Errorf("count transcripts: %w", err)
	}
	if own >= v.OwnerLimit || all >= v.QueueLimit {
		return &apierror.Error{Code: decision.Transcode001, Message: "Too many transcriptions wait.", RetryAfter: 30}
	}
	return nil
}

// text is the transcript of a ready row.
func (v Service) text(ctx context.Context, r row) (t transcript.Transcript, err error) {
	var b []byte
	err = v.DB.QueryRow(ctx, `SELECT transcript FROM media_transcripts WHERE id = $1 AND status = 'ready'`, r.ID).Scan(&b)
	if err := postgres.NotFound(err, "read transcript"); err != nil {
		return t, err
	}
	if err := json.Unmarshal(b, &t); err != nil {
		return t, fmt.Errorf("read transcript: %w", err)
	}
	return t, nil
}

// step notes how far the work is; nobody depends on it.
func (v Service) step(ctx context.Context, id string, share float64) {
	_, _ = v.DB.Exec(ctx, `UPDATE media_transcripts SET progress = $2, updated_at = $3 WHERE id = $1 AND status = 'processing'`, id, min(99, int(100*share)), v.now())
}

// Tend fails transcripts whose job is gone, as it is when workers were killed in each of
// its attempts; they can be asked for again. It returns how many.
func (v Service) Tend(ctx context.Context) (int64, error) {
	tag, err := v.DB.Exec(ctx, `UPDATE media_transcripts t SET status = 'failed', error_code = $1, error_message = $2, updated_at = $3
		WHERE status = 'processing' AND NOT EXISTS (SELECT FROM river_job j WHERE j.kind = $4 AND j.args->>'transcript_id' = t.id
			AND j.state IN ('available', 'pending', 'retryable', 'running', 'scheduled'))`,
		decision.Internal, "The transcription was interrupted too often.", v.now(), Args{}.Kind())
	if err != nil {
		return 0, fmt.Errorf("fail lost transcripts: %w", err)
	}
	return tag.RowsAffected(), nil
}

// now is the clock's time at the precision of the database and of the API.
func (v Service) now() time.Time { return v.Now().UTC().Truncate(time.Millisecond) }
