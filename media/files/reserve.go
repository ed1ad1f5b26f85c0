package files

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/storage/postgres"
)

// Spec says what is to be written, and which bounds hold for it.
type Spec struct {
	Owner string
	Size  int64 // of the source, in bytes; negative: not known
	Limit int64 // of one file; 0: none
	Quota int64 // of all that the owner stores; 0: none
	Open  int   // how many files the owner may be writing; 0: any number
}

// A reservation is alive while its writer has said so within lease. Others count it
// a little longer: a writer whose word is under way must not lose its reservation.
const (
	beat  = 15 * time.Second
	lease = 60 * time.Second
	grace = 15 * time.Second
)

// openRetry is what Retry-After says to an owner who writes too many files, in
// seconds.
const openRetry = 5

// reserve creates a file and reserves storage for it, in one transaction that no
// other of the owner passes: whole files and living reservations together never
// exceed the quota. It returns how many bytes may be written; negative: any number.
func reserve(ctx context.Context, db postgres.DB, id string, s Spec, now time.Time) (most int64, err error) {
	if s.Limit > 0 && s.Size > s.Limit {
		return 0, tooLarge(s.Limit)
	}
	err = postgres.InTx(ctx, db, func(tx pgx.Tx) error {
		u, err := locked(ctx, tx, s.Owner)
		if err != nil {
			return err
		}
		if s.Open > 0 && u.open >= s.Open {
			return &apierror.Error{Code: decision.RateLimited, RetryAfter: openRetry,
				Message: fmt.Sprintf("%d files are being stored already, which is the most at a time. Wait for one of them.", u.open)}
		}
		if most, err = s.allowance(u); err != nil {
			return err
		}
		return create(ctx, tx, id, s.Owner, max(most, 0), now)
	})
	return most, err
}

// locked reads what an owner has of the storage, which nobody else adds to before tx ends.
func locked(ctx context.Context, tx pgx.Tx, owner string) (use, error) {
	if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock(hashtextextended('media_files ' || $1, 0))`, owner); err != nil {
		return use{}, fmt.Errorf("lock owner's files: %w", err)
	}
	return usage(ctx, tx, owner)
}

// HoldTx fails with BILLING_002 when so many bytes that tx stores for an owner, outside of
// files, do not fit into quota; 0: there is none.
func HoldTx(ctx context.Context, tx pgx.Tx, owner string, bytes, quota int64) error {
	u, err := locked(ctx, tx, owner)
	if err == nil {
		_, err = Spec{Size: bytes, Quota: quota}.allowance(u)
	}
	return err
}

// images are the bytes of an owner's overlay images, which are kept with renders.
const images = `(SELECT coalesce(sum(image_bytes), 0) FROM media_renders WHERE owner = $1 AND image_bytes > 0)`

// allowance is how many bytes s may take beside what the owner has; negative: any
// number. It is BILLING_002 when that is too little.
func (s Spec) allowance(u use) (int64, error) {
	want := s.Size
	if want < 0 && s.Limit > 0 {
		want = s.Limit
	}
	if s.Quota == 0 {
		return want, nil
	}
	left := s.Quota - u.stored - u.reserved
	if left <= 0 || s.Size > left {
		return 0, apierror.Errorf(decision.QuotaUsed, "The plan's storage of %d bytes is used up, or set aside for what is being stored.", s.Quota)
	}
	if want < 0 || want > left { // of a source that does not tell its size
		return left, nil
	}
	return want, nil
}

// create inserts a file that is yet to be written, and its reservation.
func create(ctx context.Context, tx pgx.Tx, id, owner string, bytes int64, now time.Time) error {
	_, err := tx.Exec(ctx, `INSERT INTO media_files (id, owner, size, complete, created_at) VALUES ($1, $2, 0, false, $3)`, id, owner, now)
	if err == nil {
		_, err = tx.Exec(ctx, `INSERT INTO media_reservations (file_id, owner, bytes, alive_at) VALUES ($1, $2, $3, clock_timestamp())`, id, owner, bytes)
	}
	if err != nil {
		return fmt.Errorf("create file: %w", err)
	}
	return nil
}

// use is what an owner has of the storage.
type use struct {
	stored, reserved int64
	open             int // files that are being written
}

// usage reads it in one statement: a file that is completed at this moment is
// either reserved or stored.
func usage(ctx context.Context, db postgres.DB, owner string) (u use, err error) {
	err = db.QueryRow(ctx, `SELECT (SELECT coalesce(sum(size), 0) FROM media_files WHERE owner = $1 AND complete) + `+images+`, coalesce(sum(bytes), 0), count(*)
		FROM media_reservations WHERE owner = $1 AND alive_at > clock_timestamp() - $2::interval`, owner, lease+grace).Scan(&u.stored, &u.reserved, &u.open)
	if err != nil {
		return u, fmt.Errorf("sum files: %w", err)
	}
	return u, nil
}

// Taken is what owner's files and images take, and what is set aside for those that are being
// written, in bytes.
func Taken(ctx context.Context, db postgres.DB, owner string) (int64, error) {
	u, err := usage(ctx, db, owner)
	return u.stored + u.reserved, err
}

// keepAlive says every few seconds that the writer of a file lives, until ctx ends.
// When nobody heard it in time its reservation may be another's: it then calls lost.
func keepAlive(ctx context.Context, db postgres.DB, id string, lost func()) {
	ticker := time.NewTicker(beat)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		tag, err := db.Exec(ctx, `UPDATE media_reservations SET alive_at = clock_timestamp()
			WHERE file_id = $1 AND alive_at > clock_timestamp() - $2::interval`, id, lease)
		if err == nil && tag.RowsAffected() == 0 {
			lost()
			return
		}
	}
}

// complete makes a file whole: its bytes take the place of its reservation. A file
// that has lost it stays as it is.
func complete(ctx context.Context, db postgres.DB, id string, size int64) error {
	tag, err := db.Exec(ctx, `WITH mine AS (
			DELETE FROM media_reservations WHERE file_id = $1 AND alive_at > clock_timestamp() - $3::interval RETURNING file_id
		) UPDATE media_files SET size = $2, complete = true FROM mine WHERE id = mine.file_id`, id, size, lease)
	if err != nil {
		return fmt.Errorf("complete file: %w", err)
	}
	if tag.RowsAffected() == 0 {
		return errLost
	}
	return nil
}

// errLost says that a writer was silent for so long that its reservation is gone.
var errLost error = &apierror.Error{Code: decision.Unavailable, RetryAfter: openRetry, Message: "Storing the file took a pause that was too long."}

// tooLarge is STORAGE_001.
func tooLarge(limit int64) error {
	return apierror.Errorf(decision.Storage001, "The file is larger than %d bytes.", limit)
}
