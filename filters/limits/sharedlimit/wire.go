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
	MaxEntries = maxListed - 1
	// MaxBytes bounds a message.
	MaxBytes = 512 << 10
)

// Entry is what has been counted in one window.
type Entry struct {
	ID ratelimit.ID
	// Its Pace and Millis are not sent.
	ratelimit.Others
	// Hot says that an edge has found it hot by its own count, so that all have to tell
	// what they have counted in it.
	Hot bool
}

// Report is what an edge has counted itself.
type Report struct {
	Told uint64 // when, in unix milliseconds by the edge's clock; later reports have later times
	// Boot tells two starts of the edge apart: the counts of an earlier one are not in
	// this. 0: the edge has ended, and these are its last counts.
	Boot    uint64
	Holders uint32 // its share of strict limits is 1 of Holders; 0: it has none yet
	Strict  bool   // the edge is of a release with strict limits
	Partial bool   // it has more hot windows than it can tell
	Entries []Entry
}

// Idle reports whether the answer may wait for news: the edge has counted nothing, and
// waits for no share.
func (r *Report) Idle() bool { return len(r.Entries) == 0 && (r.Holders > 0 || !r.Strict) }

// Answer is what all other edges together have counted, and how many edges
// there are, the one that hears it included.
type Answer struct {
	Edges   uint32
	Members Members // for strict limits; its zero value: a replica of a release without
	Entries []Entry
}

// Members are all edges that may be serving, heard of lately or not.
type Members struct {
	Edges         uint32 // how many they are, the one that hears it included
	Silent        uint32 // see Shares
	SilentHolders uint32
	Whole         bool
	Settled       bool // all others hold no more than 1 of Edges
}

// maxListed is how many entries a message has at most, the one behind the windows
// included.
const maxListed = 1024

const (
	reportMagic = "SLC1"
	answerMagic = "SLA1"
)

// Append appends the report's bytes to dst.
func (r Report) Append(dst []byte) []byte {
	dst = append(dst, reportMagic...)
	dst = binary.LittleEndian.AppendUint64(dst, r.Told)
	dst = binary.LittleEndian.AppendUint64(dst, r.Boot)
	var flags byte
	if r.Partial {
		flags = bitPartial
	}
	return appendEntries(dst, r.Entries, newStanding(r.Holders, 0, 0, flags), r.Strict)
}

// ParseReport reads what Report.Append wrote; ok is false for anything else.
func ParseReport(b []byte) (r Report, ok bool) {
	if len(b) < len(reportMagic)+16 || len(b) > MaxBytes || string(b[:4]) != reportMagic {
		return r, false
	}
	r.Told, r.Boot = binary.LittleEndian.Uint64(b[4:]), binary.LittleEndian.Uint64(b[12:])
	var e *Entry
	if r.Entries, e, ok = parseEntries(b[20:]); e != nil {
		var flags byte
		r.Holders, _, _, flags = e.numbers()
		r.Partial, r.Strict = flags&bitPartial != 0, true
	}
	return r, ok
}

// Append appends the answer's bytes to dst.
func (a Answer) Append(dst []byte) []byte {
	dst = append(dst, answerMagic...)
	dst = binary.LittleEndian.AppendUint32(dst, a.Edges)
	var flags byte
	if a.Members.Whole {
		flags = bitWhole
	}
	if a.Members.Settled {
		flags |= bitSettled
	}
	return appendEntries(dst, a.Entries, newStanding(a.Members.Edges, a.Members.Silent, a.Members.SilentHolders, flags), a.Members != Members{})
}

// ParseAnswer reads what Answer.Append wrote; ok is false for anything else.
func ParseAnswer(b []byte) (a Answer, ok bool) {
	if len(b) < len(answerMagic)+4 || len(b) > MaxBytes || string(b[:4]) != answerMagic {
		return a, false
	}
	a.Edges = binary.LittleEndian.Uint32(b[4:])
	var e *Entry
	if a.Entries, e, ok = parseEntries(b[8:]); e != nil {
		var flags byte
		m := &a.Members
		m.Edges, m.Silent, m.SilentHolders, flags = e.numbers()
		m.Whole, m.Settled = flags&bitWhole != 0, flags&bitSettled != 0
	}
	return a, ok
}

// appendEntries writes each entry as ID, newest second, burst, the number of
// slots up to the oldest that is not empty, and those, the newest first; last comes
// behind those of list, if it says anything.
func appendEntries(dst []byte, list []Entry, last Entry, says bool) []byte {
	for i := range list {
		if list[i].Hot {
			last.Slots[i/32%ratelimit.Seconds] |= 1 << (i % 32)
			says = true
		}
	}
	if n := len(list); says || n > 0 && list[n-1].ID[8] == standing {
		list = append(list[:n:n], last)
	}
	dst = binary.LittleEndian.AppendUint16(dst, uint16(len(list)))
	for i := range list {
		dst = appendEntry(dst, &list[i])
	}
	return dst
}

func appendEntry(dst []byte, e *Entry) []byte {
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
	return dst
}

// parseEntries reads what appendEntries writes; last is nil in a message of a release
// that wrote none.
func parseEntries(b []byte) (list []Entry, last *Entry, ok bool) {
	if len(b) < 2 {
		return nil, nil, false
	}
	n := int(binary.LittleEndian.Uint16(b))
	if n > maxListed || n*22 > len(b)-2 {
		return nil, nil, false
	}
	r := wire.NewReader(b[2:])
	list = make([]Entry, n)
	for i := range list {
		readEntry(&r, &list[i])
	}
	if list, last = cutStanding(list); last == nil {
		list = list[:min(n, MaxEntries)] // a release without had room for one more
	} else {
		for i := range list {
			list[i].Hot = last.Slots[i/32]>>(i%32)&1 == 1
		}
	}
	return list, last, r.Done()
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
