package counter

import (
	"sluice.dev/sluice/filters/limits/ratelimit"
	"sluice.dev/sluice/filters/limits/sharedlimit"
)

// memory is what a worker wrote last in some windows, so that it can count on
// without reading them: what Envoy hands to a VM costs it four times as much as what a
// VM hands to Envoy.
//
// A worker is not told which version its write was given. It takes next for it:
// one more than the last version that it knows somebody was given. That may be
// too low, if others have written since, but never too high. So when a
// window's version is the one remembered, it is that of the worker's own write,
// nobody has written since, and what is there is what is remembered. In all
// other cases the store refuses, and the window is read as ever.
//
// It is right where one worker writes most of what is written, and costs a refused
// write where it is wrong. hitScore keeps count, and stops the guessing.
type memory struct {
	entries  [entries]entry
	next     uint32 // 0: none is known
	hitScore int
}

// entries is how many windows fit. Each has one place, by its id.
const entries = 32

// maxHitScore bounds hitScore either way. A worker guesses from 0 on.
const maxHitScore = 4

type entry struct {
	id      ratelimit.ID
	at      sharedlimit.Place
	version uint32 // 0: nothing is remembered
	second  int64  // of the write
	size    int
	value   [ratelimit.MaxSize]byte
}

// window is the entry's window; changes of it are the entry's.
func (e *entry) window() ratelimit.Window { return e.value[:e.size] }

func (m *memory) entry(id ratelimit.ID) *entry {
	h := ratelimit.Place(0, id, 0)
	return &m.entries[h[3]%entries]
}

// recall returns the window of id; nil when it must be read. Versions come round
// after 2^32 writes, which take longer than what is remembered is used for.
func (m *memory) recall(id ratelimit.ID, now int64) *entry {
	e := m.entry(id)
	if m.hitScore < 0 || e.version == 0 || e.id != id || now-e.second >= ratelimit.Seconds || now < e.second {
		return nil
	}
	return e
}

// remember remembers a window that was written. One that had not been read is the
// entry's own, and was guessed right.
func (m *memory) remember(id ratelimit.ID, at sharedlimit.Place, w ratelimit.Window, now int64, read bool) {
	e := m.entry(id)
	if read {
		e.id, e.at, e.size = id, at, copy(e.value[:], w)
	} else {
		m.addScore(1)
	}
	e.version, e.second = m.next, now
	if m.next != 0 {
		m.advance(m.next)
	}
}

// observeVersion learns from a version that was read, 0 if nothing is there, and whether a
// guess would have been right.
func (m *memory) observeVersion(id ratelimit.ID, version uint32) {
	if e := m.entry(id); e.id == id && e.version != 0 && m.hitScore < 0 {
		if e.version == version {
			m.addScore(1)
		} else {
			m.addScore(-1)
		}
	}
	if version != 0 && (m.next == 0 || int32(version-m.next) >= 0) {
		m.advance(version)
	}
}

// advance sets next behind a version that was given. 0 is none.
func (m *memory) advance(given uint32) {
	if m.next = given + 1; m.next == 0 {
		m.next = 1
	}
}

// miss says that the window of id was not as remembered.
func (m *memory) miss(id ratelimit.ID) {
	m.addScore(-1)
	m.forget(id)
}

func (m *memory) forget(id ratelimit.ID) {
	if e := m.entry(id); e.id == id {
		e.version = 0
	}
}

func (m *memory) addScore(by int) { m.hitScore = max(-maxHitScore, min(maxHitScore, m.hitScore+by)) }
