// Package mp4 reads what a player must know of an MP4 or QuickTime file (ISO/IEC
// 14496-12): how long it is, how large its picture is, and its codecs. It reads
// only the boxes that say so, and never more than MaxMovie bytes of them.
package mp4

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"
)

// MaxMovie bounds the moov box, in bytes: that of a day of video is smaller.
const MaxMovie = 32 << 20

// maxBoxes bounds the boxes that are looked at on the top level of a file. A
// fragmented recording has two for every fragment.
const maxBoxes = 100_000

// maxDepth bounds the nesting of boxes inside moov.
const maxDepth = 8

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
func Parse(r io.ReadSeeker, size int64) (Info, error) {
	var info Info
	var found bool
	for pos, n := int64(0), 0; pos < size && n < maxBoxes; n++ {
		b, err := header(r, pos, size)
		if n == 0 && (errors.Is(err, ErrDamaged) || err == nil && b.kind != "ftyp") {
			return Info{}, ErrNotMP4
		}
		if err != nil {
			return Info{}, err
		}
		switch {
		case b.kind == "ftyp":
			info.Format = format(r, b)
		case b.kind == "moov" && !found:
			found = true
			if err := movie(r, b, &info); err != nil {
				return Info{}, err
			}
		}
		pos += b.size
	}
	switch {
	case info.Format == "":
		return Info{}, ErrNotMP4
	case !found:
		return Info{}, ErrNoMovie
	}
	return info, nil
}

// box is the header of one box of a file.
type box struct {
	kind string
	at   int64 // where its content begins
	size int64 // header included
	body int64 // length of its content
}

// header reads the header of the box at pos in a file of size bytes.
func header(r io.ReadSeeker, pos, size int64) (box, error) {
	var h [16]byte
	if _, err := r.Seek(pos, io.SeekStart); err != nil {
		return box{}, err
	}
	if _, err := io.ReadFull(r, h[:8]); err != nil {
		return box{}, damaged(err)
	}
	n, length := int64(8), int64(binary.BigEndian.Uint32(h[:4]))
	switch length {
	case 0: // to the end of the file
		length = size - pos
	case 1: // a 64 bit size follows
		if _, err := io.ReadFull(r, h[8:]); err != nil {
			return box{}, damaged(err)
		}
		n, length = 16, int64(binary.BigEndian.Uint64(h[8:]))
	}
	if length < n || length > size-pos {
		return box{}, ErrDamaged
	}
	return box{kind: string(h[4:8]), at: pos + n, size: length, body: length - n}, nil
}

// damaged keeps errors of the reader itself apart from files that end too soon.
func damaged(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return ErrDamaged
	}
	return err
}

// format tells QuickTime from MP4 by the brand, which is read next.
func format(r io.Reader, b box) string {
	var brand [4]byte
	if b.body >= 4 {
		if _, err := io.ReadFull(r, brand[:]); err == nil && string(brand[:]) == "qt  " {
			return "mov"
		}
	}
	return "mp4"
}

// movie reads the moov box into info.
func movie(r io.ReadSeeker, b box, info *Info) error {
	if b.body > MaxMovie {
		return fmt.Errorf("%w: moov of %d bytes", ErrDamaged, b.body)
	}
	if _, err := r.Seek(b.at, io.SeekStart); err != nil {
		return err
	}
	raw := make([]byte, b.body)
	if _, err := io.ReadFull(r, raw); err != nil {
		return damaged(err)
	}
	var m reader
	if !m.walk(raw, 0) {
		return ErrDamaged
	}
	m.fill(info)
	return nil
}
