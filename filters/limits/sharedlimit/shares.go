package sharedlimit

import (
	"encoding/binary"

	"sluice.dev/sluice/filters/limits/ratelimit"
)

// Limits of strict classes are safe by shares. Every edge has a share of each limit,
// which it may use up whatever it knows; the shares of all edges that may be serving
// are no more than the limit. What lies above its share an edge may use only while
// what it knows of all the others is fresh, and then what those that were not heard
// of might use by their shares is held back. So an edge that is cut off falls to its
// share by itself, and nobody uses that until LeaseMillis have ended it.

// Times of strict limits, in milliseconds.
const (
	// FreshMillis is for how long an edge uses an answer, from when it made the report
	// that was answered, and for how long after a report the control plane has an
	// edge as one that is heard of.
	FreshMillis = 500
	// SkewMillis is by how much clocks of edges and replicas may differ.
	SkewMillis = 500
	// LeaseMillis is for how long an edge has its share, from when it made the last
	// report that was answered. Then it has none.
	LeaseMillis = 10 * 60_000
	// DeadMillis is after which silence an edge is known to have let nothing through that
	// still counts: its lease has ended, and a window since.
	DeadMillis = LeaseMillis + 1000*ratelimit.Seconds + 5000
)

// ReadMillis is how often workers read anew what strict limits go by.
const ReadMillis = 100

// BoundSeconds is for how long at most edges let requests of a strict limit through of
// which others do not know: any 60 seconds hold the limit at most and what is offered to
// the fleet in as many seconds. It is the sum of the age of what the control plane has
// of an edge (FreshMillis, and SkewMillis because it is the edge's clock that says so), of
// an answer (FreshMillis), of the difference of two clocks, and of the second to which
// windows are exact.
const BoundSeconds = (2*FreshMillis + 2*SkewMillis + 1000) / 1000.0

// Shares is what an edge knows of the shares in a fleet. The zero Shares lets nothing
// through.
type Shares struct {
	Holders       uint32 // the edge's own share of a limit is 1 of Holders; 0: it has none
	Silent        uint32 // edges that were not heard of lately and are not known to be dead
	SilentHolders uint32 // each of their shares is at most 1 of SilentHolders
	Whole         bool   // the counts of all other edges have been heard
	Told          int64  // when the report was made that was answered with this, in unix milliseconds
}

// Among is what an edge may use of the strict limit l at a time in unix milliseconds.
// What the others have counted, as far as it is known, counts against it.
func (s Shares) Among(l ratelimit.Limit, millis int64) ratelimit.Limit {
	age := millis - s.Told
	switch {
	case age < -SkewMillis || age > LeaseMillis: // the clock was set back, or the lease has ended
		return ratelimit.Limit{}
	case s.Whole && age <= FreshMillis:
		return ratelimit.Limit{PerMinute: rest(l.PerMinute, s), Burst: rest(l.Burst, s)}
	case s.Holders == 0:
		return ratelimit.Limit{}
	}
	return ratelimit.Limit{PerMinute: l.PerMinute / s.Holders, Burst: l.Burst / s.Holders}
}

// rest is n without the shares of the silent.
func rest(n uint32, s Shares) uint32 {
	held := uint64(s.Silent) * uint64(n/max(1, s.SilentHolders))
	return n - uint32(min(uint64(n), held))
}

// sharesSize is the length of a Shares in bytes.
const sharesSize = 21

// Append appends the bytes of s to dst.
func (s Shares) Append(dst []byte) []byte {
	for _, n := range []uint32{s.Holders, s.Silent, s.SilentHolders} {
		dst = binary.LittleEndian.AppendUint32(dst, n)
	}
	dst = binary.LittleEndian.AppendUint64(dst, uint64(s.Told))
	if s.Whole {
		return append(dst, 1)
	}
	return append(dst, 0)
}

// ParseShares reads what Append wrote; the zero Shares for anything else.
func ParseShares(b []byte) Shares {
	if len(b) != sharesSize {
		return Shares{}
	}
	u32 := binary.LittleEndian.Uint32
	return Shares{u32(b), u32(b[4:]), u32(b[8:]), b[20] == 1, int64(binary.LittleEndian.Uint64(b[12:]))}
}

// holding is how an edge's own share becomes larger and smaller. Others hear of it in
// every report.
type holding struct {
	holders uint32
	until   int64 // when as many edges were last heard of, and how long that keeps the share small
}

// hear takes how many edges there are, and whether all others have told that they hold
// no more than as many allow, by an answer that is fresh. A share becomes smaller at once, and larger only after so
// few have been heard of that any other with a share is dead.
func (h *holding) hear(edges uint32, settled bool, millis int64) {
	if edges == 0 || h.holders == 0 && !settled {
		return
	}
	if edges >= h.holders || millis > h.until {
		h.holders, h.until = edges, millis+DeadMillis
	}
}

// standing is the entry in which a message says what goes beyond counts. An edge or
// a replica of a release that knows none takes it for a window without requests.
const standing = 'n'

// Bits of its tenth byte.
const (
	bitWhole   = 1 // of an answer: Shares.Whole
	bitSettled = 2 // of an answer: see holding.hear
	bitPartial = 1 // of a report: see Report.Partial
)

func newStanding(first, second, third uint32, flags byte) (e Entry) {
	binary.LittleEndian.PutUint32(e.ID[:], first)
	binary.LittleEndian.PutUint32(e.ID[4:], second)
	e.ID[8], e.ID[9] = standing, flags
	binary.LittleEndian.PutUint32(e.ID[10:], third)
	e.Newest = ratelimit.Seconds // long ago
	return e
}

// numbers are what newStanding was given.
func (e *Entry) numbers() (first, second, third uint32, flags byte) {
	return binary.LittleEndian.Uint32(e.ID[:]), binary.LittleEndian.Uint32(e.ID[4:]), binary.LittleEndian.Uint32(e.ID[10:]), e.ID[9]
}

// cutStanding takes the standing out of a message's entries, where it is the last.
func cutStanding(list []Entry) ([]Entry, *Entry) {
	if n := len(list) - 1; n >= 0 && list[n].ID[8] == standing {
		return list[:n], &list[n]
	}
	return list, nil
}
