package envoy

import (
	"os"
	"path/filepath"
	"slices"
	"time"
)

// stamp tells a file from another that was put in its place.
type stamp struct {
	size    int64
	changed time.Time
}

// stamps are those of Envoy's binary and of its filters, by name; files that
// cannot be read are not in it.
func (c EdgeConfig) stamps() map[string]stamp {
	filters, _ := filepath.Glob(filepath.Join(c.Dir, "wasm", "*.wasm")) // the pattern is well formed
	all := map[string]stamp{}
	for _, file := range append(filters, c.Binary) {
		if info, err := os.Stat(file); err == nil {
			all[filepath.Base(file)] = stamp{info.Size(), info.ModTime()}
		}
	}
	return all
}

// Outdated names the files, Envoy's binary or filters of it, that were changed
// after the Envoy that runs was started: until a Reload it goes on with those of
// before. Safe for use while Run runs.
func (e *Edge) Outdated() []string {
	then := e.started.Load()
	if then == nil {
		return nil
	}
	var names []string
	for name, now := range e.cfg.stamps() {
		if now != (*then)[name] {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
