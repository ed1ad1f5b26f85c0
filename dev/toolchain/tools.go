// Package toolchain puts the pinned tools under .sluice/tools and builds the
// filters with them.
//
// TinyGo, which compiles the filters, is built from its source against Debian's
// LLVM, and so is the media engine; Envoy, which runs the filters, and ffmpeg are
// fetched (dev/fetch). What is on the machine at the right version is taken as it
// is. Everything is made in a temporary folder and renamed into place under a lock,
// so that an interrupted run or two at once do no harm.
package toolchain

import (
	"cmp"
	"context"
	_ "embed" // the pinned version
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"sluice.dev/sluice/dev/fetch"
	"sluice.dev/sluice/dev/lockfile"
	"sluice.dev/sluice/envoy"
)

//go:embed TINYGO_VERSION
var tinygoVersionFile string

// TinyGoVersion is the TinyGo that the filters are built and measured with.
func TinyGoVersion() string { return strings.TrimSpace(tinygoVersionFile) }

// Config says where to work.
type Config struct {
	// Root is the checkout. Empty: there is none, so nothing can be built.
	Root string
	// Tools is where tools go. Empty: Root/.sluice/tools.
	Tools string
	// Envoy is the user's own Envoy (SLUICE_ENVOY). Empty: find or fetch one.
	Envoy string
	// Own returns the user's own of programs.All by its variable. Empty: find or make
	// one; "off": none. Nil: the user has none.
	Own func(variable string) string
	// Path is $PATH, searched for tools that are there already.
	Path string
	// Progress receives one line for each step that takes time. Nil: none.
	Progress io.Writer
}

func (c Config) dir() string { return cmp.Or(c.Tools, filepath.Join(c.Root, ".sluice", "tools")) }

func (c Config) say(format string, args ...any) {
	if c.Progress != nil {
		_, _ = fmt.Fprintf(c.Progress, "tools: "+format+"\n", args...)
	}
}

// start says what begins, and returns what says how long it took.
func (c Config) start(format string, args ...any) (done func()) {
	what, began := fmt.Sprintf(format, args...), time.Now()
	c.say("%s", what)
	return func() { c.say("%s: done in %.1f s", what, time.Since(began).Seconds()) }
}

// Toolchain says what compiles filters.
type Toolchain struct {
	TinyGo  TinyGo
	WasmOpt string
}

// ProvisionTinyGo finds or makes what compiles filters. When all is there it only
// looks. The error is one line that names cause and remedy.
func ProvisionTinyGo(ctx context.Context, cfg Config) (tc Toolchain, err error) {
	unlock, err := cfg.lock(cfg.dir())
	if err != nil {
		return tc, err
	}
	defer unlock()
	tc.TinyGo, tc.WasmOpt, err = ensureTinyGo(ctx, cfg)
	return tc, err
}

// ProvisionEnvoy finds or fetches Envoy and returns its path.
func ProvisionEnvoy(ctx context.Context, cfg Config) (string, error) {
	path, err := findEnvoy(cfg)
	if !errors.Is(err, envoy.ErrNotFound) {
		return path, err
	}
	return cfg.fetcher().Envoy(ctx)
}

// fetcher downloads what is published as a program.
func (c Config) fetcher() fetch.Config {
	return fetch.Config{Tools: c.dir(), Say: func(line string) { c.say("%s", line) }}
}

// lock keeps two runs from making the same thing in dir at once, and clears away
// what an interrupted run has left there.
func (c Config) lock(dir string) (unlock func(), err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	l, err := lockfile.Take(filepath.Join(dir, "lock"), func(held *lockfile.HeldError) {
		c.say("waiting for process %d, which is at it already", held.PID)
	})
	if err != nil {
		return nil, err
	}
	leftovers, _ := filepath.Glob(filepath.Join(dir, "tmp-*"))
	for _, left := range leftovers {
		_ = os.RemoveAll(left)
	}
	return l.Release, nil
}

// findEnvoy looks for an Envoy that is there already.
func findEnvoy(cfg Config) (string, error) {
	return envoy.Find(envoy.FindConfig{Binary: cfg.Envoy, Path: cfg.Path, Tools: cfg.dir()})
}
