package mp4_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"testing"
	"testing/iotest"
	"time"

	"sluice.dev/sluice/runtime/media/mp4"
	"sluice.dev/sluice/runtime/media/mp4/mp4test"
)

var film = mp4test.Spec{Millis: 61_500, Width: 1920, Height: 1080, Video: "avc1", Audio: "mp4a", Padding: 1000}

func parse(raw []byte) (mp4.Info, error) { return mp4.Parse(bytes.NewReader(raw), int64(len(raw))) }

func TestWhatAFileSays(t *testing.T) {
	t.Parallel()
	want := mp4.Info{Format: "mp4", Duration: 61500 * time.Millisecond, Width: 1920, Height: 1080, VideoCodec: "avc1", AudioCodec: "mp4a"}
	late, quick, sound := film, film, mp4test.Spec{Millis: 1000, Audio: "mp4a"}
	late.Late = true
	quick.Brand = "qt  "
	quicktime := want
	quicktime.Format = "mov"
	cases := map[string]struct {
		spec mp4test.Spec
		want mp4.Info
	}{
		"moov first": {film, want},
		"moov last":  {late, want},
		"quicktime":  {quick, quicktime},
		"sound only": {sound, mp4.Info{Format: "mp4", Duration: time.Second, AudioCodec: "mp4a"}},
	}
	for name, c := range cases {
		if got, err := parse(c.spec.File()); err != nil || got != c.want {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

func TestVersionsOfBoxes(t *testing.T) {
	t.Parallel()
	ftyp := mp4test.Box("ftyp", []byte("isom"))
	long := make([]byte, 112)
	long[0] = 1
	binary.BigEndian.PutUint32(long[20:], 90_000)
	binary.BigEndian.PutUint64(long[24:], 90_000*3600)
	unknown := slices.Concat(make([]byte, 12), []byte{0, 0, 3, 232}, []byte{255, 255, 255, 255})
	mehd := mp4test.Box("mvex", mp4test.Box("mehd", []byte{0, 0, 0, 0, 0, 0, 19, 136}))
	absurd := slices.Concat(make([]byte, 12), []byte{0, 0, 0, 1}, []byte{255, 255, 255, 254})
	cases := map[string]struct {
		moov []byte
		want time.Duration
	}{
		"64 bit times":                  {mp4test.Box("moov", mp4test.Box("mvhd", long)), time.Hour},
		"length unknown":                {mp4test.Box("moov", mp4test.Box("mvhd", unknown)), 0},
		"length of fragments":           {mp4test.Box("moov", mp4test.Box("mvhd", unknown), mehd), 5 * time.Second},
		"longer than anyone has filmed": {mp4test.Box("moov", mp4test.Box("mvhd", absurd)), 0},
		"a header cut short":            {mp4test.Box("moov", mp4test.Box("mvhd", []byte{1, 2})), 0},
	}
	for name, c := range cases {
		if got, err := parse(slices.Concat(ftyp, c.moov)); err != nil || got.Duration != c.want {
			t.Errorf("%s: %v, %v", name, got.Duration, err)
		}
	}
	large := slices.Concat([]byte{0, 0, 0, 1}, []byte("free"), []byte{0, 0, 0, 0, 0, 0, 0, 20}, make([]byte, 4))
	if got, err := parse(slices.Concat(ftyp, large, mp4test.Box("moov", mp4test.Box("mvhd", long)))); err != nil || got.Duration != time.Hour {
		t.Errorf("a box with a 64 bit size: %v %v", got, err)
	}
}

func TestFilesThatAreRefused(t *testing.T) {
	t.Parallel()
	whole := film.File()
	cases := map[string]struct {
		raw  []byte
		want error
	}{
		"nothing":             {nil, mp4.ErrNotMP4},
		"a picture":           {[]byte("\x89PNG\r\n\x1a\n0000000000000000"), mp4.ErrNotMP4},
		"text":                {[]byte("<html>not found</html>"), mp4.ErrNotMP4},
		"no moov":             {slices.Concat(mp4test.Box("ftyp", []byte("isom")), mp4test.Box("mdat", nil)), mp4.ErrNoMovie},
		"cut short":           {whole[:len(whole)-10], mp4.ErrDamaged},
		"a box that overlaps": {slices.Concat(mp4test.Box("ftyp", []byte("isom")), mp4test.Box("moov", []byte{0, 0, 0, 99, 't', 'r', 'a', 'k'})), mp4.ErrDamaged},
	}
	for name, c := range cases {
		if _, err := parse(c.raw); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

func TestErrorsOfTheReaderAreNotTheFiles(t *testing.T) {
	t.Parallel()
	broken := errors.New("the disk is gone")
	whole := film.File()
	r := struct {
		io.Reader
		io.Seeker
	}{iotest.ErrReader(broken), bytes.NewReader(whole)}
	if _, err := mp4.Parse(r, int64(len(whole))); !errors.Is(err, broken) {
		t.Errorf("%v, want the reader's", err)
	}
}

// Whatever the bytes, Parse ends, does not panic, and says nothing absurd.
func FuzzParse(f *testing.F) {
	f.Add(film.File())
	f.Add([]byte{0, 0, 0, 0, 'f', 't', 'y', 'p'})
	f.Fuzz(func(t *testing.T, raw []byte) {
		info, err := parse(raw)
		if err == nil && (info.Width < 0 || info.Duration < 0 || info.Format == "") {
			t.Fatalf("%+v", info)
		}
	})
}
