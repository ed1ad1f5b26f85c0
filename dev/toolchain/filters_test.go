package toolchain

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sluice.dev/sluice/platform/process/child/childtest"
)

// checkout is a small module with one filter and fake tools.
type checkout struct {
	cfg      Config
	tc       Toolchain
	progress *bytes.Buffer
}

// newCheckout makes a checkout whose compiler and optimiser copy built to their output.
func newCheckout(t *testing.T, built []byte) *checkout {
	t.Helper()
	c := &checkout{progress: &bytes.Buffer{}}
	c.cfg = Config{Root: t.TempDir(), Progress: c.progress}
	c.write(t, "go.mod", "module "+module+"\n")
	c.write(t, "go.sum", "")
	c.write(t, "dev/toolchain/tinygo-wasip1.json", "{}")
	c.write(t, "dev/toolchain/guard.go", "package tools\n")
	c.write(t, "filters/edge/main.go", "package main\n\nimport _ \"sluice.dev/sluice/filters/scopes\"\n\nfunc main() {}\n")
	c.write(t, "filters/scopes/scopes.go", "package scopes\n\nimport _ \"x.test/host/call\"\n")
	c.write(t, "filters/caps/caps.go", "package caps\n")
	c.write(t, "built.wasm", string(built))
	c.tc.TinyGo = TinyGo{Binary: c.script(t, "tinygo", `cp built.wasm "$3"`), Target: "wasip1"}
	c.tc.WasmOpt = c.script(t, "wasm-opt", `for out; do :; done
case " $* " in
*" -S "*) printf '(module\n (memory $m 1)\n)\n' >"$out";;
*) cp `+filepath.Join(c.cfg.Root, "built.wasm")+` "$out";;
esac`)
	return c
}

func (c *checkout) write(t *testing.T, name, text string) {
	t.Helper()
	file := filepath.Join(c.cfg.Root, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	childtest.Program(t, file, text)
}

// script writes a shell script and returns its path.
func (c *checkout) script(t *testing.T, name, text string) string {
	t.Helper()
	c.write(t, "bin/"+name, "#!/bin/sh\nset -e\n"+text+"\n")
	return filepath.Join(c.cfg.Root, "bin", name)
}

// builds counts how many filters a build compiled.
func (c *checkout) builds(t *testing.T) int {
	t.Helper()
	c.progress.Reset()
	if err := BuildFilters(context.Background(), c.cfg, c.tc, []string{"edge"}); err != nil {
		t.Fatal(err)
	}
	return strings.Count(c.progress.String(), ": done in")
}

func TestAFilterIsBuiltWhenWhatItIsMadeOfHasChanged(t *testing.T) {
	t.Parallel()
	c := newCheckout(t, wasmModule("proxy_on_memory_allocate"))
	if got := c.builds(t); got != 1 {
		t.Fatalf("first build: %d", got)
	}
	if got := c.builds(t); got != 0 {
		t.Errorf("built again without a change")
	}
	for _, step := range []struct {
		what, file, text string
		want             int
	}{
		{"its own source", "filters/edge/main.go", "package main\n\nimport _ \"sluice.dev/sluice/filters/scopes\"\n\nfunc main() { println() }\n", 1},
		{"a package that it imports", "filters/scopes/scopes.go", "package scopes\n\nimport _ \"x.test/host/call\"\n\nvar X int\n", 1},
		{"a package that it does not import", "filters/caps/caps.go", "package caps\n\nvar X int\n", 0},
		{"a test", "filters/scopes/scopes_test.go", "package scopes\n", 0},
		{"Go's version", "go.mod", "module " + module + "\n\ngo 1.26\n", 1},
		{"the version of a module it imports", "go.mod", "module " + module + "\n\ngo 1.26\n\nrequire x.test/host v1.0.0\n", 1},
		{"the version of another module", "go.mod", "module " + module + "\n\ngo 1.26\n\nrequire x.test/host v1.0.0\n\nrequire x.test/ho v1.0.0\n", 0},
		{"what guards it", "dev/toolchain/guard.go", "package tools\n\nvar X int\n", 1},
		{"the target", "dev/toolchain/tinygo-wasip1.json", "{ }", 1},
	} {
		c.write(t, step.file, step.text)
		if got := c.builds(t); got != step.want {
			t.Errorf("after a change of %s: %d builds, want %d", step.what, got, step.want)
		}
	}
}

func TestABuildThatExportsMallocFailsAndLeavesTheOldOne(t *testing.T) {
	t.Parallel()
	c := newCheckout(t, wasmModule("proxy_on_memory_allocate"))
	c.builds(t)
	c.write(t, "built.wasm", string(wasmModule("malloc", "free")))
	c.write(t, "filters/scopes/scopes.go", "package scopes\n\nvar X int\n")
	if err := BuildFilters(context.Background(), c.cfg, c.tc, []string{"edge"}); !errors.Is(err, ErrExportsMalloc) {
		t.Fatalf("err = %v, want ErrExportsMalloc", err)
	}
	kept, err := os.ReadFile(filepath.Join(WasmDir(c.cfg.Root), "edge.wasm"))
	if err != nil || !bytes.Equal(kept, wasmModule("proxy_on_memory_allocate")) {
		t.Errorf("the last good filter was not kept (%v)", err)
	}
	if entries, _ := filepath.Glob(filepath.Join(WasmDir(c.cfg.Root), "tmp-*")); len(entries) > 0 {
		t.Errorf("left behind: %v", entries)
	}
}

func TestABuildErrorIsOneLineWithTheCompilersWord(t *testing.T) {
	t.Parallel()
	c := newCheckout(t, nil)
	c.tc.TinyGo.Binary = c.script(t, "tinygo", "echo '# pkg' >&2; echo 'main.go:3: undefined: x' >&2; exit 1")
	err := BuildFilters(context.Background(), c.cfg, c.tc, []string{"edge"})
	if err == nil || err.Error() != "filter edge: tinygo: main.go:3: undefined: x" {
		t.Fatalf("err = %v", err)
	}
}

func TestPrograms(t *testing.T) {
	t.Parallel()
	c := newCheckout(t, nil)
	c.write(t, "filters/chatcaps/main.go", "package main\n")
	if got, err := Programs(c.cfg.Root); err != nil || !slices.Equal(got, []string{"chatcaps", "edge"}) {
		t.Fatalf("programs %v, %v", got, err)
	}
}
