package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

func TestBillNamesWhatIsInTheBinary(t *testing.T) {
	t.Parallel()
	info := &debug.BuildInfo{GoVersion: "go1.26.8", Main: debug.Module{Path: "sluice.dev/sluice"}, Deps: []*debug.Module{
		{Path: "example.com/a", Version: "v1.0.0", Sum: "h1:x="},
		{Path: "example.com/b", Version: "v1.0.0", Replace: &debug.Module{Path: "example.com/c", Version: "v2.0.0"}},
	}}
	bom := billOf(info, "v7")
	var names []string
	for _, c := range *bom.Components {
		names = append(names, c.Name+" "+c.Version)
	}
	if got := strings.Join(names, ", "); got != "go go1.26.8, example.com/a v1.0.0, example.com/c v2.0.0" {
		t.Error(got)
	}
	if (*bom.Components)[1].PackageURL != "pkg:golang/example.com/a@v1.0.0" || len(*(*bom.Dependencies)[0].Dependencies) != 3 {
		t.Errorf("%+v", bom)
	}
}

func TestBOMOfABinary(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var texts [2]string
	for i := range texts {
		name := filepath.Join(t.TempDir(), "bom")
		if err := writeBOM(self, "v7", name); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		texts[i] = string(b)
	}
	var bom cdx.BOM
	if err := json.Unmarshal([]byte(texts[0]), &bom); err != nil || texts[0] != texts[1] || bom.Metadata.Component.Version != "v7" {
		t.Errorf("%v\n%s", err, texts[0])
	}
	if err := writeBOM(filepath.Join(t.TempDir(), "none"), "v7", filepath.Join(t.TempDir(), "bom")); err == nil {
		t.Error("a binary that is not there has a bill")
	}
}

func TestSumsAreThoseOfSha256sum(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{"b": "two", "a": "one", SumsName: "not itself"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := sumsOf(dir)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sha256sum", "a", "b")
	cmd.Dir = dir
	want, err := cmd.Output()
	if err != nil || got != string(want) {
		t.Errorf("%v\n%s\nwant\n%s", err, got, want)
	}
}

func TestExportIsTheLastCommit(t *testing.T) {
	t.Parallel()
	root, to := t.TempDir(), filepath.Join(t.TempDir(), "to")
	for _, args := range [][]string{{"init", "-q"}, {"add", "."}, {"-c", "user.name=n", "-c", "user.email=e@example.com", "commit", "-q", "-m", "m"}} {
		if args[0] == "add" {
			if err := os.WriteFile(filepath.Join(root, "kept"), []byte("committed"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := git(t.Context(), root, args...); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "kept"), []byte("changed"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := export(t.Context(), root, to); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(filepath.Join(to, "kept")); err != nil || string(b) != "committed" {
		t.Errorf("%q %v", b, err)
	}
	if err := twice(t.Context(), builder{version: "v1-dirty"}, root); err == nil {
		t.Error("a dirty tree is checked")
	}
}
