package relay

import (
	"context"
	"encoding/binary"
	"math"
	"path/filepath"
	"sync"
	"time"

	"sluice.dev/sluice/platform/process/pause"
)

// maxClockSkew is how far ahead of the clock a saved time may be: more means
// that the clock was set back, and that the age of the state is not known.
const maxClockSkew = 5 * time.Minute

// saveEvery is how often the time of the last confirmation is written.
const saveEvery = 10 * time.Second

// staleness knows when replicas last confirmed what this edge holds: both the
// configuration, by an open stream, and the keys, by an answer of the feed.
type staleness struct {
	cfg  Config
	file string

	mu           sync.Mutex
	streams      int       // to replicas, open now
	config       time.Time // end of the last such stream; zero: never
	keys         time.Time // last answer of the feed; zero: never
	expiry       chan struct{}
	expiryClosed bool
	saved        time.Time // the confirmation that is on disk
}

// newStaleness reads the time of the last confirmation.
func newStaleness(c Config) *staleness {
	a := &staleness{cfg: c, file: filepath.Join(c.Dir, "confirmed.state"), expiry: make(chan struct{})}
	raw, err := readSealed(a.file)
	if err != nil || (raw != nil && len(raw) != 8) {
		c.Log.Error("the age of the saved state is not known: it is not used", "file", a.file, "cause", err)
		return a
	}
	if raw != nil {
		at := time.Unix(0, int64(binary.LittleEndian.Uint64(raw)))
		a.config, a.keys, a.saved = at, at, at
	}
	return a
}

// connected notes that a replica serves a stream.
func (a *staleness) connected() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.streams++
}

// disconnected notes the end of such a stream.
func (a *staleness) disconnected() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.streams--
	a.config = a.cfg.Now()
}

// answered notes that the feed has answered.
func (a *staleness) answered() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.keys = a.cfg.Now()
}

// confirmed is the earlier of the two confirmations; zero: one is missing.
func (a *staleness) confirmed() time.Time {
	config := a.config
	if a.streams > 0 {
		config = a.cfg.Now()
	}
	if config.IsZero() || a.keys.IsZero() {
		return time.Time{}
	}
	if a.keys.Before(config) {
		return a.keys
	}
	return config
}

// age is the age of the state. A state that is not known, or of the future, is
// older than any limit.
func (a *staleness) age() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.ageLocked()
}

func (a *staleness) ageLocked() time.Duration {
	at := a.confirmed()
	d := a.cfg.Now().Sub(at)
	if at.IsZero() || d < -maxClockSkew {
		return math.MaxInt64
	}
	return max(0, d)
}

// known reports whether there is a state at all.
func (a *staleness) known() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return !a.confirmed().IsZero()
}

// fresh reports whether a replica confirms the state now: the feed answers at
// least every few seconds.
func (a *staleness) fresh() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.streams > 0 && a.cfg.Now().Sub(a.keys) < feedTimeout
}

// usable reports whether keys may be served: the feed answers, or the state is
// not too old.
func (a *staleness) usable() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return !a.keys.IsZero() && a.cfg.Now().Sub(a.keys) < feedTimeout || a.ageLocked() <= a.cfg.MaxAge
}

// tooOld reports whether the state must not be served from.
func (a *staleness) tooOld() bool { return a.age() > a.cfg.MaxAge }

// expired returns a channel that closes when the state becomes too old. When it is
// confirmed again there is a new one.
func (a *staleness) expired() <-chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.expiry
}

// run watches the age, and writes the time of the last confirmation, until ctx
// ends.
func (a *staleness) run(ctx context.Context) {
	every := min(time.Second, max(time.Millisecond, a.cfg.MaxAge/20))
	for pause.For(ctx, every) {
		a.updateExpiry()
		a.save(min(saveEvery, a.cfg.MaxAge/10))
	}
	a.save(0)
}

// updateExpiry closes or renews expiry.
func (a *staleness) updateExpiry() {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch old := !a.confirmed().IsZero() && a.ageLocked() > a.cfg.MaxAge; {
	case old && !a.expiryClosed:
		a.cfg.Log.Error("no replica has answered for too long: the edge stops serving", "most", a.cfg.MaxAge.String())
		close(a.expiry)
		a.expiryClosed = true
	case !old && a.expiryClosed:
		a.expiry, a.expiryClosed = make(chan struct{}), false
	}
}

// save writes the time of the last confirmation, if it is later by more than
// least than the one on disk.
func (a *staleness) save(least time.Duration) {
	a.mu.Lock()
	at, before := a.confirmed(), a.saved
	a.mu.Unlock()
	if at.IsZero() || at.Sub(before) <= least {
		return
	}
	if err := writeSealed(a.file, binary.LittleEndian.AppendUint64(nil, uint64(at.UnixNano()))); err != nil {
		a.cfg.Log.Error("the age of the state could not be saved", "file", a.file, "cause", err)
		return
	}
	a.mu.Lock()
	a.saved = at
	a.mu.Unlock()
}
