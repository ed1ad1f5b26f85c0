// Package wasmtest runs one test body against a filter twice: compiled by Go,
// and as the WASM module that ships, but for the frames of package panicguard, which
// the SDK's host does not know.
package wasmtest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/proxytest"
	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/types"
)

// Both runs body with a fresh, started host for native and for the module name.
// A module that is not built fails the test: `make wasm` builds it.
func Both(t *testing.T, name string, native types.VMContext, config []byte, body func(*testing.T, proxytest.HostEmulator)) {
	t.Helper()
	t.Run("go", func(t *testing.T) { run(t, native, config, body) })
	t.Run("wasm", func(t *testing.T) {
		vm, err := proxytest.NewWasmVMContext(Module(t, name))
		if err != nil {
			t.Fatal(err)
		}
		defer vm.Close()
		run(t, vm, config, body)
	})
}

func run(t *testing.T, vm types.VMContext, config []byte, body func(*testing.T, proxytest.HostEmulator)) {
	t.Helper()
	host, reset := proxytest.NewHostEmulator(proxytest.NewEmulatorOption().WithVMContext(vm).WithPluginConfiguration(config))
	defer reset()
	if s := host.StartVM(); s != types.OnVMStartStatusOK {
		t.Fatalf("the VM does not start: %v", s)
	}
	body(t, host)
}

// Module returns a built module without its guards, from SLUICE_WASM_DIR or the
// checkout's .sluice/wasm.
func Module(t testing.TB, name string) []byte {
	t.Helper()
	return built(t, filepath.Join("unguarded", name))
}

// Guarded returns a built module as it ships.
func Guarded(t testing.TB, name string) []byte {
	t.Helper()
	return built(t, name)
}

func built(t testing.TB, name string) []byte {
	t.Helper()
	dir := os.Getenv("SLUICE_WASM_DIR")
	if dir == "" {
		dir = filepath.Join(root(t), ".sluice", "wasm")
	}
	b, err := os.ReadFile(filepath.Join(dir, name+".wasm"))
	if err != nil {
		t.Fatalf("%v: run `make wasm`", err)
	}
	return b
}

// root is the folder of go.mod.
func root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	for err == nil {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			break
		}
		dir = filepath.Dir(dir)
	}
	t.Fatal("not inside the checkout")
	return ""
}
