package fetch

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sluice.dev/sluice/dev/programs"
)

func TestEnginesArePinnedAtTheVersionsThatAreUsed(t *testing.T) {
	t.Parallel()
	for arch := range pins {
		listen, speak := recognisers[arch], speakers[arch]
		versions := map[File]string{
			listen.programs: programs.Speech.Version, listen.library: programs.Speech.Version,
			speak.programs: programs.Voice.Version, speak.library: programs.Voice.Version, readers[arch]: programs.Tesseract.Version,
		}
		for f, version := range versions {
			if !strings.Contains(f.URL, "-"+version+"-") {
				t.Errorf("%s: %+v is not %s", arch, f, version)
			}
		}
		for _, f := range slices.AppendSeq([]File{moonshine, silero, voice, pronunciation}, maps.Keys(versions)) {
			if sum, err := hex.DecodeString(f.SHA256); err != nil || len(sum) != sha256.Size || f.Size == 0 || !strings.HasPrefix(f.URL, "https://") {
				t.Errorf("%s: %+v", arch, f)
			}
		}
	}
}

// An engine's folder is there whole, with its program, or not at all.
func TestAnEngineIsMadeOfItsParts(t *testing.T) {
	t.Parallel()
	wheel := zipped(t, map[string]string{"a/bin/tool": "program", "a/data/": "", "a/data/x": "1", "a/data/deep/y": "2", "a/other": "not this one", "z/a/bin/tool": "program"})
	r := serve(t, wheel, 0)
	cfg := r.config(t)
	p := programs.Program{Name: "tool", Version: "1", Inside: "tool", Variable: "SLUICE_TOOL"}
	parts := []part{{pinOf(wheel), map[string]string{"a/bin/tool": "tool", "a/data/": "data"}}}
	path, err := cfg.engine(t.Context(), p, "Tool 1", parts, func(string) error { return nil })
	if err != nil || path != p.Pinned(cfg.Tools) {
		t.Fatal(path, err)
	}
	dir := filepath.Dir(path)
	for name, want := range map[string]string{"tool": "program", "data/x": "1", "data/deep/y": "2", "VERSION": "Tool 1\n"} {
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != want {
			t.Errorf("%s: %q %v", name, got, err)
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o755 {
		t.Error(info, err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) != 3 {
		t.Errorf("%q", left)
	}
	p.Version, parts[0].take["a/missing"] = "2", "missing"
	_, err = cfg.engine(t.Context(), p, "Tool 2", parts, func(string) error { return nil })
	if left, _ := filepath.Glob(filepath.Join(cfg.Tools, "tool-2*")); err == nil || !strings.Contains(err.Error(), "a/missing") || !strings.Contains(err.Error(), "SLUICE_TOOL") || len(left) > 1 { // its lock
		t.Errorf("%v; left: %q", err, left)
	}
	p.Version, parts[0].file.SHA256 = "3", pinOf([]byte("another")).SHA256
	_, err = cfg.engine(t.Context(), p, "Tool 3", parts, func(string) error { return nil })
	if left, _ := filepath.Glob(filepath.Join(cfg.Tools, "tool-3*")); err == nil || !strings.Contains(err.Error(), "not what is pinned") || len(left) > 1 {
		t.Errorf("%v; left: %q", err, left)
	}
}

func TestAnArchiveOfAnEngineStaysInItsFolder(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	dir := filepath.Join(parent, "dir")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := take(writeFile(t, zipped(t, map[string]string{"a/../../above": "x"})), map[string]string{"a/": "in"}, dir); err == nil {
		t.Error("a file above its folder is taken")
	}
	if _, err := os.Stat(filepath.Join(parent, "above")); err == nil {
		t.Error("it is there")
	}
}

// The metadata that stands behind a model is what a reader of protocol buffers finds
// there: field 14, with key and value.
func TestAVoiceIsPrepared(t *testing.T) {
	t.Parallel()
	model := filepath.Join(t.TempDir(), "v.onnx")
	if err := os.WriteFile(model, []byte("model"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(model+".json", []byte(`{"audio": {"sample_rate": 22050}, "espeak": {"voice": "en-us"}, "language": {"name_english": "English"}, "num_speakers": 1,
		"phoneme_id_map": {"a": [14], " ": [3], "\n": [9], "empty": []}}`), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := prepareVoice(model); err != nil {
		t.Fatal(err)
	}
	if tokens, err := os.ReadFile(filepath.Join(filepath.Dir(model), "tokens.txt")); err != nil || string(tokens) != "  3\na 14\n" {
		t.Errorf("%q %v", tokens, err)
	}
	got, err := os.ReadFile(model)
	if err != nil || !bytes.HasPrefix(got, []byte("model\x72\x12\x0a\x0amodel_type\x12\x04vits")) || !bytes.HasSuffix(got, []byte("\x72\x14\x0a\x0bsample_rate\x12\x0522050")) {
		t.Errorf("%q %v", got, err)
	}
}
