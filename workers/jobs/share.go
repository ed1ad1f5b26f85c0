package jobs

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"sluice.dev/sluice/platform/limits/fairshare"
)

// share divides among accounts what this process does at once of a queue. Jobs of
// an account that has its share under way wait here for a moment, a bounded number
// of them; others are sent back to the queue with a time at which, at the account's
// present speed, their turn comes. So however many there are, each goes back about
// once for each maxTurn that it has to wait. Every call costs constant time.
type share struct {
	pool *fairshare.Pool
	each int // how many one account may have under way

	mu    sync.Mutex
	lines map[string]*line
	swept time.Time
}

// line is what is known of an account whose jobs were sent back.
type line struct {
	next    time.Time     // when the last of them comes back
	typical time.Duration // how long a job takes
	ended   time.Time     // when the last of them ended, or the line began
}

const (
	parkFor    = time.Second            // how long a job waits here
	minTurn    = 200 * time.Millisecond // least time before a job comes back
	maxTurn    = time.Minute            // most, also for an account whose receivers have recovered
	minGap     = 50 * time.Microsecond  // least time between two that come back
	firstGuess = 100 * time.Millisecond
)

// newShare divides places. As many jobs of one account as it may have under way may
// wait here: the queue's own limit should be places and half of them again.
func newShare(places int) *share {
	each := max(1, places/4)
	return &share{pool: fairshare.New(fairshare.Config{Places: places, Share: each, Waiting: each}), each: each, lines: map[string]*line{}}
}

// enter takes a place for a job of account; release gives it back. Without a place
// it returns how long the job is to be put off. Jobs whose account is not known,
// which releases of before have made, are not counted. A nil share divides nothing.
func (s *share) enter(ctx context.Context, account string) (release func(), wait time.Duration) {
	if s == nil || account == "" {
		return func() {}, 0
	}
	give, ok := s.pool.TryEnter(account)
	if !ok {
		ctx, cancel := context.WithTimeout(ctx, parkFor)
		defer cancel()
		var err error
		if give, err = s.pool.Enter(ctx, account); err != nil {
			return nil, s.turn(account, time.Now())
		}
	}
	return give, 0
}

// turn puts one more job at the end of the account's line and returns how long it
// has to wait. Those that would wait for longer than maxTurn come back earlier, at
// times of their own, and ask again.
func (s *share) turn(account string, now time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.takeTurn(account, now)
}

// takeTurn is turn. s.mu is held.
func (s *share) takeTurn(account string, now time.Time) time.Duration {
	s.sweep(now)
	l := s.lines[account]
	if l == nil {
		l = &line{typical: firstGuess}
		s.lines[account] = l
	}
	if l.next.Before(now) {
		l.ended = now
	}
	if first := now.Add(minTurn); l.next.Before(first) {
		l.next = first
	}
	if l.next.Sub(now) > maxTurn {
		return maxTurn/2 + rand.N(maxTurn/2)
	}
	takes := max(l.typical, now.Sub(l.ended)) // when none ends, those under way take at least as long as that
	l.next = l.next.Add(max(takes/time.Duration(s.each), minGap))
	return l.next.Sub(now)
}

// worthScheduling is the wait from which on a job is put into the queue for its
// turn: River looks about as often for jobs whose time has come.
const worthScheduling = 5 * time.Second

// Behind implements schedules.Turns.
func (s *share) Behind() (accounts []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	for account, l := range s.lines {
		if l.next.After(now) {
			accounts = append(accounts, account)
		}
	}
	return accounts
}

// Turn implements schedules.Turns.
func (s *share) Turn(account string) time.Duration {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.lines[account]; l == nil || l.next.Sub(now) < worthScheduling {
		return 0
	}
	return s.takeTurn(account, now)
}

// learn keeps how long jobs of an account with a line take: an average in which
// each counts for an eighth.
func (s *share) learn(account string, took time.Duration) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.lines[account]; l != nil {
		l.typical += (took - l.typical) / 8
		l.ended = time.Now()
	}
}

// sweep forgets lines in which nobody waits any more. s.mu is held.
func (s *share) sweep(now time.Time) {
	if now.Sub(s.swept) < maxTurn {
		return
	}
	s.swept = now
	for account, l := range s.lines {
		if l.next.Before(now.Add(-maxTurn)) {
			delete(s.lines, account)
		}
	}
}
