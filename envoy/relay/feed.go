package relay

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"sluice.dev/sluice/filters/credentials/keytable"
	"sluice.dev/sluice/filters/edgeapi"
	"sluice.dev/sluice/platform/process/pause"
)

const (
	pollSeconds = 5                               // for how long a replica may hold an answer back
	feedTimeout = (pollSeconds + 3) * time.Second // after which a replica that does not answer is given up
	retryFeed   = 200 * time.Millisecond          // after a failure at all replicas
	syncEvery   = time.Second                     // how often the log is synced to disk
	compactFrom = 8 << 20                         // bytes of changes below which the log is not compacted
	maxWait     = 30 * time.Second                // of a poll of Envoy
	maxBody     = frameHeader + maxPage           // of an answer
	logName     = "feed.tape"
)

// feed reads the key feed of the control plane into a log, and serves Envoy
// from it.
type feed struct {
	cfg       Config
	up        *upstreams
	staleness *staleness

	mu       sync.Mutex
	served   *feedLog // that Envoy is served from; nil: there is none yet
	next     *feedLog // being read, to take the place of served
	mayServe bool     // the log is up to date, or no replica answers
	changed  chan struct{}
	unsaved  bool // something was written since the last sync
}

// newFeed opens the log that was saved.
func newFeed(c Config, up *upstreams, a *staleness) (*feed, error) {
	f := &feed{cfg: c, up: up, staleness: a, changed: make(chan struct{})}
	name := f.file()
	t, cut, err := openFeedLog(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return f, nil
	case err != nil:
		return nil, fmt.Errorf("open the saved keys: %w", err)
	}
	if cut > 0 {
		c.Log.Error("the saved keys are damaged: what follows is dropped", "file", name, "dropped_bytes", cut)
	}
	if !t.head().Ready {
		c.Log.Error("the saved keys are not whole and are put aside", "file", name)
		putAside(name)
		return f, t.file.Close()
	}
	f.served = t
	return f, nil
}

func (f *feed) file() string { return filepath.Join(f.cfg.Dir, logName) }

// close syncs the log to disk and closes it.
func (f *feed) close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	var errs []error
	for _, t := range []*feedLog{f.served, f.next} {
		if t != nil {
			errs = append(errs, t.file.Sync(), t.file.Close())
		}
	}
	return errors.Join(errs...)
}

// position is that of the log.
func (f *feed) position() uint64 {
	if t, _, _ := f.current(); t != nil {
		return t.head().Position
	}
	return 0
}

// current returns the log to serve from, whether it may be served, and a channel that
// closes at the next change of either.
func (f *feed) current() (t *feedLog, settled bool, changed <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	t = f.served
	if t == nil {
		t = f.next
	}
	return t, f.mayServe, f.changed
}

// update changes f and wakes everyone who waits.
func (f *feed) update(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
	close(f.changed)
	f.changed = make(chan struct{})
}

// run reads until ctx ends.
func (f *feed) run(ctx context.Context) {
	go f.sync(ctx)
	failing := false
	for ctx.Err() == nil {
		err := f.poll(ctx)
		if err == nil {
			if failing {
				f.cfg.Log.Info("the key feed answers again")
			}
			failing = false
			continue
		}
		if ctx.Err() != nil {
			return
		}
		if !failing {
			f.cfg.Log.Warn("the key feed does not answer: serving from the keys at hand", "cause", err)
		}
		failing = true
		f.up.failed(int(f.up.preferred.Load()))
		f.update(func() { f.mayServe = true })
		pause.For(ctx, retryFeed)
	}
}

// sync syncs the log to disk, until ctx ends.
func (f *feed) sync(ctx context.Context) {
	for pause.For(ctx, syncEvery) {
		f.syncOnce()
	}
}

func (f *feed) syncOnce() {
	f.mu.Lock()
	t, unsaved := f.served, f.unsaved
	f.unsaved = false
	f.mu.Unlock()
	if t == nil || !unsaved {
		return
	}
	if err := t.file.Sync(); err != nil && !errors.Is(err, os.ErrClosed) {
		f.cfg.Log.Error("the keys could not be saved", "cause", err)
	}
}

// poll asks for one page and puts it in the log.
func (f *feed) poll(ctx context.Context) error {
	reading := f.reading()
	var state keytable.State
	if reading != nil {
		state = reading.head()
	}
	page, err := f.fetchPage(ctx, state)
	if err != nil {
		return err
	}
	p, ok := keytable.ParsePage(page)
	if !ok {
		return errors.New("the answer of the feed is no page")
	}
	f.staleness.answered()
	if p.Snapshot && !state.Loading {
		if reading, err = f.beginSnapshot(); err != nil {
			return err
		}
	}
	if p.Snapshot || len(p.Records) > 0 {
		if err := reading.append(page, p); err != nil {
			return err
		}
	}
	return f.finishPage(reading, p)
}

// reading is the log that pages go to.
func (f *feed) reading() *feedLog {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.next != nil {
		return f.next
	}
	return f.served
}

