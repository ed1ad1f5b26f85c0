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

// passedFor is after what time without an exchange with Postgres a replica lets edges use
// no more than their shares: what they used beside would be lost with this replica.
const passedFor = 1500

// alone as the time of the last reading says that there are no other replicas.
const alone = -1

// strictEdge is what strict limits need of an edge.
type strictEdge struct {
	holders uint32 // see sharedlimit.Report
	among   uint32 // how many edges there were when it last told that it has no share
	since   int64  // when its start was first heard of
	partial bool
	held    uint32 // what its last start may have let through untold; see edge.untold
	unheard uint64 // an earlier start, of which was first heard when it had ended
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

// untold is of how many holders' shares e, which ends, may have let one through of which
// it has not told. One that was heard of until its end told of all windows but
// those that no edge had found hot: of each, less than half of its share.
func (e *edge) untold(now int64) uint32 {
	if e.silent(now) {
		return e.strict.share()
	}
	return 2 * e.strict.share()
}

// ghost is the start of an edge that has ended. What it may have let through untold is
// held back until it has left the window.
type ghost struct {
	share uint32 // see edge.untold
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
	t.takeEnded(r, r.Holders, ended)
}

// takeEnded is TakeEnded of a start that may have let through a share of so many holders
// besides; 0: nothing.
func (t *Table) takeEnded(r sharedlimit.Report, holders uint32, ended int64) {
	e := &edge{left: true, seen: ended, windows: map[ratelimit.ID]ratelimit.Others{}}
	for i := range r.Entries {
		t.put(e, &r.Entries[i])
	}
	t.forget(e)
	if holders > 0 {
		t.addGhost(holders, ended)
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
	m.Whole = t.passes(now) && own != nil && !own.silent(now) && now-t.lost > window
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

// passes reports whether what this replica hears is at others, or in Postgres for those
// that start later, and what they heard here.
func (t *Table) passes(now int64) bool {
	return t.read == alone || t.read != 0 && now-t.read <= passedFor
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
