// Package mp4 reads what a player must know of an MP4 or QuickTime file (ISO/IEC
// 14496-12): how long it is, how large its picture is, and its codecs. It goes
// from box to box and reads only the few fields that say so.
package mp4

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"
)

// Bounds of one file.
const (
	maxBoxes  = 100_000 // looked at on the top level; a fragmented recording has two for every fragment
	maxInside = 20_000  // looked at inside moov
	maxTracks = 256
	maxDepth  = 8   // of boxes inside moov
	window    = 512 // bytes that are read at a time: a header, and what stands next to it
)

// Errors of Parse.
var (
	ErrNotMP4  = errors.New("not an MP4 or QuickTime file")
	ErrNoMovie = errors.New("no moov box: the file is not complete")
	ErrDamaged = errors.New("the boxes of the file are damaged")
)

// Info is what Parse finds. Fields that the file does not tell are zero.
type Info struct {
	Format        string        // mp4 or mov
	Duration      time.Duration // zero for fragmented files that do not say
	Width, Height int           // of the largest video track, in pixels
	VideoCodec    string        // sample entry of that track, such as avc1
	AudioCodec    string        // of the first audio track, such as mp4a
}

// Parse reads the boxes of r, which is size bytes long, to the end: a file that
// was cut short is damaged. Errors of r itself are returned as they are.
//
// It passes over the file once, forwards. Each box costs a constant number of
// steps and at most two reads of 512 bytes, whatever size it declares, and at most
// 120,000 boxes are looked at, of at most 256 tracks. Memory is constant: less than
// 4 KiB.
func Parse(r io.ReaderAt, size int64) (Info, error) {
	f := &file{r: r, size: size}
	var info Info
	var found bool
	for pos, n := int64(0), 0; pos < size && n < maxBoxes; n++ {
		b, err := f.header(pos, size)
		if n == 0 && (errors.Is(err, ErrDamaged) || err == nil && b.kind != "ftyp") {
			return Info{}, ErrNotMP4
		}
		if err != nil {
			return Info{}, err
		}
		switch {
		case b.kind == "ftyp":
			info.Format = f.format(b)
		case b.kind == "moov" && !found:
			found = true
			m := movie{file: f}
			if err := m.walk(b.at, b.end, 0); err != nil {
				return Info{}, err
			}
			m.fill(&info)
		}
		pos = b.end
	}
	switch {
	case info.Format == "":
		return Info{}, ErrNotMP4
	case !found:
		return Info{}, ErrNoMovie
	}
	return info, nil
}

// file reads a file through a small window.
type file struct {
	r    io.ReaderAt
	size int64
	buf  [window]byte
	from int64 // place in the file of what buf has
	have int
}

// read returns n bytes at pos, at most a window; they hold until the next call.
func (f *file) read(pos int64, n int) ([]byte, error) {
	if pos < 0 || pos+int64(n) > f.size {
		return nil, ErrDamaged
	}
	if pos < f.from || pos+int64(n) > f.from+int64(f.have) {
		f.from, f.have = pos, 0
		got, err := f.r.ReadAt(f.buf[:min(window, f.size-pos)], pos)
		if got < n {
			if err == nil || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
				return nil, ErrDamaged
			}
			return nil, err
		}
		f.have = got
	}
	at := int(pos - f.from)
	return f.buf[at : at+n], nil
}

// box is one box of a file: its content is from at to end.
type box struct {
	kind    string
	at, end int64
}

// header reads the header of the box at pos, whose surroundings end at end.
func (f *file) header(pos, end int64) (box, error) {
	if end-pos < 8 {
		return box{}, ErrDamaged
	}
	h, err := f.read(pos, 8)
	if err != nil {
		return box{}, err
	}
	n, length, kind := int64(8), int64(binary.BigEndian.Uint32(h)), string(h[4:8])
	switch length {
	case 0: // to the end
		length = end - pos
	case 1: // a 64 bit size follows
		if h, err = f.read(pos+8, 8); err != nil {
			return box{}, err
		}
		n, length = 16, int64(binary.BigEndian.Uint64(h))
	}
	if length < n || length > end-pos {
		return box{}, ErrDamaged
	}
	return box{kind: kind, at: pos + n, end: pos + length}, nil
}

// body reads the first bytes of b's content, at most most of them.
func (f *file) body(b box, most int64) ([]byte, error) {
	return f.read(b.at, int(min(most, b.end-b.at)))
}

// format tells QuickTime from MP4 by the brand.
func (f *file) format(b box) string {
	if brand, err := f.body(b, 4); err == nil && string(brand) == "qt  " {
		return "mov"
	}
	return "mp4"
}

// tooMany is ErrDamaged for a file that passes a bound.
func tooMany(n int, what string) error {
	return fmt.Errorf("%w: more than %d %s", ErrDamaged, n, what)
}
