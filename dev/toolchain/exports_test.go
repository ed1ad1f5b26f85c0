package toolchain

import (
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// module builds a WebAssembly module with a custom section and these exports.
func wasmModule(exports ...string) []byte {
	body := []byte{byte(len(exports))}
	for i, name := range exports {
		body = append(append(append(body, byte(len(name))), name...), 0, byte(i))
	}
	out := append([]byte("\x00asm\x01\x00\x00\x00"), 0, 3, 2, 'n', 'x') // custom section "nx"
	return append(append(out, exportSection, byte(len(body))), body...)
}

func TestAModuleThatExportsMallocIsRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		module []byte
		want   error
	}{
		"TinyGo's malloc":      {wasmModule("proxy_on_tick", "malloc", "free"), ErrExportsMalloc},
		"a malloc of its own":  {wasmModule("proxy_on_tick", "malloc"), nil},
		"Envoy's own function": {wasmModule("proxy_on_memory_allocate", "mallocx", "xmalloc"), nil},
		"no exports":           {wasmModule(), nil},
		"no export section":    {[]byte("\x00asm\x01\x00\x00\x00"), nil},
		"empty":                {nil, errWasm},
		"another version":      {[]byte("\x00asm\x02\x00\x00\x00"), errWasm},
		"a component":          {[]byte("\x00asm\x0d\x00\x01\x00"), errWasm},
		"cut in the section":   {wasmModule("malloc")[:18], errWasm},
		"cut in the names":     {[]byte("\x00asm\x01\x00\x00\x00\x07\x02\x01\x06"), errWasm},
		"no count":             {[]byte("\x00asm\x01\x00\x00\x00\x07\x00"), errWasm},
	} {
		if err := CheckExports(c.module); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

func TestExportsOfARealModule(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "envoy", "testdata", "idle.wasm.hex"))
	if err != nil {
		t.Fatal(err)
	}
	module, err := hex.DecodeString(strings.Join(strings.Fields(string(text)), ""))
	if err != nil {
		t.Fatal(err)
	}
	got, err := Exports(module)
	want := []string{"memory", "_initialize", "proxy_abi_version_0_2_1", "proxy_on_memory_allocate"}
	if err != nil || !slices.Equal(got, want) {
		t.Fatalf("exports %v, %v; want %v", got, err, want)
	}
}

func FuzzExports(f *testing.F) {
	f.Add(wasmModule("malloc"))
	f.Add(wasmModule())
	f.Add([]byte("\x00asm\x01\x00\x00\x00\x07\xff\xff\xff\xff\x0f"))
	f.Fuzz(func(t *testing.T, module []byte) {
		names, err := Exports(module)
		if err != nil {
			return
		}
		total := 0
		for _, n := range names {
			total += len(n)
		}
		if total+len(names) > len(module) {
			t.Fatalf("%d names of %d bytes from a module of %d", len(names), total, len(module))
		}
	})
}
