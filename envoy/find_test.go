package envoy

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sluice.dev/sluice/platform/process/child/childtest"
)

// fakeEnvoy writes a program that reports version.
func fakeEnvoy(t *testing.T, path, version string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	script := "#!/bin/sh\necho 'envoy  version: abc/" + version + "/Clean/RELEASE/BoringSSL'\n"
	childtest.Program(t, path, script)
}

func TestFindOrder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	own, current, old := filepath.Join(dir, "own"), filepath.Join(dir, "new"), filepath.Join(dir, "old")
	tools := filepath.Join(dir, "tools")
	fakeEnvoy(t, own, "1.0.0")
	fakeEnvoy(t, filepath.Join(current, "envoy"), Version())
	fakeEnvoy(t, filepath.Join(old, "envoy"), "1.39.0")
	fakeEnvoy(t, PinnedPath(tools), Version())
	for name, c := range map[string]struct {
		cfg  FindConfig
		want string
	}{
		"the user's choice, whatever its version": {FindConfig{Binary: own, Path: current, Tools: tools}, own},
		"PATH at the right version":               {FindConfig{Path: old + ":" + current, Tools: tools}, filepath.Join(current, "envoy")},
		"the pinned one":                          {FindConfig{Path: old, Tools: tools}, PinnedPath(tools)},
	} {
		if got, err := Find(c.cfg); err != nil || got != c.want {
			t.Errorf("%s: %s, %v; want %s", name, got, err, c.want)
		}
	}
}

func TestFindErrors(t *testing.T) {
	t.Parallel()
	if _, err := Find(FindConfig{Path: t.TempDir(), Tools: t.TempDir()}); !errors.Is(err, ErrNotFound) {
		t.Errorf("nothing there: %v, want ErrNotFound", err)
	}
	_, err := Find(FindConfig{Binary: t.TempDir()})
	if err == nil || errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), "SLUICE_ENVOY") {
		t.Errorf("a choice that is no program: %v", err)
	}
}

func TestReportsVersion(t *testing.T) {
	t.Parallel()
	for output, want := range map[string]bool{
		"envoy  version: 0a1/1.40.0/Clean/RELEASE/BoringSSL": true,
		"envoy  version: 0a1/1.40.01/Clean/RELEASE":          false,
		"envoy  version: 0a1/1.39.0/Clean/RELEASE/BoringSSL": false,
		"": false,
	} {
		if got := reportsVersion(output, "1.40.0"); got != want {
			t.Errorf("%q: %v, want %v", output, got, want)
		}
	}
}
