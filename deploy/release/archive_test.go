package main

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/ulikunitz/xz"

	"sluice.dev/sluice/deploy/engines"
)

var at = time.Unix(1_700_000_000, 0).UTC()

// fill makes files below a folder.
func fill(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// An archive has nothing of the folder, the time and the user that it was made by.
func TestPackHasNothingOfThisMachine(t *testing.T) {
	t.Parallel()
	var archives [2]bytes.Buffer
	for i, when := range []time.Time{time.Unix(1, 0), time.Unix(1e9, 0)} {
		dir := filepath.Join(t.TempDir(), strings.Repeat("x", i+1))
		fill(t, dir, map[string]string{"b": "two", "a/deep": "one", "state/kept": ""})
		if err := os.Symlink("b", filepath.Join(dir, "link")); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(filepath.Join(dir, "b"), when, when); err != nil {
			t.Fatal(err)
		}
		if err := pack(&archives[i], dir, "", at); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(archives[0].Bytes(), archives[1].Bytes()) {
		t.Error("two archives of the same files differ")
	}
	var got []string
	for r := tar.NewReader(&archives[0]); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil || !h.ModTime.Equal(at) || h.Uname != "" {
			t.Fatalf("%+v %v", h, err)
		}
		got = append(got, fmt.Sprintf("%s %d%s", h.Name, h.Uid, h.Linkname))
	}
	if want := "a/ 0, a/deep 0, b 0, link 0b, state/ 65532, state/kept 65532"; strings.Join(got, ", ") != want {
		t.Errorf("%q, want %s", got, want)
	}
}

// debOf is a package with these entries.
func debOf(t *testing.T, entries ...tar.Header) string {
	t.Helper()
	var data bytes.Buffer
	x, err := xz.NewWriter(&data)
	if err != nil {
		t.Fatal(err)
	}
	w := tar.NewWriter(x)
	for _, h := range entries {
		if h.Typeflag == tar.TypeReg {
			h.Size = int64(len(h.Name))
		}
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg {
			_, _ = io.WriteString(w, h.Name)
		}
	}
	if err := errors.Join(w.Close(), x.Close()); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	out.WriteString("!<arch>\n")
	for _, m := range []struct{ name, text string }{{"debian-binary", "2.0"}, {"data.tar.xz", data.String()}} {
		fmt.Fprintf(&out, "%-16s%-12d%-6d%-6d%-8d%-10d`\n%s%s", m.name, 0, 0, 0, 100644, len(m.text), m.text, strings.Repeat("\n", len(m.text)%2))
	}
	name := filepath.Join(t.TempDir(), "a.deb")
	if err := os.WriteFile(name, []byte(out.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestOfAPackageOnlyWhatIsWantedIsUnpacked(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	name := debOf(t,
		tar.Header{Name: "./lib/x86_64-linux-gnu/libc.so.6", Typeflag: tar.TypeReg, Mode: 0o755},
		tar.Header{Name: "./lib64/ld.so", Typeflag: tar.TypeSymlink, Linkname: "/lib/x86_64-linux-gnu/ld.so"},
		tar.Header{Name: "./usr/lib/x86_64-linux-gnu/libstdc++.so.6", Typeflag: tar.TypeReg, Mode: 0o644},
		tar.Header{Name: "./usr/lib/x86_64-linux-gnu/gconv/BIG5.so", Typeflag: tar.TypeReg, Mode: 0o644},
		tar.Header{Name: "./usr/lib/locale/C.utf8/LC_CTYPE", Typeflag: tar.TypeReg, Mode: 0o644},
		tar.Header{Name: "./usr/share/doc/libc6/copyright", Typeflag: tar.TypeReg, Mode: 0o644},
		tar.Header{Name: "./usr/share/doc/libc6/changelog.gz", Typeflag: tar.TypeReg, Mode: 0o644},
		tar.Header{Name: "./usr/share/ca-certificates/mozilla/B.crt", Typeflag: tar.TypeReg, Mode: 0o644},
		tar.Header{Name: "./usr/share/ca-certificates/mozilla/A.crt", Typeflag: tar.TypeReg, Mode: 0o644},
	)
	if err := errors.Join(unpackDeb(name, root), bundle(root)); err != nil {
		t.Fatal(err)
	}
	var got []string
	_ = filepath.WalkDir(root, func(name string, d os.DirEntry, _ error) error {
		if !d.IsDir() {
			got = append(got, strings.TrimPrefix(name, root+"/"))
		}
		return nil
	})
	want := "etc/ssl/certs/ca-certificates.crt lib/x86_64-linux-gnu/libc.so.6 lib64/ld.so usr/lib/locale/C.utf8/LC_CTYPE usr/lib/x86_64-linux-gnu/libstdc++.so.6 usr/share/doc/libc6/copyright"
	if strings.Join(got, " ") != want {
		t.Errorf("%v, want %s", got, want)
	}
	if text, _ := os.ReadFile(filepath.Join(root, "etc/ssl/certs/ca-certificates.crt")); !strings.HasPrefix(string(text), "./usr/share/ca-certificates/mozilla/A.crt") {
		t.Errorf("%s", text)
	}
	if _, err := member(strings.NewReader("!<arch>\n"), "data.tar.xz"); err == nil {
		t.Error("a package without data is accepted")
	}
	leaves := debOf(t, tar.Header{Name: "./lib/out", Typeflag: tar.TypeSymlink, Linkname: "/tmp"}, tar.Header{Name: "./lib/out/above", Typeflag: tar.TypeReg})
	if err := unpackDeb(leaves, t.TempDir()); err == nil {
		t.Error("a file outside of the folder is accepted")
	}
}

// The same files make the same image, whenever and wherever.
func TestImagesAreReproducible(t *testing.T) {
	t.Parallel()
	var digests [2]v1.Hash
	for i := range digests {
		b := builder{version: "v7", time: at, scratch: t.TempDir()}
		layer, err := b.layer(t.Context(), "arm64", func(_ context.Context, arch, root string) error {
			return errors.Join(folders(root), os.WriteFile(filepath.Join(root, "sluice"), []byte("for "+arch), 0o755))
		})
		if err != nil {
			t.Fatal(err)
		}
		image, err := b.image("arm64", v1.Config{Cmd: []string{"up"}}, []string{"sluice"}, map[string]v1.Layer{"sluice": layer})
		if err != nil {
			t.Fatal(err)
		}
		if digests[i], err = image.Digest(); err != nil {
			t.Fatal(err)
		}
		config, err := image.ConfigFile()
		if err != nil || config.Architecture != "arm64" || config.OS != "linux" || len(config.RootFS.DiffIDs) != 1 || config.Config.Cmd[0] != "up" || !config.Created.Equal(at) {
			t.Errorf("%+v %v", config, err)
		}
	}
	if digests[0] != digests[1] {
		t.Error("two images of the same files differ")
	}
}

// An image that is told of a program has it, and what runs on films is told of all.
func TestImagesHaveTheProgramsThatTheyName(t *testing.T) {
	t.Parallel()
	with := map[string]bool{"sluice-media": true, "sluice-standalone": true}
	for _, i := range contents() {
		if has := slices.Contains(i.layers, "programs"); has != with[i.name] || has && i.layers[0] != "system" {
			t.Errorf("%s is made of %v", i.name, i.layers)
		}
		for _, told := range engines.Env() {
			variable, _, _ := strings.Cut(told, "=")
			if has := slices.Contains(i.env, told); has != with[i.name] || strings.Count(strings.Join(i.env, " "), variable) > 1 {
				t.Errorf("%s is told %v", i.name, i.env)
			}
		}
		if got, want := i.licences("arm64"), map[bool]string{true: "Apache-2.0 AND CC0-1.0 AND GPL-3.0-or-later AND MIT", false: "Apache-2.0"}[with[i.name]]; got != want {
			t.Errorf("%s is under %s", i.name, got)
		}
		delete(with, i.name)
	}
	if len(with) > 0 {
		t.Errorf("not there: %v", with)
	}
}

func TestTheComposeFileHasTenLines(t *testing.T) {
	t.Parallel()
	out := t.TempDir()
	if err := (builder{version: "v7"}).writeCompose(out); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(out, "compose.yaml"))
	if n := strings.Count(string(text), "\n"); err != nil || n > 10 || !strings.Contains(string(text), "image: sluice-standalone:v7\n") {
		t.Errorf("%d lines, %v:\n%s", n, err, text)
	}
}
