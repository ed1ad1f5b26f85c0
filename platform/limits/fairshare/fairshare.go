// Package fairshare divides a pool of places among accounts, so that one account
// that takes all it can get slows nobody else.
//
// An account holds at most its share of the places, whether or not others wait:
// places held for seconds could not be taken back for whoever comes next. Those
// who wait are served by account in turn, and each account's own in the order in
// which they came. Every call costs constant time, but for a release, which looks
// past at most Places/Share accounts that hold their share already.
package fairshare

import (
	"container/list"
	"context"
	"errors"
	"sync"
)

// ErrBusy says that an account waits for as many places as it may.
var ErrBusy = errors.New("the account has too much under way")

// Config says how a pool is divided.
type Config struct {
	// Places is how many may be held at once.
	Places int
	// Share is how many of them one account may hold. Zero: a quarter, at least one.
	Share int
	// Waiting is how many may wait for one account; more get ErrBusy. Zero: 4 × Share.
	Waiting int
}

// Pool is a number of places. It is safe for concurrent use.
type Pool struct {
	cfg      Config
	mu       sync.Mutex
	free     int
	accounts map[string]*account // that hold a place or wait for one
	turns    list.List           // of *account: those with somebody waiting
}

// account is what one account has of a pool.
type account struct {
	name    string
	held    int
	waiting list.List     // of chan struct{}: closed when the place is given
	turn    *list.Element // in Pool.turns; nil: nobody waits
}

// New returns a Pool with every place free.
func New(c Config) *Pool {
	if c.Share <= 0 {
		c.Share = max(1, c.Places/4)
	}
	if c.Waiting <= 0 {
		c.Waiting = 4 * c.Share
	}
	return &Pool{cfg: c, free: c.Places, accounts: map[string]*account{}}
}

// Enter waits for a place for the account called name. It fails with ErrBusy when
// too many wait for the account already, and with the context's error when that
// ends first. leave gives the place back; further calls of it do nothing.
func (p *Pool) Enter(ctx context.Context, name string) (leave func(), err error) {
	if err := ctx.Err(); err != nil { // nobody is there for whom a place would be
		return nil, err
	}
	p.mu.Lock()
	a := p.account(name)
	if p.free > 0 && a.held < p.cfg.Share { // nobody waits who could have it: places are given as they come free
		p.take(a)
		p.mu.Unlock()
		return p.leave(a), nil
	}
	if a.waiting.Len() >= p.cfg.Waiting {
		p.forget(a)
		p.mu.Unlock()
		return nil, ErrBusy
	}
	given := make(chan struct{})
	place := a.waiting.PushBack(given)
	if a.turn == nil {
		a.turn = p.turns.PushBack(a)
	}
	p.mu.Unlock()
	select {
	case <-given:
		return p.leave(a), nil
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-given: // at the same moment: it goes to the next
		p.giveBack(a)
	default:
		a.waiting.Remove(place)
		p.rest(a)
		p.forget(a)
	}
	return nil, ctx.Err()
}

// TryEnter is Enter for whoever does not wait: ok is false when there is no place
// for the account now.
func (p *Pool) TryEnter(name string) (leave func(), ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	a := p.account(name)
	if p.free == 0 || a.held >= p.cfg.Share {
		p.forget(a)
		return nil, false
	}
	p.take(a)
	return p.leave(a), true
}

// leave returns what gives a's place back once.
func (p *Pool) leave(a *account) func() {
	return sync.OnceFunc(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.giveBack(a)
	})
}

func (p *Pool) account(name string) *account {
	a := p.accounts[name]
	if a == nil {
		a = &account{name: name}
		p.accounts[name] = a
	}
	return a
}

func (p *Pool) take(a *account) {
	p.free--
	a.held++
}

// giveBack frees a place of a, and gives it to whoever waits and has not its share.
func (p *Pool) giveBack(a *account) {
	p.free++
	a.held--
	for e := p.turns.Front(); e != nil && p.free > 0; e = e.Next() {
		next := e.Value.(*account)
		if next.held >= p.cfg.Share {
			continue
		}
		p.take(next)
		close(next.waiting.Remove(next.waiting.Front()).(chan struct{}))
		p.turns.MoveToBack(e)
		p.rest(next)
		break
	}
	p.forget(a)
}

// rest takes a's turn away when nobody waits for it any more.
func (p *Pool) rest(a *account) {
	if a.waiting.Len() == 0 && a.turn != nil {
		p.turns.Remove(a.turn)
		a.turn = nil
	}
}

// forget drops an account that has nothing, so that the pool's memory is bounded
// by what is under way.
func (p *Pool) forget(a *account) {
	if a.held == 0 && a.waiting.Len() == 0 {
		delete(p.accounts, a.name)
	}
}
