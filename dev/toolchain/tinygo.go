package toolchain

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// goVersion is the Go whose standard library is compiled into the filters: another
// would make other bytes of them.
const goVersion = "go1.26.8"

// target is how TinyGo compiles for Envoy without a C library of its own.
const target = "dev/toolchain/tinygo-wasip1.json"

// TinyGo is a TinyGo that compiles for Envoy.
type TinyGo struct {
	// Binary is the compiler.
	Binary string
	// Target is the value of -target.
	Target string
	// Env is added to the environment of a build.
	Env []string
}

// ensureTinyGo makes the pinned TinyGo on first use, and finds wasm-opt.
func ensureTinyGo(ctx context.Context, cfg Config) (TinyGo, string, error) {
	needs := tinygoNeeds
	if lookPath(cfg.Path, "g++") == "" && lookPath(cfg.Path, "c++") == "" {
		needs = append(slices.Clone(needs), need{"/usr/bin/g++", "g++"})
	}
	wasmOpt := lookPath(cfg.Path, "wasm-opt")
	if wasmOpt == "" {
		wasmOpt = "/usr/bin/wasm-opt"
		needs = append(slices.Clone(needs), need{wasmOpt, "binaryen"})
	}
	if missing := missingPackages(needs); len(missing) > 0 {
		if err := installPackages(ctx, cfg, missing); err != nil {
			return TinyGo{}, "", fmt.Errorf("TinyGo: %w", err)
		}
	}
	built, err := ensureBuilt(ctx, cfg, wasmOpt)
	return built, wasmOpt, err
}

// ensureBuilt returns the TinyGo below the tools folder, built on first use.
func ensureBuilt(ctx context.Context, cfg Config, wasmOpt string) (TinyGo, error) {
	dir := filepath.Join(cfg.dir(), "tinygo-"+TinyGoVersion())
	if !exists(dir) {
		cfg.say("building TinyGo %s from source (about a minute)", TinyGoVersion())
		if err := buildTinyGo(ctx, cfg, dir); err != nil {
			return TinyGo{}, fmt.Errorf("cannot build TinyGo %s: %w", TinyGoVersion(), err)
		}
	}
	return TinyGo{
		Binary: filepath.Join(dir, "tinygo"),
		Target: filepath.Join(cfg.Root, target),
		Env: []string{
			"GOTOOLCHAIN=" + goVersion, "TINYGOROOT=" + filepath.Join(dir, "root"), "WASMOPT=" + wasmOpt,
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
