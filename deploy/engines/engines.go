// Package engines lays out the programs of the media product in images: those that
// `make up` fetches and builds, in one folder, and the variables by which processes find them.
package engines

import (
	"context"
	"errors"
	"os"
	"path"
	"path/filepath"
	"strings"

	"sluice.dev/sluice/dev/programs"
)

// Dir is their folder in an image.
const Dir = "/usr/local/lib/sluice"

// Programs are those that images have. The media engine, which `sluice engine` runs, is
// among them: what runs beside it there converts, and listens.
var Programs = programs.All

// Path is where an image has a program.
func Path(p programs.Program) string { return path.Join(Dir, p.Name, p.Inside) }

// Env are the variables of an image with the programs.
func Env() (list []string) {
	for _, p := range Programs {
		list = append(list, p.Variable+"="+Path(p))
	}
	return list
}

// Put puts the programs below root as an image has them; find fetches or builds one and
// returns its path.
func Put(ctx context.Context, find func(context.Context, programs.Program) (string, error), root string) error {
	for _, p := range Programs {
		from, err := find(ctx, p)
		if err != nil {
			return err
		}
		to := filepath.Join(root, Path(p))
		if p.Inside != "" {
			from, to = filepath.Dir(from), filepath.Dir(to)
		}
		if err := copyAll(from, to); err != nil {
			return err
		}
	}
	return nil
}

// copyAll copies a file or a folder, without recordings, which are for tests.
func copyAll(from, to string) error {
	from, err := filepath.EvalSymlinks(from)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(to), 0o755)
	}
	if err != nil {
		return err
	}
	return filepath.WalkDir(from, func(name string, d os.DirEntry, err error) error {
		if err != nil || strings.HasSuffix(name, ".wav") {
			return err
		}
		rest, err := filepath.Rel(from, name)
		if err != nil {
			return err
		}
		at := filepath.Join(to, rest)
		if d.IsDir() {
			return os.Mkdir(at, 0o755)
		}
		return copyFile(name, at)
	})
}

// copyFile copies a file with what may be done with it.
func copyFile(from, to string) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, info.Mode().Perm())
	if err != nil {
		return err
	}
	defer out.Close()
	if _, err := out.ReadFrom(in); err != nil {
		return err
	}
	return errors.Join(out.Chmod(info.Mode().Perm()), out.Close()) // whatever the umask
}
