package sharedlimit

import "sluice.dev/sluice/filters/limits/ratelimit"

// Place is where a window lies in an edge's memory; see ratelimit.Place.
type Place = [ratelimit.PlaceKeyLen]byte

// Store is the memory that all workers of an edge share.
type Store interface {
	// Hot returns the places that workers have found hot since the last call.
	Hot() []Place
	// Share returns what this edge has counted in a place at now, in unix seconds; ok is
	// false when there is nothing.
	Share(p Place, now int64) (e Entry, ok bool)
	// SetOthers puts o behind the window of id, if need be a new one, and returns its
	// place.
	SetOthers(id ratelimit.ID, o ratelimit.Others) Place
	// SetFleet stores how many edges share limits and when they were last heard.
	SetFleet(s State)
	// SetShares stores what strict limits go by.
	SetShares(s Shares)
}

// State is what the workers know of the other edges.
type State struct {
	Edges uint32 // how many there are; 0: not known yet, as if this one were alone
	Heard int64  // when the control plane last answered, in unix milliseconds
}

// cutOffAfter is after how many milliseconds without an answer an edge is cut off.
const cutOffAfter = 2000

// Fleet is what s means for a request at a time in unix milliseconds.
func (s State) Fleet(millis int64) ratelimit.Fleet {
	return ratelimit.Fleet{Edges: s.Edges, Cut: s.Edges > 1 && millis-s.Heard > cutOffAfter, Millis: uint32(millis)}
}

// Edge is one edge's part of the exchange. Its memory is bounded by MaxEntries.
type Edge struct {
	Boot uint64 // tells this start from earlier ones

	hot   map[Place]int64 // last second at which each was found hot here
	asked []Place         // of windows that are hot elsewhere
	full  int64           // last second at which one found no room in hot
	heard map[ratelimit.ID]ratelimit.Others
	at    int64 // when heard was
	own   holding
}

// Report returns what to tell at a time in unix milliseconds.
func (e *Edge) Report(s Store, millis int64) Report {
	if e.hot == nil {
		e.hot = map[Place]int64{}
	}
	now := millis / 1000
	for _, p := range s.Hot() {
		e.addHot(p, now)
	}
	r := Report{Told: uint64(millis), Boot: e.Boot, Holders: e.own.holders, Strict: true, Partial: now-e.full < ratelimit.Seconds}
	for p, last := range e.hot {
		entry, ok := s.Share(p, now)
		if now-last >= ratelimit.Seconds || !ok {
			delete(e.hot, p)
			continue
		}
		entry.Hot = true
		r.Entries = append(r.Entries, entry)
	}
	e.tellAsked(s, &r, now)
	return r
}

func (e *Edge) addHot(p Place, now int64) {
	if _, known := e.hot[p]; known || len(e.hot) < MaxEntries {
		e.hot[p] = now
	} else {
		e.full = now
	}
}

// tellAsked adds the windows that are hot elsewhere and have requests here: each edge
// may have few of them, and all edges together many.
func (e *Edge) tellAsked(s Store, r *Report, now int64) {
	for _, p := range e.asked {
		_, told := e.hot[p]
		if entry, ok := s.Share(p, now); told || !ok || entry.Others.Slots == [ratelimit.Seconds]uint32{} {
			continue
		} else if len(r.Entries) == MaxEntries {
			r.Partial = true
			return
		} else {
			r.Entries = append(r.Entries, entry)
		}
	}
}

// ApplyAnswer takes the answer to a report made at told, which arrived at a time in unix
// milliseconds. A window that is hot elsewhere is told from here too, however few
// requests it has.
func (e *Edge) ApplyAnswer(s Store, a Answer, told, millis int64) {
	heard := make(map[ratelimit.ID]ratelimit.Others, len(a.Entries))
	e.asked = e.asked[:0]
	for _, entry := range a.Entries {
		o := entry.Others
		o.Millis = uint32(millis)
		o.Pace = estimatePace(e.heard[entry.ID], o, millis-e.at)
		heard[entry.ID] = o
		if p := s.SetOthers(entry.ID, o); entry.Hot {
			e.asked = append(e.asked, p)
		}
	}
	e.heard, e.at = heard, millis
	s.SetFleet(State{Edges: a.Edges, Heard: millis})
	m := a.Members
	e.own.hear(m.Edges, m.Settled && millis-told <= FreshMillis, millis)
	s.SetShares(Shares{Holders: e.own.holders, Silent: m.Silent, SilentHolders: m.SilentHolders, Whole: m.Whole && millis/1000-e.full >= ratelimit.Seconds, Told: told})
}

// SetKnownEdges takes how many edges there were from an agent that has heard of no
// replica. Until this start of the edge hears an answer it is cut off, not alone.
func (e *Edge) SetKnownEdges(s Store, edges uint32) {
	if e.at == 0 && edges > 0 {
		s.SetFleet(State{Edges: edges})
	}
}

// estimatePace estimates how fast the others let requests through: half as they did
// between two answers, half as was guessed before, since what one answer lacks
// the next one has.
func estimatePace(before, now ratelimit.Others, millis int64) uint32 {
	if millis <= 0 || millis > maxGap || before.Millis == 0 {
		return 0
	}
	grown := uint64(0)
	for s := before.Newest - 1; s <= now.Newest; s++ {
		if a, b := now.At(s), before.At(s); a > b {
			grown += uint64(a - b)
		}
	}
	return uint32((min(grown*1_000_000/uint64(millis), 1<<31) + uint64(before.Pace)) / 2)
}

// maxGap is between two answers the longest time, in milliseconds, that says
// something of a pace.
const maxGap = 1000
