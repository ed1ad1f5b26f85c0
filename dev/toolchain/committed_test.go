package toolchain

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// stale wants exactly these to be out of date.
func (c *checkout) stale(t *testing.T, want ...string) {
	t.Helper()
	if got, err := Stale(c.cfg.Root); err != nil || !slices.Equal(got, want) {
		t.Errorf("stale: %v, %v; want %v", got, err, want)
	}
}

// A committed filter is up to date until what it is made of changes, and needs no
// compiler while it is: the checkout of this test has none.
func TestCommittedFiltersGoByTheirInputs(t *testing.T) {
	t.Parallel()
	c := newCheckout(t, wasmModule("proxy_on_memory_allocate"))
	c.stale(t, "edge")
	c.builds(t)
	if err := commitFilter(c.cfg.Root, "edge"); err != nil {
		t.Fatal(err)
	}
	c.stale(t)
	c.write(t, "deploy/wasm/gone.wasm", "of a program that is no more")
	c.write(t, "deploy/wasm/gone.inputs", "00")
	c.cfg.Path = t.TempDir()
	if err := Commit(context.Background(), c.cfg); err != nil {
		t.Errorf("nothing is stale: %v", err)
	}
	files, err := os.ReadDir(CommittedDir(c.cfg.Root))
	if err != nil || len(files) != 2 || files[0].Name() != "edge.inputs" || files[1].Name() != "edge.wasm" {
		t.Errorf("%v %v", files, err)
	}
	c.write(t, "filters/scopes/scopes.go", "package scopes\n\nvar X int\n")
	c.stale(t, "edge")
	c.builds(t)
	if err := commitFilter(c.cfg.Root, "edge"); err != nil {
		t.Fatal(err)
	}
	c.stale(t)
	if err := os.Remove(filepath.Join(CommittedDir(c.cfg.Root), "edge.wasm")); err != nil {
		t.Fatal(err)
	}
	c.stale(t, "edge")
}
