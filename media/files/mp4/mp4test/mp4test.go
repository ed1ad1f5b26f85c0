// Package mp4test makes small MP4 files for tests.
package mp4test

import (
	"bytes"
	"encoding/binary"
	"slices"
)

// Spec says what a file shall claim of itself.
type Spec struct {
	Brand         string // empty: isom
	Millis        uint32
	Width, Height uint16 // zero: no video track
	Video, Audio  string // codecs; empty audio: no audio track
	Padding       int    // bytes of mdat
	Late          bool   // moov after mdat, as cameras write it
}

// File returns the bytes of such a file. Its media data is zeros: it parses, it
// does not play.
func (s Spec) File() []byte {
	brand := s.Brand
	if brand == "" {
		brand = "isom"
	}
	ftyp := Box("ftyp", []byte(brand), make([]byte, 4))
	mdat := Box("mdat", make([]byte, s.Padding))
	moov := Box("moov", s.tracks()...)
	if s.Late {
		return slices.Concat(ftyp, mdat, moov)
	}
	return slices.Concat(ftyp, moov, mdat)
}

// tracks returns the boxes inside moov.
func (s Spec) tracks() [][]byte {
	mvhd := make([]byte, 100)
	binary.BigEndian.PutUint32(mvhd[12:], 1000)
	binary.BigEndian.PutUint32(mvhd[16:], s.Millis)
	boxes := [][]byte{Box("mvhd", mvhd)}
	if s.Width > 0 {
		boxes = append(boxes, trak("vide", s.Video, s.Width, s.Height))
	}
	if s.Audio != "" {
		boxes = append(boxes, trak("soun", s.Audio, 0, 0))
	}
	return boxes
}

// trak returns the box of one track.
func trak(handler, codec string, width, height uint16) []byte {
	tkhd := make([]byte, 84)
	binary.BigEndian.PutUint16(tkhd[76:], width)
	binary.BigEndian.PutUint16(tkhd[80:], height)
	hdlr := slices.Concat(make([]byte, 8), []byte(handler), make([]byte, 13))
	stsd := Box("stsd", []byte{0, 0, 0, 0, 0, 0, 0, 1}, Box(codec, make([]byte, 8)))
	return Box("trak", Box("tkhd", tkhd), Box("mdia", Box("hdlr", hdlr), Box("minf", Box("stbl", stsd))))
}

// Box returns one box of this kind around contents.
func Box(kind string, contents ...[]byte) []byte {
	body := bytes.Join(contents, nil)
	head := binary.BigEndian.AppendUint32(nil, uint32(8+len(body)))
	return slices.Concat(head, []byte(kind), body)
}
