package files_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"testing"
	"testing/iotest"
	"time"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/media/files"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/storage/postgres"
	"sluice.dev/sluice/platform/storage/postgres/pgtest"
)

var now = time.Unix(1_800_000_000, 0)

func noise(n int) []byte {
	b := make([]byte, n)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

func TestAFileReadsBackFromAnyPlace(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	for _, size := range []int{0, 1, files.ChunkSize, 2*files.ChunkSize + 7} {
		want := noise(size)
		id, n, err := files.Write(t.Context(), pool, files.Spec{Owner: "acct_1", Size: -1}, bytes.NewReader(want), now)
		if err != nil || n != int64(size) {
			t.Fatal(n, err)
		}
		r, err := files.Open(t.Context(), pool, id)
		if err != nil || r.Size() != int64(size) {
			t.Fatal(err)
		}
		if err := iotest.TestReader(r, want); err != nil {
			t.Errorf("%d bytes: %v", size, err)
		}
		err = postgres.InTx(t.Context(), pool, func(tx pgx.Tx) error { return files.RemoveTx(t.Context(), tx, id) })
		if _, gone := files.Open(t.Context(), pool, id); err != nil || apierror.Code(gone) != decision.NotFound {
			t.Error(err, gone)
		}
	}
	if used, err := files.Used(t.Context(), pool, "acct_1"); used != 0 || err != nil {
		t.Error(used, err)
	}
}

func TestAWriteThatFailsLeavesNothing(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	_, _, err := files.Write(t.Context(), pool, files.Spec{Owner: "acct_1", Size: -1, Limit: 10}, bytes.NewReader(noise(11)), now)
	if apierror.Code(err) != decision.Storage001 {
		t.Errorf("too large: %v", err)
	}
	broken := errors.New("the line went dead")
	_, _, err = files.Write(t.Context(), pool, files.Spec{Owner: "acct_1", Size: -1}, io.MultiReader(bytes.NewReader(noise(files.ChunkSize+1)), iotest.ErrReader(broken)), now)
	if !errors.Is(err, broken) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cut := readerFunc(func(p []byte) (int, error) { cancel(); return len(p), nil })
	if _, _, err := files.Write(ctx, pool, files.Spec{Owner: "acct_1", Size: -1}, cut, now); err == nil {
		t.Error("a cancelled write succeeds")
	}
	var left int
	if err := pool.QueryRow(t.Context(), `SELECT count(*) FROM media_files`).Scan(&left); err != nil || left != 0 {
		t.Errorf("%d files left, %v", left, err)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func TestTheSweepTakesWhatNobodyRefersTo(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	if _, _, err := files.Write(t.Context(), pool, files.Spec{Owner: "acct_1", Size: -1}, bytes.NewReader(noise(5)), now); err != nil {
		t.Fatal(err)
	}
	if n, err := files.Sweep(t.Context(), pool, now); n != 0 || err != nil {
		t.Errorf("%d young files swept, %v", n, err)
	}
	if used, err := files.Used(t.Context(), pool, "acct_1"); used != 5 || err != nil {
		t.Error(used, err)
	}
	if n, err := files.Sweep(t.Context(), pool, now.Add(time.Second)); n != 1 || err != nil {
		t.Errorf("%d old files swept, %v", n, err)
	}
}
