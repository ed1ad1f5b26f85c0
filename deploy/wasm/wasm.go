// Package wasm holds the built filters, so that the binary has them: each
// program right below filters/ as NAME.wasm, and the sum of what it was built of
// as NAME.inputs. `make filters` rebuilds those whose sources have changed.
package wasm

import (
	"bytes"
	"embed"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Files are the filters, as NAME.wasm.
//
//go:embed *.wasm
var Files embed.FS

// WriteTo puts the filters into dir, which it makes. A file that is the same
// already stays untouched, and one that differs is replaced as a whole: an Envoy
// that runs may have it open.
func WriteTo(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	files, err := fs.ReadDir(Files, ".")
	if err != nil {
		return err
	}
	for _, f := range files {
		text, err := Files.ReadFile(f.Name())
		if err != nil {
			return err
		}
		to := filepath.Join(dir, f.Name())
		have, err := os.ReadFile(to)
		if err == nil && bytes.Equal(have, text) {
			continue
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := os.WriteFile(to+".new", text, 0o644); err != nil {
			return err
		}
		if err := os.Rename(to+".new", to); err != nil {
			return err
		}
	}
	return nil
}
