package fragments

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/Eyevinn/mp4ff/mp4"
)

// Bounds of what is read of one segment, in bytes: its boxes, not its pictures.
const (
	maxInit = 1 << 20
	maxMoof = 1 << 20
)

// errSegment says that bytes are not a segment as the media engine writes it.
var errSegment = errors.New("not a segment of a fragmented MP4 file")

// ReadInit reads an initialisation segment, of one track. It takes time and memory
// linear in at most 1 MiB.
func ReadInit(r io.Reader) (Track, error) {
	raw, err := io.ReadAll(io.LimitReader(r, maxInit+1))
	if err != nil {
		return Track{}, err
	}
	if len(raw) > maxInit {
		return Track{}, errSegment
	}
	f, err := mp4.DecodeFile(bytes.NewReader(raw))
	if err != nil || f.Moov == nil || len(f.Moov.Traks) != 1 {
		return Track{}, fmt.Errorf("%w: %w", errSegment, err)
	}
	return describe(f.Moov.Traks[0])
}

// Head is where a segment of one track stands on the track's clock.
type Head struct {
	Time     uint64 // of its first sample, in ticks
	Duration uint64 // of all samples, in ticks
	Bytes    uint64
}

// ReadHead reads the beginning of a segment that is one fragment, as the engine
// writes them, and leaves the pictures unread. It takes time and memory linear in the
// fragment's index, of at most 1 MiB.
func ReadHead(r io.Reader) (Head, error) {
	h, _, err := readFragment(r)
	return h, err
}

// maxFragments bounds those of a segment.
const maxFragments = 1000

// ReadHeads is ReadHead of a segment that is several fragments, to its end: pictures are
// passed over.
func ReadHeads(r io.Reader) (all Head, err error) {
	for n := range maxFragments {
		h, left, err := readFragment(r)
		if n > 0 && errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return all, err
		}
		if n == 0 {
			all.Time = h.Time
		}
		all.Duration, all.Bytes = all.Duration+h.Duration, all.Bytes+h.Bytes
		if _, err := io.CopyN(io.Discard, r, left); err != nil {
			return all, fmt.Errorf("%w: %w", errSegment, err)
		}
	}
	return all, errSegment
}

// readFragment reads a fragment up to its samples, of which left bytes follow. io.EOF: there
// is none.
func readFragment(r io.Reader) (h Head, left int64, err error) {
	moof, err := readBox(r, "moof")
	if err != nil {
		return h, 0, err
	}
	box, err := mp4.DecodeBox(0, bytes.NewReader(moof))
	if err != nil {
		return h, 0, fmt.Errorf("%w: %w", errSegment, err)
	}
	m, ok := box.(*mp4.MoofBox)
	if !ok || m.Traf == nil || m.Traf.Tfdt == nil || m.Traf.Tfhd == nil || len(m.Trafs) != 1 {
		return h, 0, errSegment
	}
	h.Time = m.Traf.Tfdt.BaseMediaDecodeTime()
	for _, run := range m.Traf.Truns {
		h.Duration += run.Duration(m.Traf.Tfhd.DefaultSampleDuration)
	}
	n, kind, err := readHeader(r)
	if err != nil || kind != "mdat" || n < 8 || h.Duration == 0 {
		return h, 0, fmt.Errorf("%w: no samples behind the index", errSegment)
	}
	h.Bytes = uint64(len(moof)) + uint64(n)
	return h, int64(n) - 8, nil
}

// readHeader reads the header of a box.
func readHeader(r io.Reader) (size uint32, kind string, err error) {
	var h [8]byte
	_, err = io.ReadFull(r, h[:])
	return binary.BigEndian.Uint32(h[:]), string(h[4:]), err
}

// readBox reads the next box, which must be of this kind and of at most maxMoof bytes.
func readBox(r io.Reader, kind string) ([]byte, error) {
	n, got, err := readHeader(r)
	if err != nil {
		return nil, err
	}
	if got != kind || n < 8 || n > maxMoof {
		return nil, errSegment
	}
	box := make([]byte, n)
	binary.BigEndian.PutUint32(box, n)
	copy(box[4:], kind)
	_, err = io.ReadFull(r, box[8:])
	return box, err
}
