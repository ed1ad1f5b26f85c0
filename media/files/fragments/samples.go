package fragments

import (
	"errors"

	"github.com/Eyevinn/mp4ff/mp4"
)

// ErrDamaged says that the tables of a file do not fit together.
var ErrDamaged = errors.New("the tables of the file are damaged")

// maxSamples bounds the samples of a file, of all tracks: thirty hours of a film.
const maxSamples = 8 << 20

// sample is one picture, or a moment of sound, and its place in the file.
type sample struct {
	at       int64
	size     uint32
	duration uint32 // ticks
	shown    int32  // ticks after it is decoded
	sync     bool
}

// table walks over the sample tables of a track (ISO/IEC 14496-12, 8.6 and 8.7). Each
// step costs a constant number of operations.
type table struct {
	stbl *mp4.StblBox
	n    uint32 // of the sample, from 0

	chunk, left uint32 // the chunk from 0, and how many of its samples are to come
	run         int    // entry of stsc
	at          int64

	times     int // entry of stts
	timesLeft uint32
	shift     int // entry of ctts
	key       int // entry of stss
}

// newTable is the walk over a track whose tables are in the file's head.
func newTable(s *mp4.StblBox) (*table, error) {
	if s.Stsz == nil || s.Stts == nil || s.Stsc == nil || s.Stco == nil && s.Co64 == nil {
		return nil, ErrDamaged
	}
	return &table{stbl: s, times: -1}, nil
}

// next is the next sample; false: there is none.
func (t *table) next() (s sample, ok bool, err error) {
	if t.n >= t.stbl.Stsz.SampleNumber {
		return s, false, nil
	}
	if t.left == 0 {
		if err := t.enter(); err != nil {
			return s, false, err
		}
	}
	s.size = t.stbl.Stsz.SampleUniformSize
	if s.size == 0 {
		s.size = t.stbl.Stsz.SampleSize[t.n]
	}
	s.at = t.at
	if s.duration, ok = t.duration(); !ok {
		return s, false, ErrDamaged
	}
	s.shown, s.sync = t.shown(), t.sync()
	t.at += int64(s.size)
	t.left--
	t.n++
	return s, true, nil
}

// enter goes to the next chunk that has samples.
func (t *table) enter() error {
	runs := t.stbl.Stsc.Entries
	for t.run+1 < len(runs) && runs[t.run+1].FirstChunk <= t.chunk+1 {
		t.run++
	}
	if len(runs) == 0 || runs[t.run].SamplesPerChunk == 0 {
		return ErrDamaged
	}
	switch c := int(t.chunk); {
	case t.stbl.Stco != nil && c < len(t.stbl.Stco.ChunkOffset):
		t.at = int64(t.stbl.Stco.ChunkOffset[c])
	case t.stbl.Stco == nil && c < len(t.stbl.Co64.ChunkOffset):
		t.at = int64(t.stbl.Co64.ChunkOffset[c])
	default:
		return ErrDamaged
	}
	t.left = runs[t.run].SamplesPerChunk
	t.chunk++
	return nil
}

// duration is that of the sample.
func (t *table) duration() (uint32, bool) {
	b := t.stbl.Stts
	for t.timesLeft == 0 {
		t.times++
		if t.times >= len(b.SampleCount) {
			return 0, false
		}
		t.timesLeft = b.SampleCount[t.times]
	}
	t.timesLeft--
	return b.SampleTimeDelta[t.times], true
}

// shown is how much later than it is decoded the sample is shown.
func (t *table) shown() int32 {
	b := t.stbl.Ctts
	if b == nil {
		return 0
	}
	for t.shift < len(b.SampleOffset) && b.EndSampleNr[t.shift+1] <= t.n {
		t.shift++
	}
	if t.shift == len(b.SampleOffset) {
		return 0
	}
	return b.SampleOffset[t.shift]
}

// sync reports whether players can begin with the sample.
func (t *table) sync() bool {
	b := t.stbl.Stss
	if b == nil {
		return true
	}
	for t.key < len(b.SampleNumber) && b.SampleNumber[t.key] < t.n+1 {
		t.key++
	}
	return t.key < len(b.SampleNumber) && b.SampleNumber[t.key] == t.n+1
}
