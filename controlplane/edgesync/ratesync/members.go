package ratesync

import (
	"sluice.dev/sluice/filters/limits/ratelimit"
	"sluice.dev/sluice/filters/limits/sharedlimit"
)

// Times of strict limits, in milliseconds.
const (
	// settleFor is for how long an edge is known before it is given its first share: by then
	// all replicas know of it, and no answer that did not is still on its way.
	settleFor = 5000
	// currentFor is after what time without a word from Postgres a replica gives nobody
	// a first share, since others may have joined at another replica.
	currentFor = 2500
)

// alone as the time of the last reading says that there are no other replicas.
const alone = -1

// strictEdge is what strict limits need of an edge.
type strictEdge struct {
	holders uint32 // see sharedlimit.Report
	among   uint32 // how many edges there were when it last told that it has no share
	since   int64  // when its start was first heard of
	partial bool
}

// share is as how many edges' part of a limit e may use while nobody hears of it. It may
// have been given a share since it last told that it has none: then as one of as many
// edges as there were.
func (s strictEdge) share() uint32 {
	if s.holders > 0 {
		return s.holders
	}
	return max(1, s.among)
}

// silent reports whether e may have let through more than it has told.
func (e *edge) silent(now int64) bool {
	return e.strict.partial || now-e.seen > sharedlimit.FreshMillis || now-int64(e.told) > sharedlimit.FreshMillis+sharedlimit.SkewMillis
}

// ghost is the start of an edge that ended without saying what it counted last. It may
// have let its share through unheard: that is held back until it has left the window.
type ghost struct {
	share uint32 // see Shares.SilentHolders
	until int64
}

// maxGhosts bounds the ghosts of a table.
const maxGhosts = 10_000

// addGhost takes note of one that ended at a time, or before.
func (t *Table) addGhost(share uint32, ended int64) {
	if len(t.ghosts) == maxGhosts {
		t.lost = ended
		return
	}
	t.ghosts = append(t.ghosts, ghost{share, ended + window + sharedlimit.SkewMillis})
}

// TakeEnded puts in the last counts of the start of an edge that has ended, as another
// replica passed them on at ended.
func (t *Table) TakeEnded(r sharedlimit.Report, ended int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := &edge{left: true, seen: ended, windows: map[ratelimit.ID]ratelimit.Others{}}
	for i := range r.Entries {
		t.put(e, &r.Entries[i])
	}
	t.forget(e)
	if r.Holders > 0 {
		t.addGhost(r.Holders, ended)
	}
}

// count is how many edges may be serving.
func (t *Table) count() (n uint32) {
	for _, e := range t.edges {
		if !e.left {
			n++
		}
	}
	return n
}

// members is what the named edge is to hear of the edges that may be serving: all that
// have not been silent for so long that they are known dead, and have not said that they
// have ended.
func (t *Table) members(name string, now int64) sharedlimit.Members {
	m := sharedlimit.Members{Edges: t.count()}
	own := t.edges[name]
	m.Settled = own != nil && now-own.strict.since >= settleFor && len(t.ghosts) == 0 && (t.read == alone || now-t.read <= currentFor)
	m.Whole = t.read != 0 && own != nil && !own.silent(now) && now-t.lost > window
	for other, e := range t.edges {
		if other == name || e.left {
			continue
		}
		m.Settled = m.Settled && e.strict.share() >= m.Edges
		if e.silent(now) {
			hold(&m, e.strict.share())
		}
	}
	for _, g := range t.ghosts {
		hold(&m, g.share)
	}
	return m
}

// hold adds one more share that is held back.
func hold(m *sharedlimit.Members, share uint32) {
	if m.Silent++; m.SilentHolders == 0 || share < m.SilentHolders {
		m.SilentHolders = share
	}
}

// hasRead reports whether the table knows what other replicas knew when it began.
func (t *Table) hasRead() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.read != 0
}

// setRead notes that what other replicas know was read at now.
func (t *Table) setRead(now int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.read = now
}
