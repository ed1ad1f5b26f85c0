package fetch

import (
	"bytes"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sluice.dev/sluice/dev/programs"
)

func TestPinsOfTheSpeechEngine(t *testing.T) {
	t.Parallel()
	if speechVersion != programs.Speech.Version {
		t.Errorf("%s is pinned, %s is used", speechVersion, programs.Speech.Version)
	}
	all := []File{moonshine, silero}
	for arch := range pins {
		all = append(all, sherpas[arch].program, sherpas[arch].library)
	}
	for _, f := range all {
		if sum, err := hex.DecodeString(f.SHA256); err != nil || len(sum) != 32 || f.Size == 0 || !strings.HasPrefix(f.URL, "https://") {
			t.Errorf("%+v", f)
		}
	}
}

func TestTokens(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 200)
	got, err := tokens([]byte("\x02<s\x04▁t\x00" + string([]byte{200 - 128 + 128, 1}) + long))
	if err != nil || got != "PHM= 0\nIHQ= 1\n 2\n"+"eHh4"+strings.Repeat("eHh4", 65)+"eHg= 3\n" {
		t.Errorf("%q %v", got, err)
	}
	if _, err := tokens([]byte("\x05abc")); err == nil {
		t.Error("a tokenizer that is cut off is read")
	}
}

func TestABundleIsThereWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	first, second := zipped(t, map[string]string{"pkg/bin/tool": "tool"}), zipped(t, map[string]string{"pkg/model/tokenizer.bin": "\x01a", "pkg/other": "x"})
	for name, c := range map[string]struct {
		second []byte
		inside string
		want   string
	}{
		"whole":            {second, "model/tokenizer.bin", ""},
		"a file is absent": {second, "model/none", "the archive holds no"},
		"another wheel":    {first, "model/tokenizer.bin", "not what is pinned"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			one, two := serve(t, first, 0), serve(t, c.second, 0)
			cfg := one.config(t)
			dir := filepath.Join(cfg.Tools, "speech-1")
			f, g := pinOf(first), pinOf(second)
			f.URL, g.URL = one.URL+"/one.whl", two.URL+"/two.whl"
			cfg.Transport = nil
			err := cfg.bundle(t.Context(), dir, []wheel{{f, []string{"bin/tool"}}, {g, []string{c.inside}}}, makeTokens)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Fatal(err)
			}
			left, _ := os.ReadDir(cfg.Tools)
			if err != nil {
				if len(left) != 0 {
					t.Errorf("left behind: %v", left)
				}
				return
			}
			files, _ := os.ReadDir(dir)
			text, _ := os.ReadFile(filepath.Join(dir, "tokens.txt"))
			if len(left) != 1 || len(files) != 2 || !bytes.Equal(text, []byte("YQ== 0\n")) {
				t.Errorf("%v %v %q", left, files, text)
			}
		})
	}
}
