// Package counter counts requests in rate-limit windows that the workers of an edge
// share.
//
// They take turns by compare-and-swap: a window is written with the version that
// it had when it was read, and whoever finds another version there reads again.
package counter

import (
	"slices"

	"sluice.dev/sluice/filters/limits/ratelimit"
	"sluice.dev/sluice/filters/limits/sharedlimit"
)

// Store is where the windows are. Each write of any value gives it a version
// higher than all before, by serial arithmetic, but never 0.
type Store interface {
	// Get reads a place; nil and 0: nothing is there. What it returns stays until
	// the next call.
	Get(p sharedlimit.Place) (value ratelimit.Window, version uint32)
	// Set writes w to a place if its version is the one given, or it is empty;
	// version 0: in any case.
	Set(p sharedlimit.Place, w ratelimit.Window, version uint32) bool
}

// casAbsent is the version with which a window is put where nothing is, so that it is
// not written over another's that came first: no write has it but one in 2^32.
const casAbsent = 1 << 31

// maxTries bounds how often one of several workers competes for one window.
const maxTries = 16

// Counter is one worker's. The zero Counter is ready.
type Counter struct{ recent memory }

// Take counts one request in the window of id; see ratelimit.Window.TakeAmong.
// hot is the place of a window that the other edges should hear of. When other
// workers win each time it writes over their count: one request too few is
// counted, where waiting on would hold up this worker.
func (c *Counter) Take(s Store, k ratelimit.Kind, id ratelimit.ID, l ratelimit.Limit, f ratelimit.Fleet, now int64) (r ratelimit.Result, hot sharedlimit.Place, isHot bool) {
	for try := range maxTries {
		at, w, version, read := c.find(s, k, id, now)
		if r = w.TakeAmong(l, f, now); !r.OK {
			if read {
				return r, hot, false // nothing changed that matters
			}
			c.recent.forget(id) // it may have been given back, or lost its place
			continue
		}
		isHot = w.Hot(l, f, now)
		if put(s, at, w, version) || try == maxTries-1 && s.Set(at, w, 0) {
			c.recent.remember(id, at, w, now, read)
			return r, at, isHot
		}
		if !read {
			c.recent.miss(id)
		}
	}
	return r, hot, false
}

// Look is what Take would return for a request in the window of id. It counts
// none.
func Look(s Store, k ratelimit.Kind, id ratelimit.ID, l ratelimit.Limit, f ratelimit.Fleet, now int64) ratelimit.Result {
	_, w, _ := probe(s, k, id, now)
	return slices.Clone(w).TakeAmong(l, f, now)
}

// GiveBack takes back what has just been counted in the window of id.
func (c *Counter) GiveBack(s Store, k ratelimit.Kind, id ratelimit.ID, now int64) {
	c.recent.forget(id)
	for range maxTries {
		at, w, version := probe(s, k, id, now)
		if w.Total() == 0 { // it lost its place meanwhile
			return
		}
		w.GiveBack()
		if put(s, at, w, version) {
			return
		}
	}
}

// SetOthers puts what other edges have counted behind the window of id, and returns its
// place.
func SetOthers(s Store, id ratelimit.ID, o ratelimit.Others) (at sharedlimit.Place) {
	for range maxTries {
		place, w, version := probe(s, ratelimit.KindOf(id), id, o.Newest)
		if at = place; put(s, at, w.WithOthers(o), version) {
			break
		}
	}
	return at
}

// find returns the window of id, from memory or read.
func (c *Counter) find(s Store, k ratelimit.Kind, id ratelimit.ID, now int64) (at sharedlimit.Place, w ratelimit.Window, version uint32, read bool) {
	if m := c.recent.recall(id, now); m != nil {
		return m.at, m.window(), m.version, false
	}
	at, w, version = probe(s, k, id, now)
	c.recent.observeVersion(id, version)
	return at, w, version, true
}

// probe reads the window of id, or finds the best place for a new one.
func probe(s Store, k ratelimit.Kind, id ratelimit.ID, now int64) (at sharedlimit.Place, w ratelimit.Window, version uint32) {
	least := ^uint32(0)
	for n := range ratelimit.Probes {
		place := ratelimit.Place(k, id, n)
		got, v := s.Get(place)
		if got.Is(id) {
			return place, got, v
		}
		if got.Free(now) {
			return place, ratelimit.New(id), v
		}
		if got.Total() < least {
			at, version, least = place, v, got.Total()
		}
	}
	return at, ratelimit.New(id), version
}

// put writes a window to the place where version was.
func put(s Store, at sharedlimit.Place, w ratelimit.Window, version uint32) bool {
	if version == 0 {
		version = casAbsent
	}
	return s.Set(at, w, version)
}
