// Package refusals remembers for a moment who was refused for asking too much, so
// that whoever pays no attention and asks again at once is refused from memory, and
// costs the database nothing.
package refusals

import (
	"sync"
	"time"
)

// MaxKept bounds how many are remembered at once, in one Memory.
const MaxKept = 4096

// Memory remembers refusals. The zero value is ready; it is safe for concurrent use.
// Every call costs constant time, but for one that finds the memory full, which goes
// over all of it.
type Memory struct {
	mu   sync.Mutex
	kept map[string]refusal
}

type refusal struct {
	err   error
	until time.Time
	count int // how often it happened
	most  int // from how many on it is a refusal
}

// Keep remembers that key was refused with err, until the time given.
func (m *Memory) Keep(key string, err error, now, until time.Time) {
	m.Count(key, err, 1, now, until)
}

// Count notes something that is refused with err when it happens to key most times
// before until, which is that of the first time.
func (m *Memory) Count(key string, err error, most int, now, until time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r, ok := m.kept[key]; ok && now.Before(r.until) {
		r.err, r.count, r.most = err, r.count+1, most
		m.kept[key] = r
		return
	}
	if m.kept == nil {
		m.kept = map[string]refusal{}
	}
	if len(m.kept) >= MaxKept {
		for k, r := range m.kept {
			if !now.Before(r.until) {
				delete(m.kept, k)
			}
		}
		if len(m.kept) >= MaxKept {
			return // the others keep their places; key costs what it did before
		}
	}
	m.kept[key] = refusal{err, until, 1, most}
}

// Last returns the error with which key was refused, nil when that is forgotten.
func (m *Memory) Last(key string, now time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, ok := m.kept[key]
	if !ok {
		return nil
	}
	if !now.Before(r.until) {
		delete(m.kept, key)
		return nil
	}
	if r.count < r.most {
		return nil
	}
	return r.err
}
