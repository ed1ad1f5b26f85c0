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
	"slices"
	"strings"

	"sluice.dev/sluice/dev/toolchain"
)

// platforms are those that a release has a binary for.
var platforms = []string{"amd64", "arm64"}

// SumsName is the file with the sums of all others.
const SumsName = "SHA256SUMS"

type builder struct {
	version string
	cfg     toolchain.Config
	chain   toolchain.Toolchain
}

// build builds the checkout in source into the folder out, which it empties first,
// and returns the sums.
func (b builder) build(ctx context.Context, source, out string) (sums string, err error) {
	if err := errors.Join(os.RemoveAll(out), os.MkdirAll(out, 0o755)); err != nil {
		return "", err
	}
	for _, arch := range platforms {
		if err := b.binary(ctx, source, arch, filepath.Join(out, "sluice-linux-"+arch)); err != nil {
			return "", err
		}
	}
	if err := b.filters(ctx, source, out); err != nil {
		return "", err
	}
	if err := writeBOM(filepath.Join(out, "sluice-linux-"+platforms[0]), b.version, filepath.Join(out, "sluice.cdx.json")); err != nil {
		return "", err
	}
	if sums, err = sumsOf(out); err != nil {
		return "", err
	}
	return sums, os.WriteFile(filepath.Join(out, SumsName), []byte(sums), 0o644)
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

// filters builds the WASM filters, or takes those of the checkout that are up to date.
func (b builder) filters(ctx context.Context, source, out string) error {
	cfg := b.cfg
	cfg.Root = source
	if err := os.MkdirAll(toolchain.WasmDir(source), 0o755); err != nil {
		return err
	}
	if err := toolchain.BuildFilters(ctx, cfg, b.chain); err != nil {
		return err
	}
	names, err := toolchain.Programs(source)
	if err != nil {
		return err
	}
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(toolchain.WasmDir(source), name+".wasm"))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(out, name+".wasm"), text, 0o644); err != nil {
			return err
		}
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
