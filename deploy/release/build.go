package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"sluice.dev/sluice/dev/toolchain"
)

// platforms are those that a release has an archive and images for.
var platforms = []string{"amd64", "arm64"}

// SumsName is the file with the sums of all others.
const SumsName = "SHA256SUMS"

type builder struct {
	version string
	time    time.Time // of the commit: that of every file in an archive or image
	host    string    // a binary that runs here
	cache   string    // for downloads, which are pinned
	scratch string    // for what is put together
	say     func(line string)
}

// build builds the checkout in source into the folder out, which it empties first,
// and returns the sums.
func (b builder) build(ctx context.Context, source, out string) (sums string, err error) {
	stale, err := toolchain.Stale(source)
	if err != nil || len(stale) > 0 {
		return "", errors.Join(err, fmt.Errorf("the committed filters %v are not of the present sources: run `make filters`, and commit deploy/wasm", stale))
	}
	if err := errors.Join(os.RemoveAll(out), os.MkdirAll(out, 0o755)); err != nil {
		return "", err
	}
	if b.scratch, err = os.MkdirTemp("", "sluice-release-build-"); err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(b.scratch) }()
	binary := func(arch string) string { return filepath.Join(b.scratch, "sluice-linux-"+arch) }
	for _, arch := range platforms {
		if err := b.binary(ctx, source, arch, binary(arch)); err != nil {
			return "", err
		}
		if err := toolchain.BuildEngine(ctx, toolchain.Config{Root: source, Path: os.Getenv("PATH")}, arch, b.mediaEngine(arch)); err != nil {
			return "", fmt.Errorf("build the media engine for %s: %w", arch, err)
		}
	}
	b.host = binary(runtime.GOARCH)
	for _, arch := range platforms {
		if err := b.archive(ctx, source, binary(arch), arch, out); err != nil {
			return "", err
		}
		if err := b.images(ctx, binary(arch), arch, out); err != nil {
			return "", err
		}
	}
	if err := b.writeCompose(out); err != nil {
		return "", err
	}
	if err := writeBOM(binary(platforms[0]), b.version, b.mediaEngine, filepath.Join(out, "sluice.cdx.json")); err != nil {
		return "", err
	}
	if sums, err = sumsOf(out); err != nil {
		return "", err
	}
	return sums, os.WriteFile(filepath.Join(out, SumsName), []byte(sums), 0o644)
}

// mediaEngine is where the media engine for an architecture is built.
func (b builder) mediaEngine(arch string) string {
	return filepath.Join(b.scratch, "mediamtx-linux-"+arch)
}

// binary builds the one binary for an architecture. What a machine or a folder has
// of its own is kept out: paths, the state of the checkout, C, build ids.
func (b builder) binary(ctx context.Context, source, arch, out string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-mod=readonly",
		"-ldflags", "-s -w -buildid= -X sluice.dev/sluice/internal/app.Version="+b.version, "-o", out, "./cmd/sluice")
	cmd.Dir = source
	for _, kv := range os.Environ() {
		if name, _, _ := strings.Cut(kv, "="); !slices.Contains([]string{"GOFLAGS", "GOAMD64", "GOARM64", "GOEXPERIMENT", "GOROOT_FINAL"}, name) {
			cmd.Env = append(cmd.Env, kv)
		}
	}
	cmd.Env = append(cmd.Env, "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch)
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build for %s: %w: %s", arch, err, text)
	}
	return nil
}

// sumsOf is what sha256sum prints of the files in a folder, in the order of names.
func sumsOf(dir string) (string, error) {
	files, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	var out strings.Builder
	for _, f := range files {
		if f.Name() == SumsName {
			continue
		}
		sum, err := sumOf(filepath.Join(dir, f.Name()))
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&out, "%s  %s\n", sum, f.Name())
	}
	return out.String(), nil
}

func sumOf(name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
