package e2e

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sluice.dev/sluice/e2e/harness"
)

// Who downloads the archive runs it as it is: in an empty folder, with nothing on
// PATH, no filters, no Go and no Python. The tools of this machine stand in for the
// download of Envoy.
func TestArchiveRunsAsItIs(t *testing.T) {
	t.Parallel()
	dir := unpackArchive(t)
	version, err := os.ReadFile("../envoy/VERSION")
	if err != nil {
		t.Fatal(err)
	}
	tools := filepath.Join(dir, ".sluice", "tools")
	if err := os.MkdirAll(tools, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(need(t, "SLUICE_ENVOY"), filepath.Join(tools, "envoy-"+strings.TrimSpace(string(version)))); err != nil {
		t.Fatal(err)
	}
	env := settings(t, dir)
	cmd := exec.Command("./sluice", "up")
	cmd.Dir = dir
	for name, value := range env {
		if !slices.Contains([]string{"SLUICE_STATE_DIR", "SLUICE_WASM_DIR", "SLUICE_ENVOY", "SLUICE_DATABASE_URL"}, name) {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
	}
	p, err := harness.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
	})
	if err := p.Writes("ready in "); err != nil {
		t.Fatal(err)
	}
	dev := readEnv(t, filepath.Join(dir, ".sluice", "dev.env"))
	streams := dev["SLUICE_GATEWAY_URL"] + "/v1/streams"
	wantStatus(t, call(t, http.MethodGet, streams, "", nil), http.StatusUnauthorized)
	wantStatus(t, call(t, http.MethodGet, streams, dev["SLUICE_API_KEY"], nil), http.StatusOK)
	if _, err := os.Stat(filepath.Join(dir, ".sluice", "edges", "edge-1", "wasm", "edge.wasm")); err != nil {
		t.Errorf("the filters are not those of the binary: %v", err)
	}
}

// unpackArchive packs the archive of this machine around the shipped binary, and
// returns the folder that it becomes.
func unpackArchive(t *testing.T) string {
	t.Helper()
	out, dir := t.TempDir(), tempDir(t)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	pack := exec.Command("go", "run", "./deploy/release", "-binary", need(t, "SLUICE_BIN"), "-out", out)
	pack.Dir = ".."
	if text, err := pack.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	archives, err := filepath.Glob(filepath.Join(out, "sluice-*-linux-*.tar.gz"))
	if err != nil || len(archives) != 1 {
		t.Fatal(archives, err)
	}
	f, err := os.Open(archives[0])
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	folder := strings.TrimSuffix(filepath.Base(archives[0]), ".tar.gz")
	var names []string
	for entries := tar.NewReader(z); ; {
		h, err := entries.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		name, inside := strings.CutPrefix(h.Name, folder+"/")
		if !inside || strings.Contains(name, "/") || h.Uid != 0 || h.Uname != "" {
			t.Errorf("%+v", h)
		}
		if name == "" {
			continue
		}
		names = append(names, name)
		text, err := io.ReadAll(entries)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, os.FileMode(h.Mode)); err != nil {
			t.Fatal(err)
		}
	}
	if got := strings.Join(names, " "); got != "LICENSE README.txt completion.bash sluice" {
		t.Errorf("the archive holds %s", got)
	}
	return dir
}

// The gateway does not wait for the media engine: it is ready without, and when the
// engine has been built, streams can be published without anybody's doing.
func TestTheEngineComesBehindTheReadyGateway(t *testing.T) {
	t.Parallel()
	dir, sources := tempDir(t), t.TempDir()
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	tool, allowed := filepath.Join(sources, "media", "live", "engine", "tool"), filepath.Join(sources, "allowed")
	if err := os.MkdirAll(tool, 0o755); err != nil {
		t.Fatal(err)
	}
	build := "until [ -e " + allowed + " ]; do sleep 0.05; done; cp " + need(t, "SLUICE_MEDIA_ENGINE") + " \"$1\"\n"
	if err := os.WriteFile(filepath.Join(tool, "build.sh"), []byte(build), 0o644); err != nil {
		t.Fatal(err)
	}
	env := settings(t, dir)
	delete(env, "SLUICE_MEDIA_ENGINE")
	p, err := harness.Start(harness.Command(env, "up", "--sources", sources))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
	})
	if err := p.Writes("ready in "); err != nil {
		t.Fatal(err)
	}
	s := &stack{Process: p, dir: dir, env: env, dev: readEnv(t, filepath.Join(dir, "dev.env"))}
	key := s.dev["SLUICE_API_KEY"]
	made := s.createStream(t, key, "later")
	available := func() string {
		return string(call(t, http.MethodGet, s.url("/v1/streams/"+made.ID), key, nil).body)
	}
	if got := available(); !strings.Contains(got, `"available":false`) {
		t.Errorf("before the engine is there: %s", got)
	}
	if err := os.WriteFile(allowed, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := p.Writes("streams can be published"); err != nil {
		t.Fatal(err)
	}
	if err := harness.Until(func() error {
		if got := available(); !strings.Contains(got, `"available":true`) {
			return errors.New(got)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}
