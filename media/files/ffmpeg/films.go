package ffmpeg

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
)

// idle is how long a copy stays that nobody uses.
const idle = 10 * time.Minute

// Films keeps copies of films at hand while pictures of them are asked for, so that a
// film is copied once and not for every picture.
type Films struct {
	Dir  string // where copies are; empty: os.TempDir
	Most int64  // bytes of all copies, and so of one film

	mu    sync.Mutex
	dir   string
	bytes int64
	kept  map[string]*copied
}

// copied is one copy, or one in the making.
type copied struct {
	size  int64
	used  time.Time
	ready chan struct{} // closed when it is there, or is not kept
	there bool
	drop  *time.Timer
}

// Fits reports whether pictures are made of a film of so many bytes.
func (f *Films) Fits(size int64) bool { return size <= f.Most }

// Check fails with STORAGE_001 for a film that does not fit.
func (f *Films) Check(size int64) error {
	if f.Fits(size) {
		return nil
	}
	return apierror.Errorf(decision.Storage001, "The film is larger than %d bytes: no pictures are made of it.", f.Most)
}

// Put makes the film called id, of size bytes, the input of a conversion. fill writes
// it where there is no copy; one caller at a time does so for a film. It fails with
// STORAGE_001 for a film that does not fit, and with TRANSCODE_001 when others are
// being copied that leave no room.
func (f *Films) Put(ctx context.Context, id string, size int64, to Folder, fill func(io.Writer) error) error {
	if err := f.Check(size); err != nil {
		return err
	}
	for {
		c, mine, err := f.find(id, size)
		if err != nil {
			return err
		}
		if mine {
			if err := f.fill(id, c, fill); err != nil {
				return err
			}
		}
		select {
		case <-c.ready:
		case <-ctx.Done():
			return ctx.Err()
		}
		// The link holds the bytes, whatever becomes of the copy.
		if err := os.Link(f.path(id), to.Input()); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
}

// find returns the copy of a film; mine: it is new, and for the caller to fill.
func (f *Films) find(id string, size int64) (c *copied, mine bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c := f.kept[id]; c != nil {
		c.used = time.Now()
		if c.there {
			c.drop.Reset(idle)
		}
		return c, false, nil
	}
	if f.dir == "" {
		if f.dir, err = os.MkdirTemp(f.Dir, "sluice-films-"); err != nil {
			return nil, false, fmt.Errorf("make a folder for films: %w", err)
		}
		f.kept = map[string]*copied{}
	}
	for f.bytes+size > f.Most {
		if !f.evict() {
			return nil, false, busy()
		}
	}
	c = &copied{size: size, used: time.Now(), ready: make(chan struct{})}
	f.kept[id] = c
	f.bytes += size
	return c, true, nil
}

// fill writes a new copy and lets those in who wait for it; they look again when it
// has failed.
func (f *Films) fill(id string, c *copied, fill func(io.Writer) error) error {
	err := write(f.path(id), fill)
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil {
		f.remove(id)
	} else {
		c.there = true
		c.drop = time.AfterFunc(idle, func() { f.Drop(id) })
	}
	close(c.ready)
	return err
}

// evict removes the copy that was used longest ago; false: there is none to remove.
func (f *Films) evict() bool {
	oldest := ""
	for id, c := range f.kept {
		if c.there && (oldest == "" || c.used.Before(f.kept[oldest].used)) {
			oldest = id
		}
	}
	if oldest != "" {
		f.remove(oldest)
	}
	return oldest != ""
}

// Drop removes the copy of a film, if there is one.
func (f *Films) Drop(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c := f.kept[id]; c != nil && c.there {
		f.remove(id)
	}
}

// remove removes what is known and stored of a film.
func (f *Films) remove(id string) {
	c := f.kept[id]
	if c.drop != nil {
		c.drop.Stop()
	}
	delete(f.kept, id)
	f.bytes -= c.size
	_ = os.Remove(f.path(id)) // what is left of it is the machine's to clean
}

func (f *Films) path(id string) string { return filepath.Join(f.dir, id) }

// write makes a file that nobody changes any more.
func write(name string, fill func(io.Writer) error) error {
	out, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o400)
	if err != nil {
		return fmt.Errorf("keep film: %w", err)
	}
	if err := fill(out); err != nil {
		out.Close()
		return err
	}
	return out.Close()
}
