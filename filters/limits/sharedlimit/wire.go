// Package sharedlimit lets the edges of a fleet share rate limits. Each tells the
// control plane, some times a second, what it has let through for the accounts
// that may be near their limits, and hears what the others have. No request
// waits for it.
//
// This package is the edge's side without its effects, and the form of the
// messages.
package sharedlimit

import (
	"encoding/binary"
	"math"

	"sluice.dev/sluice/filters/host/wire"
	"sluice.dev/sluice/filters/limits/ratelimit"
)

// Limits of a message.
const (
	// MaxEntries bounds the windows of one message. An edge with more hot ones
	// tells those that it found hot first; the others wait until these cool down.
	MaxEntries = 1024
	// MaxBytes bounds a message.
	MaxBytes = 512 << 10
)

// Entry is what has been counted in one window.
type Entry struct {
	ID ratelimit.ID
	// Its Pace and Millis are not sent.
	ratelimit.Others
}

// Report is what an edge has counted itself.
type Report struct {
	Told    uint64 // when, in unix milliseconds by the edge's clock; later reports have later times
	Boot    uint64 // tells two starts of the edge apart: the counts of an earlier one are not in this
	Entries []Entry
}

// Answer is what all other edges together have counted, and how many edges
// there are, the one that hears it included.
type Answer struct {
	Edges   uint32
	Entries []Entry
}

const (
	reportMagic = "SLC1"
	answerMagic = "SLA1"
)

// Append appends the report's bytes to dst.
func (r Report) Append(dst []byte) []byte {
	dst = append(dst, reportMagic...)
	dst = binary.LittleEndian.AppendUint64(dst, r.Told)
	dst = binary.LittleEndian.AppendUint64(dst, r.Boot)
	return appendEntries(dst, r.Entries)
}

// ParseReport reads what Report.Append wrote; ok is false for anything else.
func ParseReport(b []byte) (r Report, ok bool) {
	if len(b) < len(reportMagic)+16 || len(b) > MaxBytes || string(b[:4]) != reportMagic {
		return r, false
	}
	r.Told, r.Boot = binary.LittleEndian.Uint64(b[4:]), binary.LittleEndian.Uint64(b[12:])
	r.Entries, ok = parseEntries(b[20:])
	return r, ok
}

// Append appends the answer's bytes to dst.
func (a Answer) Append(dst []byte) []byte {
	dst = append(dst, answerMagic...)
	dst = binary.LittleEndian.AppendUint32(dst, a.Edges)
	return appendEntries(dst, a.Entries)
}

// ParseAnswer reads what Answer.Append wrote; ok is false for anything else.
func ParseAnswer(b []byte) (a Answer, ok bool) {
	if len(b) < len(answerMagic)+4 || len(b) > MaxBytes || string(b[:4]) != answerMagic {
		return a, false
	}
	a.Edges = binary.LittleEndian.Uint32(b[4:])
	a.Entries, ok = parseEntries(b[8:])
	return a, ok
}

// appendEntries writes each entry as ID, newest second, burst, the number of
// slots up to the oldest that is not empty, and those, the newest first.
func appendEntries(dst []byte, list []Entry) []byte {
	dst = binary.LittleEndian.AppendUint16(dst, uint16(len(list)))
	for i := range list {
		e := &list[i]
		dst = append(dst, e.ID[:]...)
		dst = binary.LittleEndian.AppendUint32(dst, uint32(e.Newest))
		dst = binary.AppendUvarint(dst, uint64(e.Burst))
		n := ratelimit.Seconds
		for n > 0 && e.At(e.Newest-int64(n)+1) == 0 {
			n--
		}
		dst = append(dst, byte(n))
		for back := range int64(n) {
			dst = binary.AppendUvarint(dst, uint64(e.At(e.Newest-back)))
		}
	}
	return dst
}

func parseEntries(b []byte) ([]Entry, bool) {
	if len(b) < 2 {
		return nil, false
	}
	n := int(binary.LittleEndian.Uint16(b))
	if n > MaxEntries || n*22 > len(b)-2 {
		return nil, false
	}
	r, list := wire.NewReader(b[2:]), make([]Entry, n)
	for i := range list {
		readEntry(&r, &list[i])
	}
	return list, r.Done()
}

// readEntry reads what appendEntries writes of one entry.
func readEntry(r *wire.Reader, e *Entry) {
	copy(e.ID[:], r.Bytes(uint64(len(e.ID))))
	e.Newest = int64(r.Uint32())
	e.Burst = uint32(r.Number(math.MaxUint32))
	n := r.Number(ratelimit.Seconds)
	if e.Newest < ratelimit.Seconds {
		r.Fail()
		return
	}
	for back := range int64(n) {
		e.Slots[(e.Newest-back)%ratelimit.Seconds] = uint32(r.Number(math.MaxUint32))
	}
}
