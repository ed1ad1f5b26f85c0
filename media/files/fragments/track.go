// Package fragments reads the tracks of MP4 files as players of segments want them:
// what each track is, in the words of RFC 6381, and where its pictures and sounds
// stand, as fragments (ISO/IEC 14496-12, 8.8) of one track each.
package fragments

import (
	"errors"
	"fmt"
	"strings"

	"github.com/Eyevinn/mp4ff/aac"
	"github.com/Eyevinn/mp4ff/avc"
	"github.com/Eyevinn/mp4ff/hevc"
	"github.com/Eyevinn/mp4ff/mp4"
)

// Kind is what a track is for.
type Kind string

// The kinds of tracks that are played.
const (
	Video Kind = "video"
	Audio Kind = "audio"
)

// Track is what a player must know of a track before it has a byte of it. Numbers
// that do not apply are zero.
type Track struct {
	Kind          Kind   `json:"kind"`
	Codecs        string `json:"codecs"`    // RFC 6381, such as avc1.42C00C
	Timescale     uint32 `json:"timescale"` // ticks a second; never 0
	Language      string `json:"language"`  // ISO 639-2; empty: not told
	Width, Height int    // pixels
	SampleRate    int    // Hz
	Channels      int
}

// Mime is the media type of the track's segments.
func (t Track) Mime() string { return string(t.Kind) + "/mp4" }

// errUnknown says that a track has a codec that no player of segments takes.
var errUnknown = errors.New("a track whose codec is not known")

// describe reads a track. It fails with errUnknown for those that are not played.
func describe(trak *mp4.TrakBox) (Track, error) {
	if trak == nil || trak.Mdia == nil || trak.Mdia.Mdhd == nil || trak.Mdia.Minf == nil || trak.Mdia.Minf.Stbl == nil || trak.Mdia.Minf.Stbl.Stsd == nil {
		return Track{}, errUnknown
	}
	t := Track{Timescale: trak.Mdia.Mdhd.Timescale}
	if t.Timescale == 0 {
		return Track{}, errUnknown
	}
	if l := trak.Mdia.Mdhd.GetLanguage(); len(l) == 3 && l != "und" && strings.Trim(l, "abcdefghijklmnopqrstuvwxyz") == "" {
		t.Language = l
	}
	for _, box := range trak.Mdia.Minf.Stbl.Stsd.Children {
		switch entry := box.(type) {
		case *mp4.VisualSampleEntryBox:
			t.Kind, t.Width, t.Height = Video, int(entry.Width), int(entry.Height)
			return t, t.video(entry)
		case *mp4.AudioSampleEntryBox:
			t.Kind, t.Channels, t.SampleRate = Audio, int(entry.ChannelCount), int(entry.SampleRate)
			return t, t.audio(entry)
		}
	}
	return Track{}, errUnknown
}

// video names the codec of pictures.
func (t *Track) video(e *mp4.VisualSampleEntryBox) error {
	switch {
	case e.AvcC != nil && len(e.AvcC.SPSnalus) > 0:
		sps, err := avc.ParseSPSNALUnit(e.AvcC.SPSnalus[0], false)
		if err != nil {
			return fmt.Errorf("%w: %w", errUnknown, err)
		}
		t.Codecs = avc.CodecString(e.Type(), sps)
	case e.HvcC != nil:
		return t.hevc(e)
	case e.Av1C != nil:
		depth := 8 + 2*(int(e.Av1C.HighBitdepth)+int(e.Av1C.TwelveBit))
		tier := "M"
		if e.Av1C.SeqTier0 == 1 {
			tier = "H"
		}
		t.Codecs = fmt.Sprintf("av01.%d.%02d%s.%02d", e.Av1C.SeqProfile, e.Av1C.SeqLevelIdx0, tier, depth)
	case e.VppC != nil:
		t.Codecs = fmt.Sprintf("%s.%02d.%02d.%02d", e.Type(), e.VppC.Profile, max(e.VppC.Level, 10), max(e.VppC.BitDepth, 8))
	default:
		return errUnknown
	}
	return nil
}

// hevc names HEVC by its first sequence parameter set.
func (t *Track) hevc(e *mp4.VisualSampleEntryBox) error {
	sets := e.HvcC.GetNalusForType(hevc.NALU_SPS)
	if len(sets) == 0 {
		return errUnknown
	}
	sps, err := hevc.ParseSPSNALUnit(sets[0])
	if err != nil {
		return fmt.Errorf("%w: %w", errUnknown, err)
	}
	t.Codecs = hevc.CodecString(e.Type(), sps)
	return nil
}

// audio names the codec of sound.
func (t *Track) audio(e *mp4.AudioSampleEntryBox) error {
	switch {
	case e.Dops != nil:
		t.Codecs, t.SampleRate = "opus", 48000
	case e.Type() == "ac-3" || e.Type() == "ec-3":
		t.Codecs = e.Type()
	case e.Esds != nil && e.Esds.DecConfigDescriptor != nil:
		d := e.Esds.DecConfigDescriptor
		if d.ObjectType != 0x40 { // not MPEG-4 audio: such as MP3
			t.Codecs = fmt.Sprintf("mp4a.%02X", d.ObjectType)
			return nil
		}
		object := byte(aac.AAClc)
		if s := d.DecSpecificInfo; s != nil && len(s.DecConfig) > 0 && s.DecConfig[0]>>3 != 31 {
			object = s.DecConfig[0] >> 3
		}
		t.Codecs = fmt.Sprintf("mp4a.40.%d", object)
	default:
		return errUnknown
	}
	return nil
}
