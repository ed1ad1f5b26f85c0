// Package connections counts what accounts have open at once: WebSocket connections and
// other streams that last. The workers of an edge share the counts, and the edges of a
// fleet tell each other theirs.
//
// A place is held by the worker that serves the connection, and by nothing else: each worker
// knows what it has open, writes that down for the others to see, and says so again every
// few seconds. What is not said again is free. So whatever ends without a word, a
// connection, a worker or an edge, takes no place for longer than Lease.
package connections

import (
	"encoding/binary"

	"sluice.dev/sluice/filters/limits/ratelimit"
)

// Kind begins the keys of places in shared data.
const Kind ratelimit.Kind = 's'

// Times, in seconds.
const (
	// Lease is for how long a worker's word holds.
	Lease = 10
	// RenewEvery is how often a worker says what it has open.
	RenewEvery = 3
	// heard is for how long what other edges had open counts.
	heard = 60
)

// AccountID is whose places those of an account in a rate class are.
func AccountID(account uint64, class uint8) (id ratelimit.ID) {
	binary.LittleEndian.PutUint64(id[:], account)
	id[8], id[9] = 'o', class
	return id
}

// KeyID is whose places those of an API key in a rate class are.
func KeyID(key uint64, class uint8) (id ratelimit.ID) {
	binary.LittleEndian.PutUint64(id[:], key)
	id[8], id[9] = 'q', class
	return id
}

// IsID reports whether id is one of this package's.
func IsID(id ratelimit.ID) bool { return id[8] == 'o' || id[8] == 'q' }

// Layout of a record: ID, what the other edges had open and when that was heard; a spell of
// time, and how many this edge has opened in it and in the one before; behind them, for each
// worker with any open, its number, how many those are, and until when that holds.
const (
	atOthers = 16
	atHeard  = 20
	atSpell  = 24
	atRecent = 28
	atBefore = 32
	head     = 36
	perHold  = 12
)

// MaxWorkers bounds the workers in a record.
const MaxWorkers = 256

// Record is what is known of one ID. Nil is one of nobody, which must not be written.
type Record []byte

// newRecord returns a record of id with nothing open.
func newRecord(id ratelimit.ID) Record {
	r := make(Record, head, head+2*perHold)
	copy(r, id[:])
	return r
}

// whole reports whether r has the size of a record.
func (r Record) whole() bool {
	return len(r) >= head && (len(r)-head)%perHold == 0 && len(r) <= head+perHold*MaxWorkers
}

// is reports whether r is a record of id.
func (r Record) is(id ratelimit.ID) bool { return r.whole() && ratelimit.ID(r[:16]) == id }

// ID is whose record r is.
func (r Record) ID() ratelimit.ID { return ratelimit.ID(r[:16]) }

// free reports whether nothing in r counts at now, in unix seconds.
func (r Record) free(now int64) bool { return !r.whole() || r.open(now) == 0 && r.others(now) == 0 }

// open is how many connections the workers of this edge have open.
func (r Record) open(now int64) (n uint32) {
	for at := head; at < len(r); at += perHold {
		if int64(r.u32(at+8)) > now {
			n += r.u32(at + 4)
		}
	}
	return n
}

// others is how many the other edges have, as far as this one has heard.
func (r Record) others(now int64) uint32 {
	if ago := now - int64(r.u32(atHeard)); ago >= heard || ago < -heard {
		return 0
	}
	return r.u32(atOthers)
}

// hold notes that a worker has n open, and drops what has run out.
func (r Record) hold(worker, n uint32, now int64) Record {
	out := r[:head]
	for at := head; at < len(r); at += perHold {
		if r.u32(at) != worker && int64(r.u32(at+8)) > now {
			out = append(out, r[at:at+perHold]...)
		}
	}
	if n > 0 && len(out) < head+perHold*MaxWorkers {
		out = binary.LittleEndian.AppendUint32(out, worker)
		out = binary.LittleEndian.AppendUint32(out, n)
		out = binary.LittleEndian.AppendUint32(out, uint32(now+Lease))
	}
	return out
}

// recent is how many this edge has opened in the last spell and before it in another, at
// a time in unix milliseconds.
func (r Record) recent(millis int64) uint32 {
	r.turn(millis)
	return r.u32(atRecent) + r.u32(atBefore)
}

// opened counts one.
func (r Record) opened(millis int64) {
	r.turn(millis)
	r.put(atRecent, r.u32(atRecent)+1)
}

// turn begins a new spell when the one at hand has ended.
func (r Record) turn(millis int64) {
	now := uint32(millis / spell)
	switch r.u32(atSpell) {
	case now:
		return
	case now - 1:
		r.put(atBefore, r.u32(atRecent))
	default:
		r.put(atBefore, 0)
	}
	r.put(atSpell, now)
	r.put(atRecent, 0)
}

// spell is for how long openings count as recent at least, and twice as long at most, in
// milliseconds. Edges hear of each other several times in it.
const spell = 1000

func (r Record) u32(at int) uint32    { return binary.LittleEndian.Uint32(r[at:]) }
func (r Record) put(at int, v uint32) { binary.LittleEndian.PutUint32(r[at:], v) }
