package wasm

import (
	"bytes"
	"cmp"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/dev/toolchain"
)

const root = "../.."

// What is committed was built of the sources beside it: `make test` has rebuilt
// every filter with TinyGo, and the bytes are the same.
func TestFiltersAreThoseOfTheSources(t *testing.T) {
	t.Parallel()
	programs, err := toolchain.Programs(root)
	if err != nil || len(programs) == 0 {
		t.Fatal(programs, err)
	}
	if stale, err := toolchain.Stale(root); err != nil || len(stale) > 0 {
		t.Fatalf("the sources of %v have changed: run `make filters` and commit deploy/wasm (%v)", stale, err)
	}
	files, err := Files.ReadDir(".")
	if err != nil || len(files) != len(programs) {
		t.Errorf("%d files of %d programs: %v", len(files), len(programs), err)
	}
	rebuilt := cmp.Or(os.Getenv("SLUICE_WASM_DIR"), toolchain.WasmDir(root))
	for _, name := range programs {
		sum, err := toolchain.Inputs(root, name)
		if err != nil {
			t.Fatal(err)
		}
		stamp, err := os.ReadFile(filepath.Join(rebuilt, name+".inputs"))
		if err != nil || strings.TrimSpace(string(stamp)) != sum {
			t.Fatalf("%s holds no build of the present sources of %s: run `make wasm` (%v)", rebuilt, name, err)
		}
		want, err := os.ReadFile(filepath.Join(rebuilt, name+".wasm"))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := Files.ReadFile(name + ".wasm"); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s.wasm: what is committed (%d bytes) is not what TinyGo makes of the sources (%d bytes): %v", name, len(got), len(want), err)
		}
	}
}

func TestWriteToReplacesOnlyWhatDiffers(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "wasm")
	if err := WriteTo(dir); err != nil {
		t.Fatal(err)
	}
	same, other := filepath.Join(dir, "edge.wasm"), filepath.Join(dir, "keysync.wasm")
	long := time.Unix(1, 0)
	if err := os.Chtimes(same, long, long); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(other, []byte("of an older version"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := WriteTo(dir); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(same); err != nil || !info.ModTime().Equal(long) {
		t.Errorf("a file that was right was written again: %v", err)
	}
	want, _ := Files.ReadFile("keysync.wasm")
	if got, err := os.ReadFile(other); err != nil || !bytes.Equal(got, want) {
		t.Errorf("the older one is still there: %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*.new")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
