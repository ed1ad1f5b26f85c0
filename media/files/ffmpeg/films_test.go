package ffmpeg_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/media/files/ffmpeg"
	"sluice.dev/sluice/platform/apierror"
)

// shelf is Films with a folder for each conversion, and counts the copies made.
type shelf struct {
	t *testing.T
	*ffmpeg.Films
	copies int
}

func newShelf(t *testing.T, most int64) *shelf {
	t.Helper()
	return &shelf{t: t, Films: &ffmpeg.Films{Dir: t.TempDir(), Most: most}}
}

func (s *shelf) folder() ffmpeg.Folder { return ffmpeg.Folder{Path: s.t.TempDir()} }

// put puts a film of four bytes in place and checks that it is there.
func (s *shelf) put(id string) error {
	to := s.folder()
	err := s.Put(s.t.Context(), id, 4, to, func(w io.Writer) error { s.copies++; _, err := io.WriteString(w, id); return err })
	if got, rerr := os.ReadFile(to.Input()); err == nil && (rerr != nil || string(got) != id) {
		s.t.Errorf("%q, %v", got, rerr)
	}
	return err
}

func TestFilmsAreCopiedOnceAndBounded(t *testing.T) {
	t.Parallel()
	s := newShelf(t, 9)
	for i, id := range []string{"aaaa", "bbbb", "aaaa", "cccc", "aaaa", "bbbb"} {
		if err := s.put(id); err != nil {
			t.Fatal(err)
		}
		if want := []int{1, 2, 2, 3, 3, 4}[i]; s.copies != want {
			t.Errorf("%d copies after %d, want %d: the one used longest ago makes room", s.copies, i, want)
		}
		if kept, _ := filepath.Glob(filepath.Join(s.Dir, "*", "*")); len(kept) > 2 {
			t.Errorf("kept: %v", kept)
		}
	}
	err := s.Put(t.Context(), "large", 10, s.folder(), nil)
	if apierror.Code(err) != decision.Storage001 || s.Fits(10) || !s.Fits(9) {
		t.Error(err)
	}
	s.Drop("bbbb")
	if err := s.put("bbbb"); err != nil || s.copies != 5 {
		t.Errorf("%d copies, %v", s.copies, err)
	}
}

// Whoever comes while a film is copied waits for it, and copies it when that failed.
func TestACopyInTheMakingIsWaitedFor(t *testing.T) {
	t.Parallel()
	s := newShelf(t, 5)
	began, let, first, second := make(chan struct{}), make(chan error), make(chan error), make(chan error)
	go func() {
		first <- s.Put(t.Context(), "aaaa", 4, s.folder(), func(io.Writer) error { close(began); return <-let })
	}()
	<-began
	if err := s.put("bbbb"); apierror.Code(err) != decision.Transcode001 {
		t.Errorf("no room beside one that is being copied: %v", err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Put(gone, "aaaa", 4, s.folder(), nil); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	go func() { second <- s.put("aaaa") }()
	broken := errors.New("the source broke off")
	let <- broken
	if err := <-first; !errors.Is(err, broken) {
		t.Error(err)
	}
	if err := <-second; err != nil || s.copies != 1 {
		t.Errorf("%d copies, %v", s.copies, err)
	}
}
