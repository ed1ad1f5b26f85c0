// Package files keeps the bytes of assets in Postgres, in chunks of one size.
package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/media/api/ident"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/storage/postgres"
)

// ChunkSize is the size of every chunk but the last, in bytes. Files that exist
// are read with it: it cannot change.
const ChunkSize = 1 << 20

// Write stores all of src as a new file and returns its id and size. Its room is
// set aside before the first byte is read. No connection is held while src is
// waited for, so a reader sees the file only when it is whole. It fails with
// STORAGE_001 above s.Limit, with BILLING_002 where the owner's storage has no room,
// with rate_limit_exceeded when the owner writes too many files, and leaves nothing
// behind when it fails. Its memory is one chunk.
func Write(ctx context.Context, db postgres.DB, s Spec, src io.Reader, now time.Time) (id string, size int64, err error) {
	file := ident.New("file")
	most, err := reserve(ctx, db, file, s, now)
	if err != nil {
		return "", 0, err
	}
	defer func() {
		if err != nil {
			_, derr := db.Exec(context.WithoutCancel(ctx), `DELETE FROM media_files WHERE id = $1`, file)
			err = errors.Join(err, derr)
		}
	}()
	writing, lost := context.WithCancelCause(ctx)
	var alive sync.WaitGroup
	alive.Go(func() { keepAlive(writing, db, file, func() { lost(errLost) }) })
	defer alive.Wait()
	defer lost(nil)
	if size, err = writeChunks(writing, db, file, src, most); err == nil {
		err = complete(writing, db, file, size)
	}
	if cause := context.Cause(writing); err != nil && errors.Is(cause, errLost) {
		err = cause
	}
	if err != nil {
		return "", 0, s.over(most, err)
	}
	return file, size, nil
}

// errFull says that a source has more bytes than were set aside for it.
var errFull = errors.New("more bytes than were set aside")

// over says which bound a source passed that may have most bytes; other errors stay
// as they are.
func (s Spec) over(most int64, err error) error {
	switch {
	case !errors.Is(err, errFull):
		return err
	case s.Size >= 0 || most == s.Limit:
		return tooLarge(most)
	}
	return apierror.Errorf(decision.QuotaUsed, "The plan's storage of %d bytes has no room for the file.", s.Quota)
}

// writeChunks stores src chunk by chunk, each in a statement of its own, and
// returns how many bytes there were. It fails with errFull above most (negative: no
// bound).
func writeChunks(ctx context.Context, db postgres.DB, id string, src io.Reader, most int64) (size int64, err error) {
	buf := make([]byte, ChunkSize)
	for n := 0; ; n++ {
		got, rerr := io.ReadFull(src, buf)
		size += int64(got)
		if most >= 0 && size > most {
			return 0, errFull
		}
		if got > 0 {
			if _, err := db.Exec(ctx, `INSERT INTO media_chunks (file_id, n, data) VALUES ($1, $2, $3)`, id, n, buf[:got]); err != nil {
				return 0, fmt.Errorf("write chunk: %w", err)
			}
		}
		if errors.Is(rerr, io.EOF) || errors.Is(rerr, io.ErrUnexpectedEOF) {
			return size, nil
		}
		if rerr != nil {
			return 0, fmt.Errorf("read source: %w", rerr)
		}
	}
}

// RemoveTx deletes a file; one that is not there is no error.
func RemoveTx(ctx context.Context, tx pgx.Tx, id string) error {
	if _, err := tx.Exec(ctx, `DELETE FROM media_files WHERE id = $1`, id); err != nil {
		return fmt.Errorf("delete file: %w", err)
	}
	return nil
}

// Used is the number of bytes that owner's whole files take, and the images of its renders.
func Used(ctx context.Context, db postgres.DB, owner string) (n int64, err error) {
	err = db.QueryRow(ctx, `SELECT (SELECT coalesce(sum(size), 0) FROM media_files WHERE owner = $1 AND complete) + `+images, owner).Scan(&n)
	if err != nil {
		return 0, fmt.Errorf("sum files: %w", err)
	}
	return n, nil
}

// Sweep deletes files whose writer died, files whose writing began before t and
// never ended, and files from before t that no asset or rendition refers to. It
// returns how many.
func Sweep(ctx context.Context, db postgres.DB, t time.Time) (int64, error) {
	tag, err := db.Exec(ctx, `DELETE FROM media_files f WHERE created_at < $1
			AND (NOT complete OR NOT EXISTS (SELECT FROM media_assets a WHERE a.file_id = f.id)
				AND NOT EXISTS (SELECT FROM media_renditions r WHERE r.file_id = f.id))
		OR NOT complete AND id IN (SELECT file_id FROM media_reservations WHERE alive_at < clock_timestamp() - $2::interval)`, t, lease+grace)
	if err != nil {
		return 0, fmt.Errorf("sweep files: %w", err)
	}
	return tag.RowsAffected(), nil
}
