// Package inflight bounds the bytes of request bodies that a process holds at once,
// and what one caller may have of them. Limits of single bodies do not: enough
// bodies below them, sent side by side, are more than there is memory.
//
// A byte counts from when it was read until the request has been answered, because
// handlers keep what they read, or what they made of it. One that passes a body on
// says so with [Stream], and counts for what it keeps. Each Read costs constant time
// more, and a request without a body nothing.
package inflight

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
)

// Why a body is refused.
var (
	// ErrFull says that the bodies of all callers are as much as there may be.
	ErrFull = errors.New("too many bytes of request bodies are in flight")
	// ErrShare says so of one caller's.
	ErrShare = errors.New("the caller has too many bytes of request bodies in flight")
	// ErrTooLarge says that the body alone is more than one caller may have.
	ErrTooLarge = errors.New("the request body is larger than one caller may have in flight")
)

// leastShare is the default share where a quarter would be less than the largest
// bodies that APIs take.
const leastShare = 16 << 20

// Config says how much there may be.
type Config struct {
	// Max bounds the bytes of all bodies together.
	Max int64
	// Share bounds those of one caller. Zero: a quarter, but 16 MiB where that is more
	// and Max is not less.
	Share int64
	// Refuse answers a request whose body was refused for one of the reasons above.
	Refuse func(w http.ResponseWriter, r *http.Request, why error)
}

// Pool counts the bytes of the bodies of one process. It is safe for concurrent use.
type Pool struct {
	cfg     Config
	mu      sync.Mutex
	bytes   int64
	callers map[string]int64 // those that have some
	refused int64
}

// New returns a Pool that holds nothing.
func New(c Config) *Pool {
	if c.Share <= 0 {
		c.Share = min(c.Max, max(c.Max/4, leastShare))
	}
	return &Pool{cfg: c, callers: map[string]int64{}}
}

// Bytes is how much is in flight.
func (p *Pool) Bytes() int64 { p.mu.Lock(); defer p.mu.Unlock(); return p.bytes }

// Refused is how many bodies were refused so far.
func (p *Pool) Refused() int64 { p.mu.Lock(); defer p.mu.Unlock(); return p.refused }

// Wrap counts the bodies of the requests that h answers. caller names who makes a
// request, and is asked once for each that has a body. A Read beyond a bound fails,
// and whatever h answers then is replaced by Config.Refuse, unless h has begun to
// answer before.
func (p *Pool) Wrap(h http.Handler, caller func(*http.Request) string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body == nil || r.Body == http.NoBody {
			h.ServeHTTP(w, r)
			return
		}
		b := &body{ReadCloser: r.Body, pool: p, caller: caller(r), length: r.ContentLength}
		inner := r.WithContext(context.WithValue(r.Context(), key{}, b))
		inner.Body = b
		defer func() {
			p.release(b)
			r.Pattern = inner.Pattern // which a router notes for who measures requests
		}()
		a := &answer{body: b, refuse: func() {
			w.Header().Del("Content-Length") // of the answer that is replaced
			p.cfg.Refuse(w, r, b.refused())
		}}
		h.ServeHTTP(a.wrap(w), inner)
		a.end()
	})
}

// Stream says that the handler of r passes its body on and keeps at most so many
// bytes of it at once. It must be called before the body is read, and does nothing
// for a request that is not counted.
func Stream(r *http.Request, keeps int64) {
	if b, ok := r.Context().Value(key{}).(*body); ok {
		b.pool.mu.Lock()
		defer b.pool.mu.Unlock()
		b.keeps = keeps
	}
}

// key is where a request's context has its body.
type key struct{}

// body is one that is counted.
type body struct {
	io.ReadCloser
	pool   *Pool
	caller string
	length int64 // that was announced; -1: none

	// These are the pool's to guard.
	bytes int64
	keeps int64 // bound of bytes, for a handler that passes them on; 0: none
	why   error // it was refused
	done  bool  // the request has been answered
}

func (b *body) Read(to []byte) (int, error) {
	if err := b.refused(); err != nil {
		return 0, err
	}
	n, err := b.ReadCloser.Read(to)
	if full := b.pool.charge(b, int64(n)); full != nil {
		return 0, full
	}
	return n, err
}

func (b *body) refused() error { b.pool.mu.Lock(); defer b.pool.mu.Unlock(); return b.why }

// charge counts n more bytes of b, or says why not.
func (p *Pool) charge(b *body, n int64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if b.keeps > 0 {
		n = min(n, b.keeps-b.bytes)
	}
	if b.done || n <= 0 { // a proxy may still read when it has been answered
		return nil
	}
	switch {
	case b.keeps == 0 && b.length > p.cfg.Share, b.bytes+n > p.cfg.Share:
		b.why = ErrTooLarge
	case p.callers[b.caller]+n > p.cfg.Share:
		b.why = ErrShare
	case p.bytes+n > p.cfg.Max:
		b.why = ErrFull
	default:
		b.bytes += n
		p.bytes += n
		p.callers[b.caller] += n
		return nil
	}
	p.refused++
	return b.why
}

// release takes b's bytes off: the request has been answered.
func (p *Pool) release(b *body) {
	p.mu.Lock()
	defer p.mu.Unlock()
	b.done = true
	if b.bytes == 0 {
		return
	}
	p.bytes -= b.bytes
	if p.callers[b.caller] -= b.bytes; p.callers[b.caller] == 0 {
		delete(p.callers, b.caller)
	}
}
