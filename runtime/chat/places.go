package chat

import (
	"sluice.dev/sluice/platform/limits/fairshare"
	"sluice.dev/sluice/runtime/access"
)

// placeBytes is how much of a request's body a place stands for: the body is
// held until its stream is over, so a long one takes several places.
const placeBytes = 64 << 10

// DefaultPlaces is how many places a handler has unless it is told.
const DefaultPlaces = 2048

// places are those that one request has taken.
type places struct {
	pool    *fairshare.Pool
	account string
	leave   []func()
}

// cover takes places until there are enough for a body of n bytes. It fails with
// rate_limit_exceeded when the account has its share, or none is free.
func (p *places) cover(n int) error {
	for len(p.leave) <= n/placeBytes {
		leave, ok := p.pool.TryEnter(p.account)
		if !ok {
			return access.Busy()
		}
		p.leave = append(p.leave, leave)
	}
	return nil
}

// free gives all back.
func (p *places) free() {
	for _, leave := range p.leave {
		leave()
	}
}