// beginSnapshot starts a feed log for a snapshot.
func (f *feed) beginSnapshot() (*feedLog, error) {
	file, err := os.OpenFile(f.file()+".new", os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	t := newFeedLog(file)
	f.update(func() {
		if f.next != nil {
			_ = f.next.file.Close()
		}
		f.next = t
		f.mayServe = f.mayServe || f.served == nil // nothing old to be taken for current
	})
	return t, nil
}

// finishPage follows a page: a snapshot that is complete takes the old log's place,
// and changes that have become many are merged into the snapshot.
func (f *feed) finishPage(reading *feedLog, p keytable.Page) error {
	f.update(func() {
		f.unsaved = f.unsaved || len(p.Records) > 0
		f.mayServe = f.mayServe || (p.Last && !p.Snapshot)
	})
	if p.Snapshot && p.Last {
		return f.switchTo(reading)
	}
	if p.Snapshot || !reading.needsCompaction(compactFrom) {
		return nil
	}
	file, err := os.OpenFile(f.file()+".new", os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	small, err := reading.compact(file)
	if err != nil {
		return errors.Join(fmt.Errorf("merge changes into the saved keys: %w", err), file.Close())
	}
	return f.switchTo(small)
}

// switchTo makes a complete log the one that is served and kept.
func (f *feed) switchTo(t *feedLog) error {
	if err := t.file.Sync(); err != nil {
		return err
	}
	if err := replace(f.file()+".new", f.file()); err != nil {
		return err
	}
	f.update(func() {
		old := f.served
		f.served, f.next = t, nil
		if old != nil {
			// Whoever reads it now asks again, and is answered from the new one.
			_ = old.file.Close()
		}
	})
	return nil
}

// fetchPage asks the preferred replica, and the next one if that cannot be reached.
func (f *feed) fetchPage(ctx context.Context, s keytable.State) ([]byte, error) {
	wait := min(pollSeconds, max(1, int(f.cfg.MaxAge/(4*time.Second)))) // a short limit wants to hear often
	if _, settled, _ := f.current(); !settled {
		wait = 0 // Envoy is kept waiting until it is known how current the log is
	}
	ctx, cancel := context.WithTimeout(ctx, feedTimeout)
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://replica"+edgeapi.RecordsPath+"?"+s.Query(wait), nil)
	if err != nil {
		return nil, err
	}
	q.Header.Set(edgeapi.EdgeHeader, f.cfg.Edge)
	res, err := f.up.http.Do(q)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the feed answers %d", res.StatusCode)
	}
	return io.ReadAll(io.LimitReader(res.Body, maxBody))
}

// serve answers one poll of Envoy.
func (f *feed) serve(w http.ResponseWriter, r *http.Request, e *envoy) {
	q, wait, err := parsePoll(r.URL.Query())
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	page, err := f.page(r.Context(), q, wait, e)
	if err != nil || page == nil {
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Length", strconv.Itoa(len(page)))
	_, _ = w.Write(page) // an Envoy that has gone away asks again
}

// page waits until there is an answer to q, at most as long as was asked for;
// then it is an empty page, or nil while nothing may be served.
func (f *feed) page(ctx context.Context, q question, wait time.Duration, e *envoy) ([]byte, error) {
	deadline := time.NewTimer(wait)
	defer deadline.Stop()
	for {
		t, settled, changed := f.current()
		if t != nil && settled && f.staleness.usable() {
			page, err := t.answer(q)
			e.notePosition(q, page == nil && t.head().Ready)
			if page != nil || err != nil {
				return page, err
			}
		} else {
			t = nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-deadline.C:
			if t == nil || t.head().Loading {
				return nil, nil
			}
			return keytable.Page{Last: true, Epoch: q.epoch, Position: q.position, Hi: keytable.Buckets - 1}.Append(nil), nil
		}
	}
}

// notePosition notes the position that Envoy holds, by what it asks for.
// current says that there is nothing more in the log.
func (e *envoy) notePosition(q question, current bool) {
	if q.cursor != (keytable.Tag{}) || q.epoch == 0 {
		return
	}
	e.mu.Lock()
	e.epoch, e.position = q.epoch, q.position
	e.mu.Unlock()
	if current {
		e.once.Do(func() { close(e.loaded) })
	}
}

// parsePoll reads the query of a poll.
func parsePoll(v url.Values) (q question, wait time.Duration, err error) {
	number := func(name string) uint64 {
		s := v.Get(name)
		if s == "" {
			return 0
		}
		n, e := strconv.ParseUint(s, 10, 63)
		err = errors.Join(err, e)
		return n
	}
	q = question{epoch: number("epoch"), position: number("position")}
	wait = min(time.Duration(number("wait"))*time.Second, maxWait)
	if s := v.Get("cursor"); s != "" {
		b, e := hex.DecodeString(s)
		if e != nil || len(b) != len(q.cursor) {
			return q, 0, errors.New("cursor is not 32 hexadecimal digits")
		}
		q.cursor = keytable.Tag(b)
	}
	return q, wait, err
}
