package toolchain

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// CommittedDir is where the repository has the built filters, each beside the sum
// of its inputs. The binary embeds what stands there.
func CommittedDir(root string) string { return filepath.Join(root, "deploy", "wasm") }

// Stale lists the programs whose committed build was not made of the present
// sources, by name. It compares sums, and needs no compiler.
func Stale(root string) (stale []string, err error) {
	programs, err := Programs(root)
	if err != nil {
		return nil, err
	}
	for _, name := range programs {
		sum, err := Inputs(root, name)
		if err != nil {
			return nil, err
		}
		have, err := os.ReadFile(committed(root, name, "inputs"))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		if strings.TrimSpace(string(have)) != sum || !exists(committed(root, name, "wasm")) {
			stale = append(stale, name)
		}
	}
	return stale, nil
}

// Commit brings the committed filters up to date: it builds those that are stale,
// and removes those whose program is gone. Where none is stale it needs no compiler.
func Commit(ctx context.Context, cfg Config) error {
	stale, err := Stale(cfg.Root)
	if err != nil {
		return err
	}
	if len(stale) > 0 {
		tc, err := ProvisionTinyGo(ctx, cfg)
		if err != nil {
			return err
		}
		if err := BuildFilters(ctx, cfg, tc, stale); err != nil {
			return err
		}
	}
	for _, name := range stale {
		if err := commitFilter(cfg.Root, name); err != nil {
			return err
		}
		cfg.say("deploy/wasm/%s.wasm is new: commit it with its sources", name)
	}
	return removeGone(cfg.Root)
}

// commitFilter copies a filter and the sum of its inputs, which comes last: a copy
// that is interrupted leaves the filter stale.
func commitFilter(root, name string) error {
	if err := os.MkdirAll(CommittedDir(root), 0o755); err != nil {
		return err
	}
	for _, kind := range []string{"wasm", "inputs"} {
		text, err := os.ReadFile(filepath.Join(WasmDir(root), name+"."+kind))
		if err != nil {
			return err
		}
		if kind == "inputs" {
			text = append(bytes.TrimSpace(text), '\n')
		}
		to := committed(root, name, kind)
		if err := os.WriteFile(to+".new", text, 0o644); err != nil {
			return err
		}
		if err := os.Rename(to+".new", to); err != nil { // an Envoy may be reading it
			return err
		}
	}
	return nil
}

func removeGone(root string) error {
	programs, err := Programs(root)
	if err != nil {
		return err
	}
	for _, kind := range []string{"wasm", "inputs"} {
		files, err := filepath.Glob(committed(root, "*", kind))
		if err != nil {
			return err
		}
		for _, file := range files {
			if !slices.Contains(programs, strings.TrimSuffix(filepath.Base(file), "."+kind)) {
				if err := os.Remove(file); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func committed(root, name, kind string) string {
	return filepath.Join(CommittedDir(root), name+"."+kind)
}
