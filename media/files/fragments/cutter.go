package fragments

import (
	"bytes"
	"fmt"
	"math"

	"github.com/Eyevinn/mp4ff/mp4"
)

// cutter makes a Cut of a track, sample by sample.
type cutter struct {
	track Track
	stsd  *mp4.StsdBox
	skip  uint64 // ticks of the track that are not presented
	delay uint64 // ticks before its first sample

	matrix []byte // how its pictures are turned; nil: not told

	clock uint64 // ticks: where the next sample is decoded
	from  uint64 // of the fragment that is being gathered
	held  []mp4.Sample
	spans []Part // where its samples stand in the film
	bytes int64
	sync  bool // it begins with a sample that players can begin with

	refs  []mp4.SidxRef
	own   bytes.Buffer
	parts []Part
	total uint64 // ticks of all fragments
	long  uint64
	peak  uint32
	first uint64 // where the first fragment is decoded
}

// newCutter begins a track. Its edit list says from where on it is presented, and how
// much later than the others; its times are in ticks of the film, scale of them a second.
func newCutter(t Track, trak *mp4.TrakBox, scale uint32) *cutter {
	c := &cutter{track: t, stsd: trak.Mdia.Minf.Stbl.Stsd}
	if trak.Edts == nil {
		return c
	}
	for _, list := range trak.Edts.Elst {
		for _, e := range list.Entries {
			if e.MediaTime >= 0 {
				c.skip = uint64(e.MediaTime)
				return c
			}
			if scale > 0 && e.SegmentDuration < math.MaxUint32 {
				c.delay += e.SegmentDuration * uint64(t.Timescale) / uint64(scale)
			}
		}
	}
	return c
}

// jump moves the clock on, where the film says so.
func (c *cutter) jump(clock uint64) {
	if clock > c.clock && clock < math.MaxUint32*uint64(c.track.Timescale) {
		if len(c.held) > 0 { // the last sample lasts until then
			last := &c.held[len(c.held)-1]
			last.Dur = uint32(min(uint64(last.Dur)+clock-c.clock, math.MaxUint32))
		}
		c.clock = clock
	}
}

// add takes the next sample. A fragment ends where it is long enough and a player can
// begin with the next one.
func (c *cutter) add(s sample) error {
	if s.sync && c.clock-c.from >= shortest*uint64(c.track.Timescale) {
		if err := c.flush(); err != nil {
			return err
		}
	}
	if len(c.held) == 0 {
		c.from, c.sync = c.clock, s.sync
	}
	flags := mp4.SyncSampleFlags
	if !s.sync {
		flags = mp4.NonSyncSampleFlags
	}
	c.held = append(c.held, mp4.Sample{Flags: flags, Dur: s.duration, Size: s.size, CompositionTimeOffset: s.shown})
	if n := len(c.spans); n > 0 && c.spans[n-1].From+c.spans[n-1].N == s.at {
		c.spans[n-1].N += int64(s.size)
	} else {
		c.spans = append(c.spans, Part{N: int64(s.size), From: s.at})
	}
	c.bytes += int64(s.size)
	c.clock += uint64(s.duration)
	return nil
}

// flush writes the fragment that was gathered.
func (c *cutter) flush() error {
	if len(c.held) == 0 {
		return nil
	}
	const header = 8 // of mdat
	if c.bytes > math.MaxUint32-header {
		return ErrDamaged
	}
	f, err := mp4.CreateFragment(uint32(len(c.refs)+1), 1)
	if err != nil {
		return err
	}
	traf := f.Moof.Traf
	traf.Tfdt.SetBaseMediaDecodeTime(c.from + c.delay)
	traf.Trun.AddSamples(c.held)
	if err := traf.OptimizeTfhdTrun(); err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	traf.Trun.DataOffset = int32(f.Moof.Size()) + header
	before := c.own.Len()
	if err := f.Moof.Encode(&c.own); err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	size := uint32(c.bytes + header)
	c.own.Write([]byte{byte(size >> 24), byte(size >> 16), byte(size >> 8), byte(size), 'm', 'd', 'a', 't'})
	c.note(int64(c.own.Len()-before) + c.bytes)
	c.parts = append(append(c.parts, Part{N: int64(c.own.Len() - before), From: -1}), c.spans...)
	c.held, c.spans, c.bytes = c.held[:0], c.spans[:0], 0
	return nil
}

// note puts the fragment, of so many bytes, into the index.
func (c *cutter) note(size int64) {
	if len(c.refs) == 0 {
		c.first = c.from
	}
	ticks := c.clock - c.from
	sap := uint8(0)
	if c.sync {
		sap = 1
	}
	c.refs = append(c.refs, mp4.SidxRef{ReferencedSize: uint32(size), SubSegmentDuration: uint32(min(ticks, math.MaxUint32)), StartsWithSAP: sap, SAPType: sap})
	c.total += ticks
	c.long = max(c.long, ticks)
	if ticks > 0 {
		c.peak = max(c.peak, uint32(min(float64(size)*8*float64(c.track.Timescale)/float64(ticks), math.MaxUint32)))
	}
}

// maxRefs is how many fragments an index can name.
const maxRefs = math.MaxUint16

// finish is the track as a file; false: it has no samples.
func (c *cutter) finish() (Cut, bool, error) {
	if err := c.flush(); err != nil {
		return Cut{}, false, err
	}
	if len(c.refs) == 0 || c.total == 0 {
		return Cut{}, false, nil
	}
	if len(c.refs) > maxRefs {
		return Cut{}, false, ErrDamaged
	}
	head, err := c.init()
	if err != nil {
		return Cut{}, false, err
	}
	init := len(head)
	index := mp4.SidxBox{Version: 1, ReferenceID: 1, Timescale: c.track.Timescale, EarliestPresentationTime: c.first + c.delay, SidxRefs: c.refs}
	var out bytes.Buffer
	out.Write(head)
	if err := index.Encode(&out); err != nil {
		return Cut{}, false, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	parts := append([]Part{{N: int64(out.Len()), From: -1}}, c.parts...)
	sidx := out.Len() - init
	out.Write(c.own.Bytes())
	presented := c.first + c.delay + c.total
	return Cut{Track: c.track, Skip: c.skip, Duration: presented - min(presented-1, c.skip), Init: int64(init), Index: int64(sidx),
		Longest: c.long, Peak: c.peak, Own: out.Bytes(), Parts: parts}, true, nil
}

// init is the track's initialisation segment.
func (c *cutter) init() ([]byte, error) {
	seg := mp4.CreateEmptyInit()
	language := c.track.Language
	if language == "" {
		language = "und"
	}
	trak := seg.AddEmptyTrack(c.track.Timescale, string(c.track.Kind), language)
	trak.Tkhd.Width, trak.Tkhd.Height = mp4.Fixed32(c.track.Width<<16), mp4.Fixed32(c.track.Height<<16)
	stbl := trak.Mdia.Minf.Stbl
	stbl.Stsd = c.stsd
	for i, b := range stbl.Children {
		if b.Type() == "stsd" {
			stbl.Children[i] = c.stsd
		}
	}
	var out bytes.Buffer
	if err := seg.Encode(&out); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	turn(out.Bytes(), c.matrix)
	return out.Bytes(), nil
}
