package main

import (
	"bytes"
	"encoding/binary"
	"errors"
)

// What sum knows of the files of counters; see internal/coverage of Go.
const (
	version    = 1
	headerSize = 32
	segment    = 16
	raw        = 1
	leb        = 2
)

var errFormat = errors.New("the counters are not in the form of Go 1.20 to 1.26: see internal/coverage/defs.go, and adapt sum")

// sum adds all counters of a file with one segment: a header, the segment's
// preamble with two lengths of what is skipped, and for each function the number
// of its counters, two ids, and the counters.
func sum(b []byte) (total uint64, err error) {
	if len(b) < headerSize+segment || !bytes.Equal(b[:4], []byte("\x00cwm")) || binary.LittleEndian.Uint32(b[4:]) != version || b[25] != 0 {
		return 0, errFormat
	}
	flavor := b[24]
	functions := binary.LittleEndian.Uint64(b[headerSize:])
	skip := uint64(binary.LittleEndian.Uint32(b[headerSize+8:])) + uint64(binary.LittleEndian.Uint32(b[headerSize+12:]))
	b = b[headerSize+segment:]
	if skip > uint64(len(b)) {
		return 0, errFormat
	}
	r := reader{b: b[skip:], flavor: flavor}
	for range functions {
		n := r.next()
		r.next()
		r.next()
		for range n {
			total += r.next()
		}
		if r.failed {
			return 0, errFormat
		}
	}
	return total, nil
}

// reader reads numbers of one flavor.
type reader struct {
	b      []byte
	flavor byte
	failed bool
}

func (r *reader) next() uint64 {
	switch {
	case r.flavor == raw && len(r.b) >= 4:
		v := binary.LittleEndian.Uint32(r.b)
		r.b = r.b[4:]
		return uint64(v)
	case r.flavor == leb:
		if v, n := binary.Uvarint(r.b); n > 0 {
			r.b = r.b[n:]
			return v
		}
	}
	r.failed = true
	return 0
}
