package toolchain

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"sluice.dev/sluice/dev/programs"
)

// ErrNoSources says that this is no checkout with a Go at hand, so that the engine
// cannot be built.
var ErrNoSources = errors.New("the media engine is built from a checkout, with Go")

// Provision finds, fetches or builds one of programs.All and returns its path;
// programs.Off where its variable wants none.
func Provision(ctx context.Context, cfg Config, p programs.Program) (string, error) {
	found, err := cfg.find(ctx, p)
	if !errors.Is(err, programs.ErrNotFound) {
		return found, err
	}
	if p != programs.Engine {
		return cfg.fetcher().Program(ctx, p)
	}
	unlock, err := cfg.lock(cfg.dir())
	if err != nil {
		return "", err
	}
	defer unlock()
	if found, err := cfg.find(ctx, p); !errors.Is(err, programs.ErrNotFound) { // somebody else has built it
		return found, err
	}
	if err := BuildEngine(ctx, cfg, "", p.Pinned(cfg.dir())); err != nil {
		return "", fmt.Errorf("no %s: %w; or set %s to its binary, or to %q", p.Name, err, p.Variable, programs.Off)
	}
	return p.Pinned(cfg.dir()), nil
}

// find looks for a program that is there already.
func (c Config) find(ctx context.Context, p programs.Program) (string, error) {
	own := ""
	if c.Own != nil {
		own = c.Own(p.Variable)
	}
	return p.Find(ctx, own, c.Path, c.dir())
}

// BuildEngine compiles MediaMTX for an architecture of Linux, such as arm64 (empty: for
// this machine), by the script that stands beside its pin, and puts it at to. The same
// sources and the same Go give the same bytes. It gives way to whatever else the machine does meanwhile.
func BuildEngine(ctx context.Context, cfg Config, arch, to string) error {
	script := filepath.Join(cfg.Root, "media", "live", "engine", "tool", "build.sh")
	if cfg.Root == "" || !exists(script) || lookPath(cfg.Path, "go") == "" {
		return ErrNoSources
	}
	done := cfg.start("building the media engine, MediaMTX %s", programs.Engine.Version)
	tmp, err := os.MkdirTemp(filepath.Dir(to), "tmp-"+programs.Engine.Name+"-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	out := filepath.Join(tmp, programs.Engine.Name)
	env := []string{"GOFLAGS=-buildvcs=false", "GOWORK=off"}
	if arch != "" {
		env = append(env, "GOOS=linux", "GOARCH="+arch, "GOAMD64=", "GOARM64=", "GOEXPERIMENT=")
	}
	if _, err := run(ctx, command{argv: []string{"nice", "sh", script, out}, env: env}); err != nil {
		return err
	}
	if err := os.Chmod(out, 0o755); err != nil {
		return err
	}
	done()
	return os.Rename(out, to)
}
