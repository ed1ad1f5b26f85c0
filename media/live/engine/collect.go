package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/media/assets"
	"sluice.dev/sluice/media/captions/onair"
	"sluice.dev/sluice/media/live/streams"
	"sluice.dev/sluice/platform/apierror"
)

// recordName is how the engine names what it records, by the time of its start in
// UTC to the microsecond.
const recordName = "%Y-%m-%d_%H-%M-%S-%f"

// startOf reads the time in the name of a recording; false: it is none.
func startOf(name string) (time.Time, bool) {
	name = strings.TrimSuffix(filepath.Base(name), ".mp4")
	i := strings.LastIndexByte(name, '-')
	if i < 0 {
		return time.Time{}, false
	}
	t, err := time.Parse("2006-01-02_15-04-05.000000", name[:i]+"."+name[i+1:])
	return t, err == nil
}

// unchangedFor is how long a file must not have changed before it counts as complete.
const unchangedFor = 2 * time.Second

// keep is the folder of what belongs to a recording, as <id>.mp4. A file is moved there
// before it is stored and removed when its recording needs it no longer: killed in
// between, the next step goes on from there.
const keep = "kept"

// collect takes over what was recorded of publishers who have gone, and removes
// what no recording waits for: the stream does not record, or is gone.
func (w *Watcher) collect(ctx context.Context, ready map[string]bool) error {
	kept, err := w.kept()
	if err != nil {
		return err
	}
	pending, err := w.Assets.Pending(ctx)
	if err != nil {
		return err
	}
	pending, errs := w.storeKept(ctx, pending, kept)
	waiting, err := w.waiting(ctx, pending)
	if err != nil {
		return errors.Join(errs, err)
	}
	found, err := w.files()
	if err != nil {
		return errors.Join(errs, err)
	}
	for id := range waiting {
		if _, ok := found[id]; !ok {
			found[id] = nil // waiting for a file that is not there
		}
	}
	for id, files := range found {
		if !ready[id] && w.quiet(files) {
			errs = errors.Join(errs, w.takeOver(ctx, waiting[id], files))
		}
	}
	return errors.Join(errs, w.tidy(ctx))
}

// kept returns the ids of the recordings whose bytes are kept.
func (w *Watcher) kept() (ids []string, err error) {
	names, err := filepath.Glob(filepath.Join(w.Dir, keep, "*.mp4"))
	if err != nil {
		return nil, fmt.Errorf("list what is kept: %w", err)
	}
	for _, name := range names {
		ids = append(ids, strings.TrimSuffix(filepath.Base(name), ".mp4"))
	}
	return ids, nil
}

// place is where the bytes of a recording are kept.
func (w *Watcher) place(recording string) string { return filepath.Join(w.Dir, keep, recording+".mp4") }

// tidy removes what is kept of recordings that do not need it: they are stored, or
// deleted, or it is too late to try them again.
func (w *Watcher) tidy(ctx context.Context) error {
	ids, err := w.kept()
	if err != nil || len(ids) == 0 {
		return err
	}
	wanted, err := w.Assets.Wanted(ctx, ids)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if !wanted[id] {
			err = errors.Join(err, os.Remove(w.place(id)))
		}
	}
	return err
}

// job is a recording that waits, and the plan that bounds it.
type job struct {
	asset assets.Asset
	plan  string
}

// storeKept stores the recordings whose bytes are kept, and returns the others.
func (w *Watcher) storeKept(ctx context.Context, pending []assets.Asset, kept []string) (others []assets.Asset, errs error) {
	for _, a := range pending {
		if slices.Contains(kept, a.ID) {
			errs = errors.Join(errs, w.finish(ctx, job{a, a.Plan}, w.place(a.ID)))
		} else {
			others = append(others, a)
		}
	}
	return others, errs
}

// waiting returns the recordings that wait for a file, by playback id. Those of streams
// that were deleted meanwhile end here: nobody can tell which file was theirs.
func (w *Watcher) waiting(ctx context.Context, pending []assets.Asset) (map[string][]job, error) {
	jobs := map[string][]job{}
	for _, a := range pending {
		s, err := streams.ByID(ctx, w.Streams.DB, a.StreamID)
		switch {
		case err == nil:
			jobs[s.PlaybackID] = append(jobs[s.PlaybackID], job{a, s.Plan})
		case apierror.Code(err) != decision.NotFound:
			return nil, err
		default:
			if err := w.Assets.FinishRecording(ctx, a, "", nil, 0); err != nil {
				return nil, err
			}
		}
	}
	return jobs, nil
}

// files returns what the engine has recorded, by playback id, oldest first.
func (w *Watcher) files() (map[string][]string, error) {
	names, err := filepath.Glob(filepath.Join(w.Dir, folder, "*", "*.mp4"))
	if err != nil {
		return nil, fmt.Errorf("list recordings: %w", err)
	}
	slices.Sort(names)
	found := map[string][]string{}
	for _, name := range names {
		id := filepath.Base(filepath.Dir(name))
		found[id] = append(found[id], name)
	}
	return found, nil
}

// quiet reports whether nobody writes to files any more.
func (w *Watcher) quiet(files []string) bool {
	for _, name := range files {
		info, err := os.Stat(name)
		if err == nil && w.Now().Sub(info.ModTime()) < unchangedFor {
			return false
		}
	}
	return true
}

// takeOver gives each recording its file, or ends it without one, and removes the
// files. After an error they stay for the next step.
func (w *Watcher) takeOver(ctx context.Context, jobs []job, files []string) error {
	var errs error
	for i, name := range match(jobs, files) {
		err := error(nil)
		if name != "" {
			began, _ := startOf(name) // match has read it
			if err = onair.RecordedFrom(ctx, w.Streams.DB, jobs[i].asset.SessionID, began); err == nil {
				name, err = w.move(name, jobs[i].asset.ID)
			}
		}
		if err == nil {
			err = w.finish(ctx, jobs[i], name)
		}
		errs = errors.Join(errs, err)
	}
	if errs != nil {
		return errs
	}
	for _, name := range files {
		if err := os.Remove(name); !errors.Is(err, fs.ErrNotExist) { // it was moved
			errs = errors.Join(errs, err)
		}
	}
	return errs
}

// move gives a file to a recording, and returns its place.
func (w *Watcher) move(name, recording string) (string, error) {
	to := w.place(recording)
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return "", fmt.Errorf("keep a recording: %w", err)
	}
	return to, os.Rename(name, to)
}

// match finds the file of each recording, which are in order of time: the last one
// that began before the recording's session ended and after the one before it had
// ended; "" where there is none.
func match(jobs []job, files []string) []string {
	out := make([]string, len(jobs))
	var before time.Time
	for i, j := range jobs {
		for _, name := range files {
			began, ok := startOf(name)
			if ok && began.After(before) && !began.After(j.asset.CreatedAt) {
				out[i] = name
			}
		}
		before = j.asset.CreatedAt
	}
	return out
}

// finish hands the file called name to a recording, or nothing for "".
func (w *Watcher) finish(ctx context.Context, j job, name string) error {
	if name == "" {
		return w.Assets.FinishRecording(ctx, j.asset, j.plan, nil, 0)
	}
	f, err := os.Open(name)
	if err != nil {
		return fmt.Errorf("open recording: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("open recording: %w", err)
	}
	return w.Assets.FinishRecording(ctx, j.asset, j.plan, f, info.Size())
}
