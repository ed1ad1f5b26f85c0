package mp4_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
	"testing"
	"time"

	"sluice.dev/sluice/media/files/mp4"
	"sluice.dev/sluice/media/files/mp4/mp4test"
	"sluice.dev/sluice/platform/limits/growth"
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
	r := readerAt(func([]byte, int64) (int, error) { return 0, broken })
	if _, err := mp4.Parse(r, int64(len(whole))); !errors.Is(err, broken) {
		t.Errorf("%v, want the reader's", err)
	}
}

type readerAt func([]byte, int64) (int, error)

func (f readerAt) ReadAt(p []byte, off int64) (int, error) { return f(p, off) }

// counted reads raw and counts what is read of it.
type counted struct {
	*bytes.Reader
	calls int
	bytes int64
}

func (c *counted) ReadAt(p []byte, off int64) (int, error) {
	n, err := c.Reader.ReadAt(p, off)
	c.calls++
	c.bytes += int64(n)
	return n, err
}

// hostile are files of n bytes whose boxes cost a careless parser most.
var hostile = map[string]func(n int) []byte{
	"empty tracks": func(n int) []byte { return moov(bytes.Repeat(mp4test.Box("trak"), n/8)) },
	"empty boxes":  func(n int) []byte { return moov(bytes.Repeat(mp4test.Box("free"), n/8)) },
	"empty boxes on the top": func(n int) []byte {
		return slices.Concat(mp4test.Box("ftyp", []byte("isom")), bytes.Repeat(mp4test.Box("free"), n/8), moov(nil)[12:])
	},
	"large boxes of a track": func(n int) []byte {
		return moov(mp4test.Box("trak", mp4test.Box("stsd", make([]byte, n/3)), mp4test.Box("hdlr", make([]byte, n/3)), mp4test.Box("tkhd", make([]byte, n/3))))
	},
	"a large header": func(n int) []byte { return moov(mp4test.Box("mvhd", make([]byte, n))) },
	"depth":          func(n int) []byte { return moov(nested(n)) },
	"sizes of 64 bits": func(n int) []byte {
		return moov(bytes.Repeat([]byte{0, 0, 0, 1, 'f', 'r', 'e', 'e', 0, 0, 0, 0, 0, 0, 0, 16}, n/16))
	},
	"many tracks": func(n int) []byte {
		return moov(bytes.Repeat(mp4test.Box("trak", mp4test.Box("tkhd", make([]byte, 84))), n/100))
	},
}

func moov(contents ...[]byte) []byte {
	return slices.Concat(mp4test.Box("ftyp", []byte("isom")), mp4test.Box("moov", contents...))
}

// nested is boxes in boxes, as deep as n bytes allow.
func nested(n int) []byte {
	out := make([]byte, 0, n)
	for left := n - n%8; left >= 8; left -= 8 {
		out = append(binary.BigEndian.AppendUint32(out, uint32(left)), "mdia"...)
	}
	return out
}

// However large a file is and whatever its boxes say, few bytes of it are read and
// next to no memory is taken.
func TestWhatAHostileFileCosts(t *testing.T) {
	const size = 32 << 20 // no t.Parallel: it counts what is allocated
	for name, make := range hostile {
		raw := make(size)
		c := &counted{Reader: bytes.NewReader(raw)}
		var err error
		growth.Linear(t, len(raw), 0, 1<<20, func() {
			c.calls, c.bytes = 0, 0
			_, err = mp4.Parse(c, int64(len(raw)))
		})
		if c.calls > 2*120_000 || c.bytes > 512*int64(c.calls) {
			t.Errorf("%s: %d reads of %d bytes", name, c.calls, c.bytes)
		}
		t.Logf("%s: %d reads, %d bytes, %v", name, c.calls, c.bytes, err)
	}
}

// Whatever the bytes, Parse ends, does not panic, and says nothing absurd.
func FuzzParse(f *testing.F) {
	f.Add(film.File())
	f.Add([]byte{0, 0, 0, 0, 'f', 't', 'y', 'p'})
	f.Fuzz(func(t *testing.T, raw []byte) {
		c := &counted{Reader: bytes.NewReader(raw)}
		info, err := mp4.Parse(c, int64(len(raw)))
		if c.calls > 2+len(raw)/4 {
			t.Fatalf("%d reads of %d bytes", c.calls, len(raw))
		}
		if err == nil && (info.Width < 0 || info.Duration < 0 || info.Format == "") {
			t.Fatalf("%+v", info)
		}
	})
}
