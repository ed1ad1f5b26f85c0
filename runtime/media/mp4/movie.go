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

// reader gathers what stands in a moov box.
type reader struct {
	scale, length uint64 // of the movie: ticks a second, ticks
	fragments     uint64 // ticks, from mehd
	tracks        []track
}

// containers are the boxes whose content is boxes.
var containers = map[string]bool{"trak": true, "mdia": true, "minf": true, "stbl": true, "mvex": true}

// walk visits the boxes in raw; false: they do not fit into each other.
func (m *reader) walk(raw []byte, depth int) bool {
	for len(raw) > 0 {
		if len(raw) < 8 || depth > maxDepth {
			return false
		}
		size, head := uint64(binary.BigEndian.Uint32(raw)), uint64(8)
		if size == 1 && len(raw) >= 16 {
			size, head = binary.BigEndian.Uint64(raw[8:]), 16
		}
		if size == 0 {
			size = uint64(len(raw))
		}
		if size < head || size > uint64(len(raw)) {
			return false
		}
		if !m.visit(string(raw[4:8]), raw[head:size], depth) {
			return false
		}
		raw = raw[size:]
	}
	return true
}

// visit takes in one box, or goes into it.
func (m *reader) visit(kind string, body []byte, depth int) bool {
	if kind == "trak" {
		m.tracks = append(m.tracks, track{})
	}
	if containers[kind] {
		return m.walk(body, depth+1)
	}
	switch kind {
	case "mvhd":
		m.scale, m.length = times(body)
	case "mehd":
		m.fragments = wide(body, 4, 4)
	}
	if len(m.tracks) > 0 {
		m.tracks[len(m.tracks)-1].read(kind, body)
	}
	return true
}

// read takes in a box of the track. Boxes that are too short say nothing.
func (t *track) read(kind string, body []byte) {
	switch {
	case kind == "tkhd" && len(body) >= 8:
		// Width and height are the last two fields, as 16.16 fixed point.
		t.width = int(binary.BigEndian.Uint16(body[len(body)-8:]))
		t.height = int(binary.BigEndian.Uint16(body[len(body)-4:]))
	case kind == "hdlr" && len(body) >= 12:
		t.handler = string(body[8:12])
	case kind == "stsd" && len(body) >= 16:
		t.codec = printable(body[12:16])
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
func (m *reader) fill(info *Info) {
	info.Duration = duration(max(m.length, m.fragments), m.scale)
	for _, t := range m.tracks {
		switch {
		case t.handler == "vide" && t.width*t.height >= info.Width*info.Height:
			info.Width, info.Height, info.VideoCodec = t.width, t.height, t.codec
		case t.handler == "soun" && info.AudioCodec == "":
			info.AudioCodec = t.codec
		}
	}
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
