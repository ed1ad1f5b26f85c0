package programs

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sluice.dev/sluice/platform/process/child/childtest"
)

// program writes one that reports version.
func program(t *testing.T, file, version string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	childtest.Program(t, file, "#!/bin/sh\necho "+version+"\n")
}

func TestWhereProgramsAreFound(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	own, right, old, tools := filepath.Join(dir, "own"), filepath.Join(dir, "right"), filepath.Join(dir, "old"), filepath.Join(dir, "tools")
	program(t, own, "anything")
	program(t, filepath.Join(right, "mediamtx"), Engine.Version)
	program(t, filepath.Join(old, "mediamtx"), "v1.0.0")
	program(t, filepath.Join(old, "ffmpeg"), "any")
	program(t, Engine.Pinned(tools), Engine.Version)
	for name, c := range map[string]struct {
		program          Program
		own, path, tools string
		want             string
	}{
		"the user's choice, whatever its version": {Engine, own, right, tools, own},
		"none is wanted":             {Engine, Off, right, tools, Off},
		"PATH at the pinned version": {Engine, "", old + ":" + right, tools, filepath.Join(right, "mediamtx")},
		"the pinned one":             {Engine, "", old, tools, Engine.Pinned(tools)},
		"any ffmpeg on PATH":         {FFmpeg, "", old, tools, filepath.Join(old, "ffmpeg")},
	} {
		if got, err := c.program.Find(t.Context(), c.own, c.path, c.tools); err != nil || got != c.want {
			t.Errorf("%s: %s, %v; want %s", name, got, err, c.want)
		}
	}
	if _, err := FFmpeg.Find(t.Context(), "", right, tools); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
	if _, err := Engine.Find(t.Context(), filepath.Join(dir, "none"), right, tools); err == nil || !strings.Contains(err.Error(), "SLUICE_MEDIA_ENGINE") {
		t.Error(err)
	}
}

// The version stands in two places, since a module cannot be read from outside.
func TestTheEngineIsThatOfItsToolModule(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("../../media/live/engine/tool/go.mod")
	if err != nil || !strings.Contains(string(b), "github.com/bluenviron/mediamtx "+Engine.Version+"\n") {
		t.Errorf("the module pins another version than %s, or cannot be read: %v", Engine.Version, err)
	}
}
