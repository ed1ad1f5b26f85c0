package keytable

import (
	"encoding/hex"
	"strconv"
)

// Store is where an edge keeps buckets and its state: Envoy's shared data.
type Store interface {
	// Bucket returns the bytes of bucket n; nil when it has none.
	Bucket(n uint32) []byte
	// SetBucket replaces the bytes of bucket n.
	SetBucket(n uint32, b []byte)
}

// Query is what an edge in state s asks the feed for; wait is how many seconds
// the feed may hold the answer back until there is something new.
func (s State) Query(wait int) string {
	q := "epoch=" + strconv.FormatUint(s.Epoch, 10) + "&position=" + strconv.FormatUint(s.Position, 10)
	if s.Loading {
		return q + "&cursor=" + hex.EncodeToString(s.Cursor[:])
	}
	return q + "&wait=" + strconv.Itoa(wait)
}

// Apply puts page p into the store and returns the state after it. It may be cut
// off at any point and run again with the same page: each record is set to what
// it is now, and the state moves only when the whole page is in.
//
// A snapshot page takes time linear in its records and buckets. A delta page
// copies a bucket for each of its records; tags are hashes, so buckets stay
// short.
func (s State) Apply(p Page, store Store) State {
	if p.Snapshot {
		replaceRange(p, store)
		return s.After(p)
	}
	for r := p.Records; len(r) > 0; r = r[RecordSize:] {
		n := Tag(r[:16]).Bucket()
		store.SetBucket(n, Apply(store.Bucket(n), r[:RecordSize]))
	}
	return s.After(p)
}

// After is the state of who was in state s and has taken page p.
func (s State) After(p Page) State {
	if p.Snapshot {
		return State{Epoch: p.Epoch, Position: p.Position, Cursor: p.Cursor, Ready: s.Ready || p.Last, Loading: !p.Last}
	}
	return State{Epoch: p.Epoch, Position: p.Position, Ready: s.Ready}
}

// replaceRange makes the buckets of p's range hold what p says and nothing else.
func replaceRange(p Page, store Store) {
	rest := p.Records
	for n := p.Lo; n <= p.Hi; n++ {
		size := 0
		for size < len(rest) && Tag(rest[size:size+16]).Bucket() <= n {
			size += RecordSize
		}
		if size > 0 || len(store.Bucket(n)) > 0 {
			store.SetBucket(n, rest[:size])
		}
		rest = rest[size:]
	}
}
