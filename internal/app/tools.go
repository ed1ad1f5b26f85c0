package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"sluice.dev/sluice/dev/fetch"
	"sluice.dev/sluice/dev/pgserver"
	"sluice.dev/sluice/dev/programs"
	"sluice.dev/sluice/dev/supervise"
	"sluice.dev/sluice/dev/toolchain"
	"sluice.dev/sluice/envoy"
)

// Fetcher downloads the pinned programs into the state folder, and says so on out.
func (e Environment) Fetcher(out io.Writer) fetch.Config {
	return fetch.Config{
		Tools: filepath.Join(e.Get("SLUICE_STATE_DIR"), "tools"),
		Say:   func(line string) { _, _ = fmt.Fprintln(out, "tools: "+line) },
	}
}

// Tools are the programs that a stack cannot do without, by where they are.
type Tools struct {
	Envoy string
	// Postgres is the archive of a server that `up` unpacks; "": the machine has one,
	// or SLUICE_DATABASE_URL names another.
	Postgres string
}

// InstallTools finds Envoy and PostgreSQL, and fetches side by side what is missing.
func (e Environment) InstallTools(ctx context.Context, f fetch.Config) (t Tools, err error) {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) {
		if t.Envoy, err = e.envoy(); errors.Is(err, envoy.ErrNotFound) {
			t.Envoy, err = f.Envoy(ctx)
		}
		return err
	})
	if e.Get("SLUICE_DATABASE_URL") == "" && !pgserver.Installed(os.Getenv("PATH")) {
		g.Go(func() (err error) {
			t.Postgres, err = f.Postgres(ctx)
			return err
		})
	}
	return t, g.Wait()
}

// requireTools does so for the stack.
func (l *localStack) requireTools(ctx context.Context) error {
	t, err := l.env.InstallTools(ctx, l.fetch)
	if err != nil {
		return err
	}
	l.set["SLUICE_ENVOY"], err = filepath.Abs(t.Envoy)
	return err
}

// findMedia looks for the programs that the media product can do without at first,
// and notes those that are missing.
func (l *localStack) findMedia(ctx context.Context) error {
	for _, p := range programs.All {
		file, err := l.env.Program(ctx, p)
		if err != nil {
			return err
		}
		if file == programs.Off && l.env.Get(p.Variable) != programs.Off {
			l.missing = append(l.missing, p)
		}
		l.set[p.Variable] = file
	}
	return nil
}

// engine is the media engine.
func (l *localStack) engine() supervise.Part {
	return l.process("engine", "SLUICE_ENGINE_LISTEN", "/health")
}

// lateSettings are what the processes are given once it is there.
type lateSettings struct {
	mu  sync.Mutex
	set map[string]string
}

func (s *lateSettings) put(name, value string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.set == nil {
		s.set = map[string]string{}
	}
	s.set[name] = value
}

func (s *lateSettings) all() map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.set)
}

// uses are what can be done with a program, and what goes without it, by its variable.
var uses = map[string]struct{ with, without string }{
	programs.Engine.Variable:    {"streams can be published", "streams exist, but nobody can publish to them"},
	programs.FFmpeg.Variable:    {"videos can be converted", "videos are not converted"},
	programs.Speech.Variable:    {"speech can be transcribed", "speech is not transcribed"},
	programs.Voice.Variable:     {"texts can be spoken", "texts are not spoken"},
	programs.Tesseract.Variable: {"the text of pictures can be read", "the text of pictures is not read"},
}

// bringMissing makes what is missing of the media product, behind the ready stack, and
// gives it to the processes that use it: they are restarted once for all that is
// downloaded, and once for the engine, which is built.
func (l *localStack) bringMissing(ctx context.Context, s *supervise.Stack, out io.Writer) {
	began := time.Now()
	var built, fetched []programs.Program
	for _, p := range l.missing {
		if p == programs.Engine {
			built = append(built, p)
		} else {
			fetched = append(fetched, p)
		}
	}
	var both sync.WaitGroup
	for _, list := range [][]programs.Program{built, fetched} {
		both.Go(func() {
			came := l.provide(ctx, list, out)
			if err := l.bring(ctx, s, came); err != nil && ctx.Err() == nil {
				fmt.Fprintln(out, err)
				return
			}
			for _, p := range came {
				fmt.Fprintf(out, "%s: %s came %.1fs after the stack was ready\n", uses[p.Variable].with, p.Name, time.Since(began).Seconds())
			}
		})
	}
	both.Wait()
}

// provide makes programs side by side and returns those that came. What cannot be had is
// a line of output.
func (l *localStack) provide(ctx context.Context, list []programs.Program, out io.Writer) (came []programs.Program) {
	cfg := toolchain.Config{Root: l.sources, Tools: l.fetch.Tools, Path: os.Getenv("PATH"), Progress: out}
	files := make([]string, len(list))
	var all sync.WaitGroup
	for i, p := range list {
		all.Go(func() {
			file, err := toolchain.Provision(ctx, cfg, p)
			if err == nil {
				files[i], err = filepath.Abs(file)
			}
			if err != nil && ctx.Err() == nil { // else the stack ends
				fmt.Fprintf(out, "without %s: %s (%v)\n", p.Name, uses[p.Variable].without, err)
			}
		})
	}
	all.Wait()
	for i, p := range list {
		if files[i] != "" {
			l.late.put(p.Variable, files[i])
			came = append(came, p)
		}
	}
	return came
}

// bring has the processes that use programs take them.
func (l *localStack) bring(ctx context.Context, s *supervise.Stack, came []programs.Program) error {
	if len(came) == 0 {
		return nil
	}
	if slices.Contains(came, programs.Engine) {
		if err := s.Add(ctx, l.engine()); err != nil {
			return err
		}
	}
	if slices.ContainsFunc(came, func(p programs.Program) bool { return p == programs.FFmpeg || p == programs.Speech }) { // for streams on air too
		s.Restart("engine")
	}
	s.Restart("media")
	if slices.ContainsFunc(came, func(p programs.Program) bool { return p != programs.Voice && p != programs.Tesseract }) { // those only the product calls
		s.Restart("worker")
	}
	return nil
}

// lockedWriter is a writer for several goroutines.
type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lockedWriter) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(b)
}
