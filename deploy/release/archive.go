package main

import (
	"archive/tar"
	"compress/gzip"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

//go:embed README.txt
var readme string

// service is the user that images run as.
const service = 65532

// archive packs a binary with what belongs to it. The folder in the archive and the
// archive have the same name.
func (b builder) archive(ctx context.Context, source, binary, arch, out string) error {
	name := "sluice-" + b.version + "-linux-" + arch
	dir, err := os.MkdirTemp("", "sluice-archive-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	completion, err := exec.CommandContext(ctx, b.host, "completion", "bash").Output()
	if err != nil {
		return fmt.Errorf("completion: %w", err)
	}
	license, err := os.ReadFile(filepath.Join(source, "LICENSE"))
	if err != nil {
		return err
	}
	for file, text := range map[string]string{
		"README.txt": strings.ReplaceAll(readme, "VERSION", b.version), "LICENSE": string(license), "completion.bash": string(completion),
	} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil {
			return err
		}
	}
	if err := copyFile(binary, filepath.Join(dir, "sluice"), 0o755); err != nil {
		return err
	}
	f, err := os.Create(filepath.Join(out, name+".tar.gz"))
	if err != nil {
		return err
	}
	defer f.Close()
	z := gzip.NewWriter(f)
	return errors.Join(pack(z, dir, name, b.time), z.Close(), f.Close())
}

// copyFile copies one file.
func copyFile(from, to string, mode fs.FileMode) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	defer out.Close()
	if _, err := io.Copy(out, in); err != nil {
		return err
	}
	return errors.Join(out.Chmod(mode), out.Close())
}

// pack writes a folder as a tar archive that has nothing of this machine: entries in
// the order of their names, all of one time, and root's. What lies in a folder
// named state, certs or each belongs to the user that images run as.
func pack(w io.Writer, dir, prefix string, at time.Time) error {
	t := tar.NewWriter(w)
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		inner, err := filepath.Rel(dir, name)
		if err != nil || inner == "." && prefix == "" {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		link := ""
		if info.Mode().Type() == fs.ModeSymlink {
			if link, err = os.Readlink(name); err != nil {
				return err
			}
		}
		h, err := tar.FileInfoHeader(info, link)
		if err != nil {
			return err
		}
		owner := 0
		if first, _, _ := strings.Cut(inner, "/"); prefix == "" && (first == "state" || first == "certs" || first == "each") {
			owner = service
		}
		*h = tar.Header{Name: filepath.Join(prefix, inner), Typeflag: h.Typeflag, Linkname: h.Linkname, Size: h.Size, Mode: h.Mode, Uid: owner, Gid: owner, ModTime: at, Format: tar.FormatPAX}
		if d.IsDir() {
			h.Name += "/"
		}
		if err := t.WriteHeader(h); err != nil || !info.Mode().IsRegular() {
			return err
		}
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = io.Copy(t, f)
		return err
	})
	return errors.Join(err, t.Close())
}
