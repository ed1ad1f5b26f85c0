package toolchain

import (
	"context"
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sort"

	"golang.org/x/sync/errgroup"
)

// module is the import path of the checkout.
const module = "sluice.dev/sluice"

// WasmDir is where BuildFilters puts <program>.wasm.
func WasmDir(root string) string { return filepath.Join(root, ".sluice", "wasm") }

// buildFlags are how Envoy wants its filters. custommalloc keeps TinyGo from
// exporting its malloc, see CheckExports; wasi-legacy, since the default build mode
// calls proc_exit at the end of main, which Envoy refuses.
var buildFlags = []string{"-buildmode=wasi-legacy", "-scheduler=none", "-opt=2", "-no-debug", "-tags=custommalloc"}

// wasmFeatures are for wasm-opt: those of the target file, and what guards need.
var wasmFeatures = []string{
	"--enable-bulk-memory", "--enable-mutable-globals", "--enable-nontrapping-float-to-int", "--enable-sign-ext", "--enable-exception-handling",
}

// BuildFilters compiles filters, which Programs lists, to .sluice/wasm/<program>.wasm,
// unless nothing one is made of has changed since. It fails if a built filter
// exports TinyGo's malloc.
func BuildFilters(ctx context.Context, cfg Config, tc Toolchain, programs []string) error {
	// Not the lock of the tools: checkouts may share those, and a build is long.
	unlock, err := cfg.lock(WasmDir(cfg.Root))
	if err != nil {
		return err
	}
	defer unlock()
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.NumCPU()) // each takes one for most of its time
	for _, name := range programs {
		g.Go(func() error {
			if err := buildFilter(ctx, cfg, tc, name); err != nil {
				return fmt.Errorf("filter %s: %w", name, err)
			}
			return nil
		})
	}
	return g.Wait()
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
	sum, err := Inputs(cfg.Root, name)
	if err != nil {
		return err
	}
	out := filepath.Join(WasmDir(cfg.Root), name+".wasm")
	stamp := filepath.Join(WasmDir(cfg.Root), name+".inputs")
	if have, err := os.ReadFile(stamp); err == nil && string(have) == sum && exists(out) && exists(unguarded(cfg.Root, name)) {
		return nil
	}
	done := cfg.start("building filters/%s", name)
	if err := Compile(ctx, cfg, tc, "filters/"+name, out, unguarded(cfg.Root, name)); err != nil {
		return err
	}
	done()
	return os.WriteFile(stamp, []byte(sum), 0o644)
}

// unguarded is where a filter without its guards is put.
func unguarded(root, name string) string {
	return filepath.Join(WasmDir(root), "unguarded", name+".wasm")
}

// Compile makes a filter of the main package in folder pkg of the checkout: it
// builds, guards, optimises and checks it. What it is without its guards, for
// hosts that know no exceptions, goes to unguarded; empty: nowhere.
func Compile(ctx context.Context, cfg Config, tc Toolchain, pkg, out, unguarded string) error {
	tmp, err := os.MkdirTemp(filepath.Dir(out), "tmp-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	raw := filepath.Join(tmp, "raw.wasm")
	argv := append([]string{tc.TinyGo.Binary, "build", "-o", raw, "-target=" + tc.TinyGo.Target}, buildFlags...)
	if _, err := run(ctx, command{argv: append(argv, "./"+pkg), dir: cfg.Root, env: tc.TinyGo.Env}); err != nil {
		return err
	}
	bounded, text, err := rewrite(ctx, tc, raw)
	if err != nil {
		return err
	}
	type step struct{ from, made, to string }
	ready := []step{{text, filepath.Join(tmp, "guarded.wasm"), out}}
	if unguarded != "" {
		ready = append(ready, step{bounded, filepath.Join(tmp, "unguarded.wasm"), unguarded})
	}
	for _, p := range ready {
		if err := optimise(ctx, tc, p.from, p.made); err != nil {
			return err
		}
	}
	for _, p := range ready {
		if err := os.MkdirAll(filepath.Dir(p.to), 0o755); err != nil {
			return err
		}
		if err := os.Rename(p.made, p.to); err != nil {
			return err
		}
	}
	return nil
}

// rewrite writes the text of a program with a bound for its memory, and with its
// guards as well, and returns both files.
func rewrite(ctx context.Context, tc Toolchain, program string) (bounded, guarded string, err error) {
	bounded, guarded = program+".wat", program+".guarded.wat"
	if _, err := run(ctx, command{argv: slices.Concat([]string{tc.WasmOpt}, wasmFeatures, []string{"-S", program, "-o", bounded})}); err != nil {
		return "", "", err
	}
	raw, err := os.ReadFile(bounded)
	if err != nil {
		return "", "", err
	}
	text, err := Bound(string(raw))
	if err == nil {
		err = os.WriteFile(bounded, []byte(text), 0o644)
	}
	if err == nil {
		text, err = Guard(text)
	}
	if err == nil {
		err = os.WriteFile(guarded, []byte(text), 0o644)
	}
	return bounded, guarded, err
}

// optimise runs wasm-opt, and checks what it made.
func optimise(ctx context.Context, tc Toolchain, from, to string) error {
	if _, err := run(ctx, command{argv: slices.Concat([]string{tc.WasmOpt, "-O4"}, wasmFeatures, []string{from, "-o", to})}); err != nil {
		return err
	}
	module, err := os.ReadFile(to)
	if err != nil {
		return err
	}
	return CheckExports(module)
}
