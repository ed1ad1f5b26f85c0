package connections

import (
	"sluice.dev/sluice/filters/limits/ratelimit"
	"sluice.dev/sluice/filters/limits/sharedlimit"
)

// Store is where records are, as in package counter.
type Store interface {
	// Get reads a place; nil and 0: nothing is there.
	Get(p sharedlimit.Place) (r Record, version uint32)
	// Set writes r to a place if its version is the one given; absent: if it is empty.
	Set(p sharedlimit.Place, r Record, version uint32) bool
}

// Absent is the version of an empty place; see package counter.
const Absent = 1 << 31

// maxTries bounds how often one of several workers competes for one record.
const maxTries = 16

// Holder is what one worker has open. Make it with New.
type Holder struct {
	worker uint32
	held   map[ratelimit.ID]hold
}

// hold is what a worker has open of one ID.
type hold struct {
	open uint32
	hot  bool // the other edges hear of it
}

// New returns a holder with nothing open. No two workers that run at once have the same
// number, nor one that takes the place of another.
func New(worker uint32) *Holder { return &Holder{worker, map[ratelimit.ID]hold{}} }

// Take takes a place for one more connection of id, of which limit may be open in the
// fleet f, at millis in unix milliseconds; hot says where it is when the other edges should
// hear of it. It reports false when there is none: all are taken, or this edge has taken
// its part of those that were free within the last moment, in which it cannot know what
// others have taken. When other workers win each time it reports false as well.
//
// Edges that hear of each other within half a spell have at most limit open together, an eighth of
// it that they need not tell, and one more for each; the README of the filters says why. An
// edge that is cut off has its share: limit by the number of edges, or one.
func (h *Holder) Take(s Store, id ratelimit.ID, limit uint32, f ratelimit.Fleet, millis int64) (ok bool, hot *sharedlimit.Place) {
	now := millis / 1000
	limit = f.Among(ratelimit.Limit{PerMinute: limit}).PerMinute
	for range maxTries {
		at, r, version := probe(s, id, now)
		open, others := r.open(now), uint32(0)
		if !f.Cut {
			others = r.others(now)
		}
		if uint64(open)+uint64(others) >= uint64(limit) {
			return false, nil
		}
		if f.Edges > 1 && !f.Cut {
			recent := r.recent(millis)
			free := limit - others - (open - min(open, recent))
			if recent >= (free+f.Edges-1)/f.Edges {
				return false, nil
			}
		}
		r.opened(millis)
		mine := h.held[id]
		mine.open++
		if !s.Set(at, r.hold(h.worker, mine.open, now), version) {
			continue
		}
		if f.Edges > 1 && !mine.hot && uint64(open+1)*hotPart*uint64(f.Edges) >= uint64(limit) {
			mine.hot, hot = true, &at
		}
		h.held[id] = mine
		return true, hot
	}
	return false, nil
}

// hotPart is the part of a limit that edges which have not told of theirs may have open
// together.
const hotPart = 8

// Release gives a place of id back. The count in this worker is what holds: should the
// record not take it now, Renew writes it.
func (h *Holder) Release(s Store, id ratelimit.ID, millis int64) {
	mine := h.held[id]
	if mine.open <= 1 {
		delete(h.held, id)
		h.write(s, id, 0, millis/1000)
		return
	}
	mine.open--
	h.held[id] = mine
	h.write(s, id, mine.open, millis/1000)
}

// Renew says again what this worker has open, every RenewEvery seconds. hot is called with
// the places whose counts the other edges should go on to hear.
func (h *Holder) Renew(s Store, millis int64, hot func(sharedlimit.Place)) {
	for id, mine := range h.held {
		if at, ok := h.write(s, id, mine.open, millis/1000); ok && mine.hot {
			hot(at)
		}
	}
}

// write notes what this worker has open of id.
func (h *Holder) write(s Store, id ratelimit.ID, n uint32, now int64) (at sharedlimit.Place, ok bool) {
	for range maxTries {
		at, r, version := probe(s, id, now)
		if n == 0 && version == Absent {
			return at, false
		}
		if s.Set(at, r.hold(h.worker, n, now), version) {
			return at, true
		}
	}
	return at, false
}

// SetOthers notes what the other edges have open of id at now, in unix seconds.
func SetOthers(s Store, id ratelimit.ID, o ratelimit.Others, now int64) (at sharedlimit.Place) {
	n := latest(o)
	for range maxTries {
		var r Record
		var version uint32
		at, r, version = probe(s, id, now)
		r.put(atOthers, n)
		r.put(atHeard, uint32(now))
		if s.Set(at, r, version) {
			break
		}
	}
	return at
}

// Share is what this edge has open, for the other edges: a number of now in the form of a
// window, in which replicas add up what edges say of the same second.
func (r Record) Share(now int64) ratelimit.Others {
	o := ratelimit.Others{Newest: now}
	o.Slots[now%ratelimit.Seconds] = r.open(now)
	return o
}

// Get returns the record in a place; nil: none.
func Get(s Store, p sharedlimit.Place) Record {
	if r, _ := s.Get(p); r.whole() {
		return r
	}
	return nil
}

// latest is the number in o: the largest of its last seconds, since not all edges have spoken in
// the newest one.
func latest(o ratelimit.Others) (n uint32) {
	for back := range int64(said) {
		n = max(n, o.At(o.Newest-back))
	}
	return n
}

// said is in how many seconds each edge that is there has said what it has open.
const said = 3

// probe reads the record of id, or finds the best place for a new one.
func probe(s Store, id ratelimit.ID, now int64) (at sharedlimit.Place, r Record, version uint32) {
	least, found := ^uint32(0), false
	for n := range ratelimit.Probes {
		place := ratelimit.Place(Kind, id, n)
		got, v := s.Get(place)
		if got.is(id) {
			return place, got, v
		}
		held := uint32(0)
		if !got.free(now) {
			held = got.open(now) + 1
		}
		if v == 0 {
			v = Absent
		}
		if !found || held < least {
			at, version, least, found = place, v, held, true
		}
	}
	return at, newRecord(id), version
}
