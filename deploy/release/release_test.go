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
	"sluice.dev/sluice/deploy/engines"
	"sluice.dev/sluice/dev/fetch"
	"sluice.dev/sluice/dev/programs"
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
	if got := strings.Join(names, ", "); !strings.HasPrefix(got, "go go1.26.8, example.com/a v1.0.0, example.com/c v2.0.0, Envoy ") {
		t.Error(got)
	}
	if (*bom.Components)[1].PackageURL != "pkg:golang/example.com/a@v1.0.0" || len(*(*bom.Dependencies)[0].Dependencies) != 3 {
		t.Errorf("%+v", bom)
	}
}

// What images have beside the binary is named with its licence and its bytes, once for each
// architecture.
func TestBillNamesWhatImagesHave(t *testing.T) {
	t.Parallel()
	bom := billOf(&debug.BuildInfo{}, "v7")
	refs := map[string]bool{}
	licences := map[string]string{}
	for _, c := range *bom.Components {
		if refs[c.BOMRef] {
			t.Errorf("%s is named twice", c.BOMRef)
		}
		refs[c.BOMRef] = true
		if c.Hashes != nil && c.Licenses != nil {
			licences[c.BOMRef] = (*c.Licenses)[0].License.ID
		}
	}
	for ref, licence := range map[string]string{"amd64 ffmpeg 7.0.2": "GPL-3.0-or-later", "arm64 ffmpeg 7.0.2": "GPL-3.0-or-later", "arm64 Tesseract 5.5.2": "Apache-2.0",
		"amd64 the rules of eSpeak NG 1.52": "GPL-3.0-or-later", "amd64 the voice en_US-joe-medium": "CC0-1.0", "arm64 sherpa-onnx 2.0.1": "Apache-2.0", "amd64 PostgreSQL 17.11.0": "PostgreSQL"} {
		if licences[ref] != licence {
			t.Errorf("%s: %q, want %q", ref, licences[ref], licence)
		}
	}
	for _, arch := range platforms {
		for _, p := range engines.Programs {
			if built := p == programs.Engine; (len(fetch.Of(p, arch)) == 0) != built {
				t.Errorf("%s for %s is made of nothing", p.Name, arch)
			}
			for _, f := range fetch.Of(p, arch) {
				if f.Licence == "" {
					t.Errorf("%s has no licence", f.Name)
				}
			}
		}
	}
}

func TestBOMOfABinary(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	engine := func(string) string { return self } // it has modules noted in it too
	var texts [2]string
	for i := range texts {
		name := filepath.Join(t.TempDir(), "bom")
		if err := writeBOM(self, "v7", engine, name); err != nil {
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
	sum, err := sumOf(self)
	if err != nil {
		t.Fatal(err)
	}
	refs, engines := map[string]bool{}, 0
	for _, c := range *bom.Components {
		if refs[c.BOMRef] {
			t.Errorf("%s is named twice", c.BOMRef)
		}
		refs[c.BOMRef] = true
		if c.Hashes != nil && (*c.Hashes)[0].Value == sum && (*c.Licenses)[0].License.ID == "MIT" {
			engines++
		}
	}
	if engines != len(platforms) || len(*bom.Dependencies) != 1+len(platforms) {
		t.Errorf("the media engine is named %d times, with %d lists of modules", engines, len(*bom.Dependencies))
	}
	for _, d := range *bom.Dependencies {
		for _, ref := range *d.Dependencies {
			if !refs[ref] {
				t.Errorf("%s is made of %s, which is not in the bill", d.Ref, ref)
			}
		}
	}
	if err := writeBOM(filepath.Join(t.TempDir(), "none"), "v7", engine, filepath.Join(t.TempDir(), "bom")); err == nil {
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
