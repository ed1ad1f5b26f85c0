package mp4

import (
	"encoding/binary"
	"time"
)

// track is what one trak box says.
type track struct {
	width, height int
	handler       string // vide, soun, …
	codec         string
}

// movie gathers what stands in a moov box.
type movie struct {
	*file
	boxes, tracks int
	scale, length uint64 // of the movie: ticks a second, ticks
	fragments     uint64 // ticks, from mehd
	current       track
	picture       track // the largest so far
	sound         string
}

// containers are the boxes whose content is boxes.
var containers = map[string]bool{"trak": true, "mdia": true, "minf": true, "stbl": true, "mvex": true}

// walk visits the boxes from pos to end. It fails with ErrDamaged when they do not
// fit into each other, or are too many.
func (m *movie) walk(pos, end int64, depth int) error {
	for pos < end {
		if m.boxes++; m.boxes > maxInside {
			return tooMany(maxInside, "boxes")
		}
		if depth > maxDepth {
			return ErrDamaged
		}
		b, err := m.header(pos, end)
		if err == nil {
			err = m.visit(b, depth)
		}
		if err != nil {
			return err
		}
		pos = b.end
	}
	return nil
}

// visit takes in one box, or goes into it.
func (m *movie) visit(b box, depth int) error {
	if b.kind == "trak" {
		m.close()
		if m.tracks++; m.tracks > maxTracks {
			return tooMany(maxTracks, "tracks")
		}
	}
	if containers[b.kind] {
		return m.walk(b.at, b.end, depth+1)
	}
	switch b.kind {
	case "mvhd":
		body, err := m.body(b, 32)
		m.scale, m.length = times(body)
		return err
	case "mehd":
		body, err := m.body(b, 12)
		m.fragments = wide(body, 4, 4)
		return err
	}
	if m.tracks > 0 {
		return m.trackBox(b)
	}
	return nil
}

// trackBox takes in a box of the current track. Boxes that are too short say nothing.
func (m *movie) trackBox(b box) error {
	switch length := b.end - b.at; {
	case b.kind == "tkhd" && length >= 8:
		// Width and height are the last two fields, as 16.16 fixed point.
		last, err := m.read(b.end-8, 8)
		if err != nil {
			return err
		}
		m.current.width = int(binary.BigEndian.Uint16(last))
		m.current.height = int(binary.BigEndian.Uint16(last[4:]))
	case b.kind == "hdlr" && length >= 12:
		body, err := m.body(b, 12)
		if err != nil {
			return err
		}
		m.current.handler = string(body[8:])
	case b.kind == "stsd" && length >= 16:
		body, err := m.body(b, 16)
		if err != nil {
			return err
		}
		m.current.codec = printable(body[12:])
	}
	return nil
}

// close keeps what is wanted of the current track.
func (m *movie) close() {
	t := m.current
	m.current = track{}
	switch {
	case t.handler == "vide" && t.width*t.height >= m.picture.width*m.picture.height:
		m.picture = t
	case t.handler == "soun" && m.sound == "":
		m.sound = t.codec
	}
}

// times reads timescale and duration of an mvhd box of either version.
func times(body []byte) (scale, length uint64) {
	at := 12
	if len(body) > 0 && body[0] == 1 {
		at = 20
	}
	if len(body) < at+4 {
		return 0, 0
	}
	return uint64(binary.BigEndian.Uint32(body[at:])), wide(body, at+4, at+4)
}

// wide reads a duration that is 32 bits at v0 in version 0 of a box and 64 bits
// at v1 in version 1. All ones means unknown.
func wide(body []byte, v0, v1 int) uint64 {
	switch {
	case len(body) > 0 && body[0] == 1 && len(body) >= v1+8:
		if n := binary.BigEndian.Uint64(body[v1:]); n != ^uint64(0) {
			return n
		}
	case len(body) > 0 && body[0] == 0 && len(body) >= v0+4:
		if n := binary.BigEndian.Uint32(body[v0:]); n != ^uint32(0) {
			return uint64(n)
		}
	}
	return 0
}

// fill puts what was gathered into info.
func (m *movie) fill(info *Info) {
	m.close()
	info.Duration = duration(max(m.length, m.fragments), m.scale)
	info.Width, info.Height, info.VideoCodec = m.picture.width, m.picture.height, m.picture.codec
	info.AudioCodec = m.sound
}

// longest bounds a duration that is believed.
const longest = 30 * 24 * time.Hour

// duration turns ticks into time, to the millisecond. What nobody can have
// filmed counts as not told.
func duration(ticks, scale uint64) time.Duration {
	if scale == 0 || ticks/scale > uint64(longest/time.Second) {
		return 0
	}
	whole, rest := ticks/scale, ticks%scale
	return time.Duration(whole)*time.Second + time.Duration(rest*1000/scale)*time.Millisecond
}

// printable keeps a four letter code only if it is one.
func printable(code []byte) string {
	for _, c := range code {
		if c < 0x20 || c > 0x7e {
			return ""
		}
	}
	return string(code)
}
