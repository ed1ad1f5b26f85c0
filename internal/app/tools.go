package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
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
	for _, p := range []programs.Program{programs.Engine, programs.FFmpeg, programs.Speech, programs.Voice, programs.Tesseract} {
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
	return l.process("engine", "SLUICE_ENGINE_API_LISTEN", "/v3/paths/list")
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

// provisions are how what is missing is made, and what can be done with it, by the
// variable of its program.
var provisions = map[string]struct {
	provide       func(context.Context, toolchain.Config) (string, error)
	what, without string
}{
	programs.Engine.Variable:    {toolchain.ProvisionEngine, "streams can be published", "streams exist, but nobody can publish to them"},
	programs.FFmpeg.Variable:    {toolchain.ProvisionFFmpeg, "videos can be converted", "videos are not converted"},
	programs.Speech.Variable:    {toolchain.ProvisionSpeech, "speech can be transcribed", "speech is not transcribed"},
	programs.Voice.Variable:     {toolchain.ProvisionVoice, "texts can be spoken", "texts are not spoken"},
	programs.Tesseract.Variable: {toolchain.ProvisionTesseract, "the text of pictures can be read", "the text of pictures is not read"},
}

// bringMissing makes what is missing of the media product, behind the ready stack,
// and restarts the processes that use it. What cannot be had is a line of output.
func (l *localStack) bringMissing(ctx context.Context, s *supervise.Stack, out io.Writer) {
	cfg := toolchain.Config{Root: l.sources, Tools: l.fetch.Tools, Path: os.Getenv("PATH"), Progress: out}
	began := time.Now()
	var g errgroup.Group
	for _, p := range l.missing {
		how := provisions[p.Variable]
		g.Go(func() error {
			file, err := how.provide(ctx, cfg)
			if err == nil {
				err = l.bring(ctx, s, p, file)
			}
			switch {
			case ctx.Err() != nil: // the stack ends
			case err != nil:
				fmt.Fprintf(out, "without %s: %s (%v)\n", p.Name, how.without, err)
			default:
				fmt.Fprintf(out, "%s: %s came %.1fs after the stack was ready\n", how.what, p.Name, time.Since(began).Seconds())
			}
			return nil
		})
	}
	_ = g.Wait()
}

// bring gives a program to the processes that use it.
func (l *localStack) bring(ctx context.Context, s *supervise.Stack, p programs.Program, file string) error {
	file, err := filepath.Abs(file)
	if err != nil {
		return err
	}
	l.late.put(p.Variable, file)
	switch p {
	case programs.Engine:
		if err := s.Add(ctx, l.engine()); err != nil {
			return err
		}
	case programs.FFmpeg, programs.Speech: // for streams on air too
		s.Restart("engine")
	case programs.Voice, programs.Tesseract: // which only the product calls
		s.Restart("media")
		return nil
	}
	s.Restart("media")
	s.Restart("worker")
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
