package engines

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sluice.dev/sluice/dev/programs"
	"sluice.dev/sluice/media/transcribe/speech"
	"sluice.dev/sluice/media/vision"
	"sluice.dev/sluice/media/voice"
	"sluice.dev/sluice/platform/process/sandbox"
)

func TestMain(m *testing.M) {
	sandbox.Main(nil)
	os.Exit(m.Run())
}

// put lays the programs out from those that `make test` has fetched.
func put(t *testing.T) (at func(programs.Program) string) {
	t.Helper()
	file := os.Getenv("SLUICE_TESSERACT")
	if file == "" {
		t.Fatal("SLUICE_TESSERACT is not set: run `make test`")
	}
	root := t.TempDir()
	if err := Put(t.Context(), func(ctx context.Context, p programs.Program) (string, error) {
		return p.Find(ctx, "", "", filepath.Dir(filepath.Dir(file)))
	}, root); err != nil {
		t.Fatal(err)
	}
	return func(p programs.Program) string { return filepath.Join(root, Path(p)) }
}

// What is laid out runs from there: with its libraries, its models and its voices.
func TestWhatImagesHaveRuns(t *testing.T) {
	t.Parallel()
	at := put(t)
	for _, c := range []struct {
		program        programs.Program
		argument, says string
	}{
		{programs.FFmpeg, "-version", "ffmpeg version 7.0.2"}, {programs.Speech, "--help", "moonshine"},
		{programs.Voice, "--help", "vits"}, {programs.Tesseract, "--version", "tesseract 5.5.2"}, {programs.Engine, "--version", programs.Engine.Version},
	} {
		cmd := exec.CommandContext(t.Context(), at(c.program), c.argument)
		cmd.Env = []string{}
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), c.says) {
			t.Errorf("%s: %v\n%s", c.program.Name, err, out)
		}
	}
	listens := &speech.Program{Path: at(programs.Speech), Dir: t.TempDir()}
	for want, check := range map[string]func(context.Context) (string, error){
		"moonshine": listens.Check, "sherpa-onnx 1.13": voice.Builtin{Program: at(programs.Voice)}.Check, "Tesseract 5.5.2": vision.Builtin{Tesseract: at(programs.Tesseract)}.Check,
	} {
		if version, err := check(t.Context()); err != nil || !strings.Contains(strings.ToLower(version), strings.ToLower(want)) {
			t.Errorf("%s: %q, %v", want, version, err)
		}
	}
}

// An image has what processes need, and no recordings.
func TestTheVariablesNameWhatIsThere(t *testing.T) {
	t.Parallel()
	at := put(t)
	env := Env()
	if len(env) != len(Programs) {
		t.Error(env)
	}
	for i, p := range Programs {
		if env[i] != p.Variable+"="+Path(p) {
			t.Error(env[i])
		}
		info, err := os.Stat(at(p))
		if err != nil || info.Mode().Perm() != 0o755 {
			t.Error(info, err)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(at(programs.Speech)), "*.wav")); len(left) > 0 {
		t.Errorf("%q", left)
	}
}
