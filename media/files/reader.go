package files

import (
	"context"
	"errors"
	"fmt"
	"io"

	"sluice.dev/sluice/platform/storage/postgres"
)

// Reader reads a file from any place in it. It holds one chunk at a time.
type Reader struct {
	ctx   context.Context
	db    postgres.DB
	id    string
	size  int64
	pos   int64
	have  int64 // number of the chunk in chunk; -1: none
	chunk []byte
}

// Open returns a reader of a whole file, or not_found. ctx bounds every read.
func Open(ctx context.Context, db postgres.DB, id string) (*Reader, error) {
	r := &Reader{ctx: ctx, db: db, id: id, have: -1}
	err := db.QueryRow(ctx, `SELECT size FROM media_files WHERE id = $1 AND complete`, id).Scan(&r.size)
	return r, postgres.NotFound(err, "open file")
}

// Size is the length of the file in bytes.
func (r *Reader) Size() int64 { return r.size }

// Read reads from the present position.
func (r *Reader) Read(p []byte) (int, error) {
	if r.pos >= r.size {
		return 0, io.EOF
	}
	if n := r.pos / ChunkSize; n != r.have {
		if err := r.load(n); err != nil {
			return 0, err
		}
	}
	from := r.pos % ChunkSize
	if from >= int64(len(r.chunk)) {
		return 0, io.ErrUnexpectedEOF
	}
	n := copy(p, r.chunk[from:])
	r.pos += int64(n)
	return n, nil
}

// ReadAt reads from off on. It moves no position, but only one goroutine may use a
// Reader at a time.
func (r *Reader) ReadAt(p []byte, off int64) (n int, err error) {
	if off < 0 {
		return 0, errors.New("read before the start of the file")
	}
	defer func(pos int64) { r.pos = pos }(r.pos)
	r.pos = off
	for n < len(p) && err == nil {
		var got int
		got, err = r.Read(p[n:])
		n += got
	}
	return n, err
}

// load fetches one chunk. After an error no chunk counts as loaded.
func (r *Reader) load(n int64) error {
	r.have = -1
	err := r.db.QueryRow(r.ctx, `SELECT data FROM media_chunks WHERE file_id = $1 AND n = $2`, r.id, n).Scan(&r.chunk)
	if err != nil {
		return fmt.Errorf("read chunk %d: %w", n, err)
	}
	r.have = n
	return nil
}

// Seek moves the position, as io.Seeker says.
func (r *Reader) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += r.pos
	case io.SeekEnd:
		offset += r.size
	}
	if offset < 0 {
		return 0, errors.New("seek before the start of the file")
	}
	r.pos = offset
	return offset, nil
}
