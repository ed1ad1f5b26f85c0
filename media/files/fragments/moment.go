package fragments

import (
	"encoding/binary"
	"io"
	"math"
)

// Moment is the part of a track that shows one of its pictures.
type Moment struct {
	At   float64 // of the picture, in seconds of the track's own clock
	From int64   // where its fragments begin in the Cut
	N    int64   // their bytes
}

// beside is how much of a track belongs to a moment before and after it, in seconds:
// pictures are not shown in the order in which they stand in it.
const beside = 2

// Places in a sidx box of version 1 (ISO/IEC 14496-12, 8.16.3), which has an entry of
// entrySize for each fragment.
const (
	scaleAt   = 16
	earliest  = 20
	countAt   = 38
	entriesAt = 40
	entrySize = 12
)

// Moment finds the fragments that show the picture at seconds of what is presented; false:
// there are none, or the index cannot be read. It takes time linear in the index.
func (c Cut) Moment(seconds float64) (Moment, bool) {
	if c.Init < 0 || c.Index < entriesAt || c.Init+c.Index > int64(len(c.Own)) || !(seconds >= 0) {
		return Moment{}, false
	}
	index := c.Own[c.Init : c.Init+c.Index]
	n := int(binary.BigEndian.Uint16(index[countAt:]))
	scale := float64(binary.BigEndian.Uint32(index[scaleAt:]))
	if index[headerSize] != 1 || scale == 0 || len(index) < entriesAt+entrySize*n {
		return Moment{}, false
	}
	m := Moment{At: seconds + float64(c.Skip)/scale}
	clock, at := float64(binary.BigEndian.Uint64(index[earliest:]))/scale, c.Init+c.Index
	for e := index[entriesAt:]; n > 0; n, e = n-1, e[entrySize:] {
		size := int64(binary.BigEndian.Uint32(e) & math.MaxInt32)
		length := float64(binary.BigEndian.Uint32(e[4:])) / scale
		if clock+length > m.At-beside && clock <= m.At+beside {
			if m.N == 0 {
				m.From = at
			}
			m.N = at + size - m.From
		}
		clock, at = clock+length, at+size
	}
	return m, m.N > 0
}

// Film is m as a film of its own: the initialisation segment of c, and the fragments. It
// reads these bytes of film, and no others.
func (c Cut) Film(m Moment, film io.ReaderAt) io.Reader {
	return io.MultiReader(c.section(film, 0, c.Init), c.section(film, m.From, m.N))
}

// section reads n bytes of c.
func (c Cut) section(film io.ReaderAt, from, n int64) io.Reader {
	r := NewReader(c, film)
	r.pos = from
	return io.LimitReader(r, n)
}
