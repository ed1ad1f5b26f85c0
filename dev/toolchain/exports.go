package toolchain

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
)

// ErrExportsMalloc says that a filter would leak. Envoy prefers an exported
// malloc to proxy_on_memory_allocate, and TinyGo's keeps every block until a
// free that nobody calls: 70 to 140 bytes stay behind with each request. It is
// known by that free, which a malloc of the filter's own does without.
var ErrExportsMalloc = errors.New("the module exports TinyGo's malloc, so every buffer that Envoy hands over would leak: build with -tags=custommalloc")

// errWasm says that bytes are not a WebAssembly module.
var errWasm = errors.New("not a well-formed WebAssembly module")

// exportSection is the id of the section that names the exports
// (WebAssembly core specification, 5.5.10).
const exportSection = 7

// CheckExports returns ErrExportsMalloc if the module exports malloc and free,
// and an error if it is no WebAssembly module of version 1.
func CheckExports(module []byte) error {
	names, err := Exports(module)
	if err == nil && slices.Contains(names, "malloc") && slices.Contains(names, "free") {
		err = ErrExportsMalloc
	}
	return err
}

// Exports returns the names that a module exports, in its order.
func Exports(module []byte) ([]string, error) {
	r := wasmReader{module}
	if !bytes.Equal(r.take(8), []byte("\x00asm\x01\x00\x00\x00")) {
		return nil, errWasm
	}
	for len(r.rest) > 0 {
		id := r.take(1)
		section := r.take(r.number())
		if id == nil || section == nil {
			return nil, errWasm
		}
		if id[0] == exportSection {
			return exportNames(wasmReader{section})
		}
	}
	return nil, nil
}

// exportNames reads: count, then of each export its name, kind and index.
func exportNames(r wasmReader) ([]string, error) {
	n := r.number()
	if n < 0 {
		return nil, errWasm
	}
	var names []string
	for ; n > 0; n-- {
		name := r.take(r.number())
		kind := r.take(1)
		if name == nil || kind == nil || r.number() < 0 {
			return nil, errWasm
		}
		names = append(names, string(name))
	}
	return names, nil
}

// wasmReader reads from the front of rest.
type wasmReader struct{ rest []byte }

// take returns the next n bytes; nil if there are not that many.
func (r *wasmReader) take(n int) []byte {
	if n < 0 || n > len(r.rest) {
		return nil
	}
	head := r.rest[:n:n]
	r.rest = r.rest[n:]
	return head
}

// number reads an unsigned LEB128; -1 if there is none.
func (r *wasmReader) number() int {
	v, n := binary.Uvarint(r.rest)
	if n <= 0 || v > 1<<32-1 {
		return -1
	}
	r.rest = r.rest[n:]
	return int(v)
}
