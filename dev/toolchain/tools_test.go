package toolchain

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sluice.dev/sluice/envoy"
)

func TestAnEnvoyThatIsThereIsTakenAsItIs(t *testing.T) {
	t.Parallel()
	c := newCheckout(t, nil)
	c.cfg.Envoy = c.script(t, "my-envoy", "true")
	if path, err := ProvisionEnvoy(context.Background(), c.cfg); err != nil || path != c.cfg.Envoy {
		t.Error(path, err)
	}
	c.cfg.Envoy = ""
	c.write(t, ".sluice/tools/envoy-"+envoy.Version(), "#!/bin/sh\n")
	if path, err := ProvisionEnvoy(context.Background(), c.cfg); err != nil || path != envoy.PinnedPath(c.cfg.dir()) {
		t.Error(path, err)
	}
}

func TestErrorsNameCauseAndRemedy(t *testing.T) {
	t.Parallel()
	c := newCheckout(t, nil)
	c.cfg.Path = t.TempDir()
	checkError(t, installPackages(context.Background(), c.cfg, []string{"lld-19", "binaryen"}), "lld-19 binaryen")
	c.cfg.Envoy = "/no/such/envoy"
	_, err := ProvisionEnvoy(context.Background(), c.cfg)
	checkError(t, err, "SLUICE_ENVOY", "/no/such/envoy")
}

func checkError(t *testing.T, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("no error, want one with %v", parts)
		return
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("more than one line: %v", err)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q is not in: %v", part, err)
		}
	}
}

func TestMissingPackages(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "there"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	got := missingPackages([]need{{filepath.Join(dir, "there"), "a"}, {filepath.Join(dir, "gone"), "b"}})
	if len(got) != 1 || got[0] != "b" {
		t.Fatalf("missing %v, want b", got)
	}
}
