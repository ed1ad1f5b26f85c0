package files_test

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"time"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/media/files"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/storage/postgres/pgtest"
)

// held is a source whose bytes come when they are let go.
type held struct {
	io.Reader
	asked, let chan struct{}
}

func newHeld(n int) *held {
	return &held{bytes.NewReader(noise(n)), make(chan struct{}, 1), make(chan struct{})}
}

func (h *held) Read(p []byte) (int, error) {
	select {
	case h.asked <- struct{}{}:
	default:
	}
	<-h.let
	return h.Reader.Read(p)
}

// Twenty at once of 100 bytes each, where 450 may be stored: four get room before
// the first byte is read, the others are told at once.
func TestWritersAtOnceDoNotPassTheQuota(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	for name, size := range map[string]int64{"told": 100, "not told": -1} {
		spec := files.Spec{Owner: "acct_" + name, Size: size, Limit: 100, Quota: 450}
		let, ended := make(chan struct{}), make(chan error)
		for range 20 {
			go func() {
				h := newHeld(100)
				h.let = let
				_, _, err := files.Write(t.Context(), pool, spec, h, now)
				ended <- err
			}()
		}
		living := 4
		if size < 0 {
			living = 5 // the fifth may have the 50 bytes that are left, and more it has not
		}
		for range 20 - living {
			if err := <-ended; apierror.Code(err) != decision.QuotaUsed {
				t.Errorf("%s: %v", name, err)
			}
		}
		if taken, err := files.Taken(t.Context(), pool, spec.Owner); err != nil || taken > 450 {
			t.Errorf("%s: %d bytes are taken, %v", name, taken, err)
		}
		close(let)
		stored := 0
		for range living {
			if err := <-ended; err == nil {
				stored++
			}
		}
		if used, err := files.Used(t.Context(), pool, spec.Owner); stored != 4 || used != 400 || err != nil {
			t.Errorf("%s: %d files of %d bytes, %v", name, stored, used, err)
		}
		if taken, err := files.Taken(t.Context(), pool, spec.Owner); taken != 400 || err != nil {
			t.Errorf("%s: %d bytes stay set aside, %v", name, taken-400, err)
		}
	}
}

func TestOpenFilesOfAnOwnerAreBounded(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	spec := files.Spec{Owner: "acct_1", Size: 5, Open: 1}
	h, ended := newHeld(5), make(chan error)
	go func() {
		_, _, err := files.Write(t.Context(), pool, spec, h, now)
		ended <- err
	}()
	<-h.asked
	_, _, err := files.Write(t.Context(), pool, spec, bytes.NewReader(noise(5)), now)
	if e, ok := errors.AsType[*apierror.Error](err); !ok || e.Code != decision.RateLimited || e.RetryAfter == 0 {
		t.Errorf("a second: %v", err)
	}
	other := spec
	other.Owner = "acct_2"
	if _, _, err := files.Write(t.Context(), pool, other, bytes.NewReader(noise(5)), now); err != nil {
		t.Errorf("another owner's: %v", err)
	}
	close(h.let)
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if _, _, err := files.Write(t.Context(), pool, spec, bytes.NewReader(noise(5)), now); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// A writer that has died gives its room back without anybody's doing, and cannot
// take it again; the sweep removes its bytes.
func TestARoomWhoseWriterDiedIsFree(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	spec := files.Spec{Owner: "acct_1", Size: 80, Quota: 100}
	h, ended := newHeld(80), make(chan error)
	go func() {
		_, _, err := files.Write(t.Context(), pool, spec, h, now)
		ended <- err
	}()
	<-h.asked
	silent := func(d time.Duration) {
		t.Helper()
		if _, err := pool.Exec(t.Context(), `UPDATE media_reservations SET alive_at = clock_timestamp() - $1::interval`, d); err != nil {
			t.Fatal(err)
		}
	}
	silent(70 * time.Second) // lost, and counted still: its last word may be under way
	if _, _, err := files.Write(t.Context(), pool, spec, bytes.NewReader(noise(80)), now); apierror.Code(err) != decision.QuotaUsed {
		t.Errorf("too soon: %v", err)
	}
	silent(80 * time.Second)
	if _, _, err := files.Write(t.Context(), pool, spec, bytes.NewReader(noise(80)), now); err != nil {
		t.Errorf("a writer who comes after: %v", err)
	}
	if n, err := files.Sweep(t.Context(), pool, now); n != 1 || err != nil {
		t.Errorf("%d swept, %v", n, err)
	}
	close(h.let)
	if err := <-ended; err == nil {
		t.Error("the one who was thought dead stores its file all the same")
	}
	if used, err := files.Used(t.Context(), pool, "acct_1"); used != 80 || err != nil {
		t.Error(used, err)
	}
}
