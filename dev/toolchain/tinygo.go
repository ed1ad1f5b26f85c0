package toolchain

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
)

// minTinyGoMinor is the oldest 0.x of an official TinyGo that is used as it is.
const minTinyGoMinor = 41

// TinyGo is a TinyGo that compiles for Envoy.
type TinyGo struct {
	// Binary is the compiler.
	Binary string
	// Version is what it reports, for instance "0.41.1".
	Version string
	// Target is the value of -target.
	Target string
	// Env is added to the environment of a build.
	Env []string
}

// ensureTinyGo finds an official TinyGo or makes one, and finds wasm-opt.
func ensureTinyGo(ctx context.Context, cfg Config) (TinyGo, string, error) {
	official, found := findOfficial(ctx, cfg.Path)
	var needs []need
	if !found {
		needs = append(needs, tinygoNeeds...)
		if lookPath(cfg.Path, "g++") == "" && lookPath(cfg.Path, "c++") == "" {
			needs = append(needs, need{"/usr/bin/g++", "g++"})
		}
	}
	wasmOpt := lookPath(cfg.Path, "wasm-opt")
	if wasmOpt == "" {
		wasmOpt = "/usr/bin/wasm-opt"
		needs = append(needs, need{wasmOpt, "binaryen"})
	}
	if missing := missingPackages(needs); len(missing) > 0 {
		if err := installPackages(ctx, cfg, missing); err != nil {
			return TinyGo{}, "", fmt.Errorf("TinyGo: %w", err)
		}
	}
	if found {
		return official, wasmOpt, nil
	}
	built, err := ensureBuilt(ctx, cfg, wasmOpt)
	return built, wasmOpt, err
}

// findOfficial looks for a release of TinyGo on path: one that brings its own
// C library, so that -target=wasip1 works.
func findOfficial(ctx context.Context, path string) (TinyGo, bool) {
	binary := lookPath(path, "tinygo")
	if binary == "" {
		return TinyGo{}, false
	}
	out, err := run(ctx, command{argv: []string{binary, "version"}})
	version, ok := parseTinyGoVersion(out)
	if err != nil || !ok {
		return TinyGo{}, false
	}
	root, err := run(ctx, command{argv: []string{binary, "env", "TINYGOROOT"}})
	if err != nil || !exists(filepath.Join(root, "lib", "wasi-libc", "sysroot")) {
		return TinyGo{}, false
	}
	return TinyGo{Binary: binary, Version: version, Target: "wasip1"}, true
}

var tinygoVersionPattern = regexp.MustCompile(`^tinygo version (0\.(\d+)\.\d+)`)

// parseTinyGoVersion reads "tinygo version 0.41.1 linux/amd64 (…)"; false if
// that is not a version that will do.
func parseTinyGoVersion(text string) (string, bool) {
	m := tinygoVersionPattern.FindStringSubmatch(text)
	if m == nil {
		return "", false
	}
	minor, err := strconv.Atoi(m[2])
	return m[1], err == nil && minor >= minTinyGoMinor
}

// ensureBuilt returns the TinyGo below the tools folder, built on first use.
func ensureBuilt(ctx context.Context, cfg Config, wasmOpt string) (TinyGo, error) {
	dir := filepath.Join(cfg.dir(), "tinygo-"+TinyGoVersion())
	if !exists(dir) {
		cfg.say("building TinyGo %s from source (about a minute)", TinyGoVersion())
		if err := buildTinyGo(ctx, cfg, dir); err != nil {
			return TinyGo{}, fmt.Errorf("cannot build TinyGo %s: %w; or put an official TinyGo >= 0.%d on PATH", TinyGoVersion(), err, minTinyGoMinor)
		}
	}
	return TinyGo{
		Binary:  filepath.Join(dir, "tinygo"),
		Version: TinyGoVersion(),
		Target:  filepath.Join(cfg.Root, "dev", "toolchain", "tinygo-wasip1.json"),
		Env: []string{
			"TINYGOROOT=" + filepath.Join(dir, "root"), "WASMOPT=" + wasmOpt,
			"PATH=" + cfg.Path + ":" + llvm + "/bin",
		},
	}, nil
}

const tinygoModule = "github.com/tinygo-org/tinygo"

// buildTinyGo compiles TinyGo in a module made for it, since `go install` takes
// no module with replacements, and lays its library beside it.
func buildTinyGo(ctx context.Context, cfg Config, dir string) error {
	tmp, err := os.MkdirTemp(cfg.dir(), "tmp-tinygo-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	files := map[string]string{
		"go.mod":   "module tinygo\n\ngo 1.26\n\nrequire " + tinygoModule + " v" + TinyGoVersion() + "\n",
		"tools.go": "//go:build tools\n\npackage tools\n\nimport _ \"" + tinygoModule + "\"\n",
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(tmp, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	env := []string{"GOFLAGS=-mod=mod -buildvcs=false", "GOWORK=off", "CGO_ENABLED=1"}
	if _, err := run(ctx, command{argv: []string{"go", "build", "-tags", "llvm19", "-o", "tinygo", tinygoModule}, dir: tmp, env: env}); err != nil {
		return err
	}
	source, err := run(ctx, command{argv: []string{"go", "list", "-m", "-f", "{{.Dir}}", tinygoModule}, dir: tmp, env: env})
	if err != nil {
		return err
	}
	root := filepath.Join(tmp, "root")
	if err := os.CopyFS(root, os.DirFS(source)); err != nil {
		return err
	}
	// A git submodule stands there, which the module leaves out; TinyGo wants the folder.
	if err := os.MkdirAll(filepath.Join(root, "src", "net"), 0o755); err != nil {
		return err
	}
	if err := os.Chmod(tmp, 0o755); err != nil {
		return err
	}
	return os.Rename(tmp, dir)
}
