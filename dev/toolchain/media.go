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

// ProvisionEngine finds or builds the media engine and returns its path;
// programs.Off where SLUICE_MEDIA_ENGINE wants none.
func ProvisionEngine(ctx context.Context, cfg Config) (string, error) {
	unlock, err := cfg.lock(cfg.dir())
	if err != nil {
		return "", err
	}
	defer unlock()
	p := programs.Engine
	found, err := p.Find(ctx, cfg.Engine, cfg.Path, cfg.dir())
	if !errors.Is(err, programs.ErrNotFound) {
		return found, err
	}
	if err := buildEngine(ctx, cfg, p.Pinned(cfg.dir())); err != nil {
		return "", fmt.Errorf("no %s: %w; or set %s to its binary, or to %q", p.Name, err, p.Variable, programs.Off)
	}
	return p.Pinned(cfg.dir()), nil
}

// ProvisionFFmpeg finds or fetches ffmpeg and returns its path; programs.Off where
// SLUICE_FFMPEG wants none.
func ProvisionFFmpeg(ctx context.Context, cfg Config) (string, error) {
	found, err := programs.FFmpeg.Find(ctx, cfg.FFmpeg, cfg.Path, cfg.dir())
	if !errors.Is(err, programs.ErrNotFound) {
		return found, err
	}
	return cfg.fetcher().FFmpeg(ctx)
}

// ProvisionSpeech finds or fetches the engine for speech to text, and returns the path
// of its program; programs.Off where SLUICE_SPEECH wants none.
func ProvisionSpeech(ctx context.Context, cfg Config) (string, error) {
	found, err := programs.Speech.Find(ctx, cfg.Speech, cfg.Path, cfg.dir())
	if !errors.Is(err, programs.ErrNotFound) {
		return found, err
	}
	return cfg.fetcher().Speech(ctx)
}

// ProvisionVoice and ProvisionTesseract do so for the engines of the media product.
func ProvisionVoice(ctx context.Context, cfg Config) (string, error) {
	found, err := programs.Voice.Find(ctx, cfg.Voice, cfg.Path, cfg.dir())
	if !errors.Is(err, programs.ErrNotFound) {
		return found, err
	}
	return cfg.fetcher().Voice(ctx)
}

func ProvisionTesseract(ctx context.Context, cfg Config) (string, error) {
	found, err := programs.Tesseract.Find(ctx, cfg.Tesseract, cfg.Path, cfg.dir())
	if !errors.Is(err, programs.ErrNotFound) {
		return found, err
	}
	return cfg.fetcher().Tesseract(ctx)
}

// buildEngine compiles MediaMTX by the script that stands beside its pin. It gives
// way to whatever else the machine does meanwhile.
func buildEngine(ctx context.Context, cfg Config, to string) error {
	script := filepath.Join(cfg.Root, "media", "live", "engine", "tool", "build.sh")
	if cfg.Root == "" || !exists(script) || lookPath(cfg.Path, "go") == "" {
		return ErrNoSources
	}
	done := cfg.start("building the media engine, MediaMTX %s", programs.Engine.Version)
	tmp, err := os.MkdirTemp(cfg.dir(), "tmp-"+programs.Engine.Name+"-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	out := filepath.Join(tmp, programs.Engine.Name)
	if _, err := run(ctx, command{argv: []string{"nice", "sh", script, out}, env: []string{"GOFLAGS=-buildvcs=false", "GOWORK=off"}}); err != nil {
		return err
	}
	if err := os.Chmod(out, 0o755); err != nil {
		return err
	}
	done()
	return os.Rename(out, to)
}
