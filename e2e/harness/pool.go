package harness

import "sync"

// Pool keeps what takes long to start for the next who needs such a thing, one user at
// a time. Whoever gives something back has found it to be as it was; what is broken is
// ended instead. The zero Pool keeps nothing. Safe for concurrent use.
type Pool[T any] struct {
	// Most is how many wait for their next user.
	Most int

	mu   sync.Mutex
	idle []T
}

// Take returns one that was given back, which is the caller's now; false: there is none.
func (p *Pool[T]) Take() (v T, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.idle) == 0 {
		return v, false
	}
	last := len(p.idle) - 1
	v = p.idle[last]
	p.idle = p.idle[:last]
	return v, true
}

// Give keeps v for the next user; false: there are enough, and v is still the caller's.
func (p *Pool[T]) Give(v T) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.idle) >= p.Most {
		return false
	}
	p.idle = append(p.idle, v)
	return true
}

// Drain takes all that wait, for the caller to end.
func (p *Pool[T]) Drain() []T {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := p.idle
	p.idle = nil
	return all
}
