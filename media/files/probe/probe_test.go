package probe

import (
	"bytes"
	"context"
	"errors"
	"os"
	"testing"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/media/files/mp4"
	"sluice.dev/sluice/media/files/mp4/mp4test"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/process/sandbox"
)

// Sizes of films that take over what reads them: the test's process does their part.
const (
	crash  = 1 << 40
	greedy = crash + 1
	liar   = crash + 2
)

var kept [][]byte

func TestMain(m *testing.M) {
	sandbox.Main(map[string]func() int{Function: func() int {
		f := film{os.Stdin, os.Stdout}
		switch size := sizeOf(f); size {
		case crash:
			panic("taken over")
		case greedy:
			for {
				kept = append(kept, bytes.Repeat([]byte("x"), 1<<20))
			}
		case liar:
			_, _ = f.out.Write(bytes.Repeat([]byte{0xff}, 1<<20))
			return 0
		default:
			return whole(f, size)
		}
	}})
	os.Exit(m.Run())
}

var spec = mp4test.Spec{Millis: 1000, Width: 64, Height: 48, Video: "avc1", Padding: 100_000, Late: true}

func TestALookTellsWhatAFilmSays(t *testing.T) {
	t.Parallel()
	p, raw := New(), spec.File()
	got, err := p.Look(t.Context(), "acct_1", bytes.NewReader(raw), int64(len(raw)))
	if want, _ := mp4.Parse(bytes.NewReader(raw), int64(len(raw))); err != nil || got != want || got.Width != 64 {
		t.Errorf("%+v, %v", got, err)
	}
	for text, want := range map[string]error{"GIF89a": mp4.ErrNotMP4, string(mp4test.Box("ftyp", []byte("isom"))): mp4.ErrNoMovie, string(raw[:len(raw)-1]): mp4.ErrDamaged} {
		if _, err := p.Look(t.Context(), "acct_1", bytes.NewReader([]byte(text)), int64(len(text))); !errors.Is(err, want) {
			t.Errorf("%v, want %v", err, want)
		}
	}
}

// Whatever becomes of the process that reads a film, it is the film that is damaged.
func TestAFilmHarmsOnlyWhatReadsIt(t *testing.T) {
	t.Parallel()
	for _, size := range []int64{crash, greedy, liar} {
		if _, err := New().Look(t.Context(), "acct_1", bytes.NewReader(nil), size); !errors.Is(err, mp4.ErrDamaged) {
			t.Errorf("%d: %v", size-crash, err)
		}
	}
}

type readerAt func([]byte, int64) (int, error)

func (f readerAt) ReadAt(p []byte, at int64) (int, error) { return f(p, at) }

func TestWhatIsNotTheFilmsFault(t *testing.T) {
	t.Parallel()
	gone := errors.New("the disk is gone")
	_, err := New().Look(t.Context(), "acct_1", readerAt(func([]byte, int64) (int, error) { return 0, gone }), 100)
	if !errors.Is(err, gone) || errors.Is(err, mp4.ErrDamaged) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	_, err = New().Look(ctx, "acct_1", readerAt(func(p []byte, _ int64) (int, error) { cancel(); return len(p), nil }), 100)
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, err := (Prober{}).Look(t.Context(), "acct_1", nil, 1); apierror.Code(err) != decision.NotImplemented {
		t.Error(err)
	}
}
