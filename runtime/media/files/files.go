// Package files keeps the bytes of assets in Postgres, in chunks of one size.
package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/controlplane"
	"sluice.dev/sluice/controlplane/postgres"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/runtime/media/ident"
)

// ChunkSize is the size of every chunk but the last, in bytes. Files that exist
// are read with it: it cannot change.
const ChunkSize = 1 << 20

// Write stores all of src as a new file of owner and returns its id and size. No
// connection is held while src is waited for, so a reader sees the file only
// when it is whole. It fails with STORAGE_001 above limit bytes (0: no limit),
// and leaves nothing behind when it fails.
func Write(ctx context.Context, db postgres.DB, owner string, src io.Reader, limit int64, now time.Time) (id string, size int64, err error) {
	file := ident.New("file")
	_, err = db.Exec(ctx, `INSERT INTO media_files (id, owner, size, complete, created_at) VALUES ($1, $2, 0, false, $3)`, file, owner, now)
	if err != nil {
		return "", 0, fmt.Errorf("create file: %w", postgres.Unreachable(err))
	}
	defer func() {
		if err != nil {
			_, derr := db.Exec(context.WithoutCancel(ctx), `DELETE FROM media_files WHERE id = $1`, file)
			err = errors.Join(err, derr)
		}
	}()
	if size, err = writeChunks(ctx, db, file, src, limit); err != nil {
		return "", 0, err
	}
	if _, err = db.Exec(ctx, `UPDATE media_files SET size = $2, complete = true WHERE id = $1`, file, size); err != nil {
		return "", 0, fmt.Errorf("complete file: %w", postgres.Unreachable(err))
	}
	return file, size, nil
}

// writeChunks stores src chunk by chunk, each in a statement of its own, and
// returns how many bytes there were.
func writeChunks(ctx context.Context, db postgres.DB, id string, src io.Reader, limit int64) (size int64, err error) {
	buf := make([]byte, ChunkSize)
	for n := 0; ; n++ {
		got, rerr := io.ReadFull(src, buf)
		size += int64(got)
		if limit > 0 && size > limit {
			return 0, controlplane.Errorf(decision.Storage001, "The file is larger than %d bytes.", limit)
		}
		if got > 0 {
			if _, err := db.Exec(ctx, `INSERT INTO media_chunks (file_id, n, data) VALUES ($1, $2, $3)`, id, n, buf[:got]); err != nil {
				return 0, fmt.Errorf("write chunk: %w", postgres.Unreachable(err))
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
		return fmt.Errorf("delete file: %w", postgres.Unreachable(err))
	}
	return nil
}

// Used is the number of bytes that owner's whole files take.
func Used(ctx context.Context, db postgres.DB, owner string) (n int64, err error) {
	err = db.QueryRow(ctx, `SELECT coalesce(sum(size), 0) FROM media_files WHERE owner = $1 AND complete`, owner).Scan(&n)
	if err != nil {
		return 0, fmt.Errorf("sum files: %w", postgres.Unreachable(err))
	}
	return n, nil
}

// Sweep deletes files whose writing began before t and never ended, and files
// from before t that no asset or rendition refers to. It returns how many.
func Sweep(ctx context.Context, db postgres.DB, t time.Time) (int64, error) {
	tag, err := db.Exec(ctx, `DELETE FROM media_files f WHERE created_at < $1
		AND (NOT complete OR NOT EXISTS (SELECT FROM media_assets a WHERE a.file_id = f.id)
			AND NOT EXISTS (SELECT FROM media_renditions r WHERE r.file_id = f.id))`, t)
	if err != nil {
		return 0, fmt.Errorf("sweep files: %w", postgres.Unreachable(err))
	}
	return tag.RowsAffected(), nil
}
