package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// tree is a folder that becomes the root of an image.
type tree struct{ root string }

// link puts a file into the tree, without a copy where the file system can.
// Symbolic links are followed: what an image needs is the file.
func (t tree) link(from, to string) error {
	real, err := filepath.EvalSymlinks(from)
	if err != nil {
		return err
	}
	to = filepath.Join(t.root, to)
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	if os.Link(real, to) == nil {
		return nil
	}
	if _, err := os.Stat(to); err == nil {
		return nil // it is there already
	}
	b, err := os.ReadFile(real)
	if err != nil {
		return err
	}
	info, err := os.Stat(real)
	if err != nil {
		return err
	}
	return os.WriteFile(to, b, info.Mode().Perm())
}

// optional puts in a file that a machine may lack; an empty one stands for it.
func (t tree) optional(from, to string) error {
	if err := t.link(from, to); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.WriteFile(filepath.Join(t.root, to), nil, 0o644)
}

// same puts a file where it is on this machine.
func (t tree) same(names ...string) error {
	for _, name := range names {
		if err := t.link(name, name); err != nil {
			return err
		}
	}
	return nil
}

// all puts in a folder with all that is below it, where it is on this machine.
func (t tree) all(dir string) error {
	return filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if info, err := os.Stat(name); err != nil || !info.Mode().IsRegular() {
			return nil // a link to nowhere, or to a folder that is walked itself
		}
		return t.link(name, name)
	})
}

// program puts in a program, or a library, with the libraries that it loads.
func (t tree) program(ctx context.Context, name, to string) error {
	return errors.Join(t.link(name, to), t.libraries(ctx, name))
}

// libraries puts in those that a program loads, but for those that are in the tree as it
// is itself.
func (t tree) libraries(ctx context.Context, name string) error {
	out, err := exec.CommandContext(ctx, "ldd", name).CombinedOutput()
	if err != nil && !strings.Contains(string(out), "not a dynamic executable") {
		return fmt.Errorf("which libraries %s needs: %w: %s", name, err, out)
	}
	inside, err := filepath.Abs(t.root)
	if err != nil {
		return err
	}
	return t.same(slices.DeleteFunc(libraries(string(out)), func(file string) bool { return strings.HasPrefix(file, inside+"/") })...)
}

// libraries are the files that ldd names.
func libraries(ldd string) (files []string) {
	for line := range strings.Lines(ldd) {
		line = strings.TrimSpace(line)
		if _, after, found := strings.Cut(line, "=> "); found {
			line = after
		}
		if file, _, _ := strings.Cut(line, " ("); strings.HasPrefix(file, "/") {
			files = append(files, file)
		}
	}
	return files
}
