package tools

import (
	"context"
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"sort"
	"strings"
)

// module is the import path of the checkout.
const module = "sluice.dev/sluice"

// WasmDir is where BuildFilters puts <program>.wasm.
func WasmDir(root string) string { return filepath.Join(root, ".sluice", "wasm") }

// buildFlags are how Envoy wants its filters. custommalloc keeps TinyGo from
// exporting its malloc, see CheckExports; wasi-legacy, since the default build mode
// calls proc_exit at the end of main, which Envoy refuses.
var buildFlags = []string{"-buildmode=wasi-legacy", "-scheduler=none", "-opt=2", "-no-debug", "-tags=custommalloc"}

// optFlags are for wasm-opt: the features are those of the target file.
var optFlags = []string{"-O4", "--enable-bulk-memory", "--enable-mutable-globals", "--enable-nontrapping-float-to-int", "--enable-sign-ext"}

// BuildFilters compiles each main package right below filters/ to
// .sluice/wasm/<program>.wasm, unless nothing it is made of has changed since.
// It fails if a built filter exports TinyGo's malloc.
func BuildFilters(ctx context.Context, cfg Config, tc Toolchain) error {
	// Not the lock of the tools: checkouts may share those, and a build is long.
	unlock, err := cfg.lock(WasmDir(cfg.Root))
	if err != nil {
		return err
	}
	defer unlock()
	programs, err := Programs(cfg.Root)
	if err != nil {
		return err
	}
	for _, name := range programs {
		if err := buildFilter(ctx, cfg, tc, name); err != nil {
			return fmt.Errorf("filter %s: %w", name, err)
		}
	}
	return nil
}

// Programs lists the filters: the folders right below filters/ that hold a
// main package, by name.
func Programs(root string) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(root, "filters", "*", "*.go"))
	if err != nil {
		return nil, err
	}
	mains := map[string]bool{}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.PackageClauseOnly)
		if err != nil {
			return nil, err
		}
		if parsed.Name.Name == "main" {
			mains[filepath.Base(filepath.Dir(file))] = true
		}
	}
	var names []string
	for name := range mains {
		names = append(names, name)
	}
	sort.Strings(names)
	return names, nil
}

func buildFilter(ctx context.Context, cfg Config, tc Toolchain, name string) error {
	// The target without its folder, so that checkouts agree: what the file says is
	// an input of its own.
	recipe := strings.Join(append(append([]string{tc.TinyGo.Version, filepath.Base(tc.TinyGo.Target)}, buildFlags...), optFlags...), " ")
	sum, err := inputSum(cfg.Root, "filters/"+name, recipe)
	if err != nil {
		return err
	}
	out := filepath.Join(WasmDir(cfg.Root), name+".wasm")
	stamp := filepath.Join(WasmDir(cfg.Root), name+".inputs")
	if have, err := os.ReadFile(stamp); err == nil && string(have) == sum && exists(out) {
		return nil
	}
	cfg.say("building filters/%s", name)
	tmp, err := os.MkdirTemp(WasmDir(cfg.Root), "tmp-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	if err := compile(ctx, cfg, tc, name, filepath.Join(tmp, "out.wasm")); err != nil {
		return err
	}
	if err := os.Rename(filepath.Join(tmp, "out.wasm"), out); err != nil {
		return err
	}
	return os.WriteFile(stamp, []byte(sum), 0o644)
}

// compile builds, optimises and checks one filter.
func compile(ctx context.Context, cfg Config, tc Toolchain, name, out string) error {
	raw := out + ".raw"
	argv := append([]string{tc.TinyGo.Binary, "build", "-o", raw, "-target=" + tc.TinyGo.Target}, buildFlags...)
	build := command{argv: append(argv, "./filters/"+name), dir: cfg.Root, env: tc.TinyGo.Env}
	if _, err := run(ctx, build); err != nil {
		return err
	}
	opt := command{argv: append(append([]string{tc.WasmOpt}, optFlags...), raw, "-o", out)}
	if _, err := run(ctx, opt); err != nil {
		return err
	}
	text, err := os.ReadFile(out)
	if err != nil {
		return err
	}
	return CheckExports(text)
}
