package fragments

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/Eyevinn/mp4ff/mp4"
)

// Bounds of a file that is cut.
const (
	maxMoov   = 64 << 20 // bytes
	maxBoxes  = 400_000  // on the top level; a recording has two for every second
	maxTracks = 16       // that are played
	asked     = 64 << 10 // bytes that are read at a time
)

// shortest is how long a fragment is at least, but for the last one, in seconds.
const shortest = 4

// source is a file that is cut.
type source struct {
	r       io.ReaderAt
	size    int64
	cutters []*cutter          // of the tracks that are played
	byTrack map[uint32]*cutter // by their number in the file
	trex    map[uint32]*mp4.TrexBox
	turned  map[uint32][]byte // how their pictures are turned
	samples int
	bytes   int64 // of all samples
}

// Read reads the tracks of r, an MP4 file of size bytes, and says how each is a file of
// fragments. Tracks that players do not take are left out. It is for a process that
// strangers' bytes may harm: it reads the head of the file, of at most 64 MiB, and of a
// fragmented one each fragment's index; it takes time and memory linear in these, and
// looks at no more than 400,000 boxes and 8 million samples.
func Read(r io.ReaderAt, size int64) (Film, error) {
	s := &source{r: r, size: size, byTrack: map[uint32]*cutter{}, trex: map[uint32]*mp4.TrexBox{}}
	var moov *mp4.MoovBox
	pos := int64(0)
	for n := 0; pos < size && n < maxBoxes; n++ {
		kind, length, head, err := s.header(pos)
		if err != nil {
			return Film{}, err
		}
		switch {
		case kind == "moov" && moov == nil:
			if moov, err = s.moov(pos, length); err == nil {
				err = s.begin(moov)
			}
		case kind == "moof" && moov != nil && head == 8:
			err = s.moof(pos, length)
		}
		if err != nil {
			return Film{}, err
		}
		pos += length
	}
	if moov == nil {
		return Film{}, ErrDamaged
	}
	return s.film()
}

// header reads the header of the box at pos.
func (s *source) header(pos int64) (kind string, length, head int64, err error) {
	var h [16]byte
	n, err := s.r.ReadAt(h[:min(16, s.size-pos)], pos)
	if n < 8 {
		if err == nil || errors.Is(err, io.EOF) {
			err = ErrDamaged
		}
		return "", 0, 0, err
	}
	length, head = int64(binary.BigEndian.Uint32(h[:])), 8
	switch {
	case length == 0:
		length = s.size - pos
	case length == 1 && n == 16:
		length, head = int64(binary.BigEndian.Uint64(h[8:])), 16
	}
	if length < head || length > s.size-pos {
		return "", 0, 0, ErrDamaged
	}
	return string(h[4:8]), length, head, nil
}

// box reads and decodes a box of at most most bytes. raw are its bytes.
func (s *source) box(pos, length, most int64) (b mp4.Box, raw []byte, err error) {
	if length > most {
		return nil, nil, ErrDamaged
	}
	raw = make([]byte, length)
	for at := int64(0); at < length; at += asked {
		piece := raw[at:min(at+asked, length)]
		if n, err := s.r.ReadAt(piece, pos+at); n < len(piece) {
			return nil, nil, err
		}
	}
	if b, err = mp4.DecodeBox(uint64(pos), bytes.NewReader(raw)); err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return b, raw, nil
}

// moov reads the head of the file.
func (s *source) moov(pos, length int64) (*mp4.MoovBox, error) {
	b, raw, err := s.box(pos, length, maxMoov)
	if err != nil {
		return nil, err
	}
	moov, ok := b.(*mp4.MoovBox)
	if !ok || moov.Mvhd == nil {
		return nil, ErrDamaged
	}
	s.turned = matrices(raw)
	return moov, nil
}

// begin begins to cut each track that is played, with the samples whose tables stand in
// the file's head.
func (s *source) begin(moov *mp4.MoovBox) error {
	if moov.Mvex != nil {
		for _, t := range moov.Mvex.Trexs {
			s.trex[t.TrackID] = t
		}
	}
	for _, trak := range moov.Traks {
		t, err := describe(trak)
		if err != nil || trak.Tkhd == nil || len(s.cutters) == maxTracks {
			continue
		}
		c := newCutter(t, trak, moov.Mvhd.Timescale)
		c.matrix = s.turned[trak.Tkhd.TrackID]
		s.cutters = append(s.cutters, c)
		s.byTrack[trak.Tkhd.TrackID] = c
		if trak.Mdia.Minf.Stbl.Stsz == nil || trak.Mdia.Minf.Stbl.Stsz.SampleNumber == 0 {
			continue
		}
		walk, err := newTable(trak.Mdia.Minf.Stbl)
		if err != nil {
			return err
		}
		for {
			next, ok, err := walk.next()
			if err != nil {
				return err
			}
			if !ok {
				break
			}
			if err := s.add(c, next); err != nil {
				return err
			}
		}
	}
	return nil
}

// most is how many times the size of a film its tracks may have together: a table can
// name the same bytes again and again.
const most = 2

// add counts a sample and hands it to its track.
func (s *source) add(c *cutter, next sample) error {
	if s.bytes += int64(next.size); s.bytes > most*s.size {
		return ErrDamaged
	}
	if s.samples++; s.samples > maxSamples || next.at < 0 || next.at > s.size || int64(next.size) > s.size-next.at {
		return ErrDamaged
	}
	return c.add(next)
}

// moof takes the samples of a fragment of the file.
func (s *source) moof(pos, length int64) error {
	b, _, err := s.box(pos, length, maxMoof)
	if err != nil {
		return err
	}
	moof, ok := b.(*mp4.MoofBox)
	if !ok {
		return ErrDamaged
	}
	end := pos
	for _, traf := range moof.Trafs {
		if traf.Tfhd == nil {
			return ErrDamaged
		}
		base := pos
		if traf.Tfhd.HasBaseDataOffset() {
			base = int64(traf.Tfhd.BaseDataOffset)
		}
		for i, run := range traf.Truns {
			if run.HasDataOffset() {
				end = base + int64(run.DataOffset)
			}
			if end, err = s.run(traf, run, i == 0, end); err != nil {
				return err
			}
		}
	}
	return nil
}

// run takes the samples of a run whose bytes begin at at, and returns where they end.
func (s *source) run(traf *mp4.TrafBox, run *mp4.TrunBox, first bool, at int64) (int64, error) {
	c, id := s.byTrack[traf.Tfhd.TrackID], traf.Tfhd.TrackID
	if len(run.Samples) > maxSamples-s.samples {
		return at, ErrDamaged
	}
	run.AddSampleDefaultValues(traf.Tfhd, s.trex[id])
	if c != nil && first && traf.Tfdt != nil {
		c.jump(traf.Tfdt.BaseMediaDecodeTime())
	}
	for _, x := range run.Samples {
		if c != nil {
			err := s.add(c, sample{at: at, size: x.Size, duration: x.Dur, shown: x.CompositionTimeOffset, sync: x.Flags&mp4.NonSyncSampleFlags == 0})
			if err != nil {
				return at, err
			}
		}
		if at > math.MaxInt64-int64(x.Size) {
			return at, ErrDamaged
		}
		at += int64(x.Size)
	}
	return at, nil
}

// film is the outcome.
func (s *source) film() (Film, error) {
	var f Film
	for _, c := range s.cutters {
		cut, ok, err := c.finish()
		if err != nil {
			return Film{}, err
		}
		if ok {
			f.Tracks = append(f.Tracks, cut)
		}
	}
	return f, nil
}
