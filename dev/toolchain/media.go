package toolchain

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"sluice.dev/sluice/dev/programs"
)

// ProvisionEngine finds or builds the media engine and returns its path;
// programs.Off where SLUICE_MEDIA_ENGINE wants none.
func ProvisionEngine(ctx context.Context, cfg Config) (string, error) {
	return cfg.provide(ctx, programs.Engine, cfg.Engine, buildEngine)
}

// ProvisionFFmpeg finds or fetches ffmpeg and returns its path; programs.Off where
// SLUICE_FFMPEG wants none.
func ProvisionFFmpeg(ctx context.Context, cfg Config) (string, error) {
	return cfg.provide(ctx, programs.FFmpeg, cfg.FFmpeg, fetchFFmpeg)
}

// provide finds p, or has make put it into a folder and moves it into place.
func (c Config) provide(ctx context.Context, p programs.Program, own string, make func(context.Context, Config, string) (string, error)) (string, error) {
	unlock, err := c.lock(c.dir())
	if err != nil {
		return "", err
	}
	defer unlock()
	found, err := p.Find(ctx, own, c.Path, c.dir())
	if !errors.Is(err, programs.ErrNotFound) {
		return found, err
	}
	tmp, err := os.MkdirTemp(c.dir(), "tmp-"+p.Name+"-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	file, err := make(ctx, c, tmp)
	if err == nil {
		err = os.Chmod(file, 0o755)
	}
	if err != nil {
		return "", fmt.Errorf("no %s: %w; or set %s to its binary, or to %q", p.Name, err, p.Variable, programs.Off)
	}
	return p.Pinned(c.dir()), os.Rename(file, p.Pinned(c.dir()))
}

// buildEngine compiles MediaMTX by the script that stands beside its pin.
func buildEngine(ctx context.Context, cfg Config, tmp string) (string, error) {
	cfg.say("building the media engine, MediaMTX %s (about a minute)", programs.Engine.Version)
	out := filepath.Join(tmp, programs.Engine.Name)
	script := filepath.Join(cfg.Root, "media", "live", "engine", "tool", "build.sh")
	_, err := run(ctx, command{argv: []string{"sh", script, out}, env: []string{"GOFLAGS=-buildvcs=false", "GOWORK=off"}})
	return out, err
}

// fetchFFmpeg unpacks the static program that a Python wheel holds.
func fetchFFmpeg(ctx context.Context, cfg Config, tmp string) (string, error) {
	cfg.say("fetching ffmpeg (about 30 MB)")
	if err := installWheel(ctx, cfg, tmp, "imageio-ffmpeg=="+programs.FFmpeg.Version); err != nil {
		return "", err
	}
	return locate(tmp, func(path string) bool { return strings.Contains(path, "/imageio_ffmpeg/binaries/ffmpeg-") })
}
