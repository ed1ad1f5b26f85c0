package supervise_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"sluice.dev/sluice/dev/supervise"
)

// diary records what happens to parts, in order.
type diary struct {
	mu    sync.Mutex
	lines []string
}

func (d *diary) add(line string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, line)
}

func (d *diary) String() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return strings.Join(d.lines, ", ")
}

// Write lets a diary be a Config.Output.
func (d *diary) Write(p []byte) (int, error) {
	d.add(strings.TrimSuffix(string(p), "\n"))
	return len(p), nil
}

// fake is a part that runs until it is stopped or killed.
type fake struct {
	name    string
	diary   *diary
	done    chan struct{}
	endOnce sync.Once
}

func (f *fake) Done() <-chan struct{} { return f.done }
func (f *fake) Cause() string         { return "struck by lightning" }
func (f *fake) kill()                 { f.endOnce.Do(func() { close(f.done) }) }
func (f *fake) Stop() error           { f.kill(); f.diary.add("stop " + f.name); return nil }

// part makes a fake part; each start is sent to started.
func part(d *diary, name string, started chan<- *fake) supervise.Part {
	return supervise.Part{Name: name, Start: func(context.Context, io.Writer) (supervise.Running, error) {
		f := &fake{name: name, diary: d, done: make(chan struct{})}
		d.add("start " + name)
		if started != nil {
			started <- f
		}
		return f, nil
	}}
}

func TestPartsStartInOrderAndStopInReverse(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	d := &diary{}
	asks := 0
	second := part(d, "b", nil)
	second.Ready = func(context.Context) error {
		if asks++; asks < 3 {
			return errors.New("not yet")
		}
		d.add("ready b")
		return nil
	}
	step := supervise.Step("migrate", func(context.Context) error { d.add("migrate"); return nil })
	cfg := supervise.Config{OnReady: func(context.Context) error { d.add("all ready"); cancel(); return nil }}
	if err := supervise.Run(ctx, cfg, []supervise.Part{part(d, "a", nil), step, second, part(d, "c", nil)}); err != nil {
		t.Fatal(err)
	}
	want := "start a, migrate, start b, ready b, start c, all ready, stop c, stop b, stop a"
	if got := d.String(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestTheFirstCauseIsTheErrorAndTheRestIsStopped(t *testing.T) {
	t.Parallel()
	boom := errors.New("boom")
	endedEarly := supervise.Part{
		Name:  "worker",
		Start: supervise.Command{Argv: []string{"/bin/sh", "-c", "echo no database >&2; exit 3"}}.Start,
		Ready: func(context.Context) error { return errors.New("not yet") },
	}
	for name, c := range map[string]struct {
		bad  supervise.Part
		cfg  supervise.Config
		want string
	}{
		"a step fails":          {supervise.Step("migrate", func(context.Context) error { return boom }), supervise.Config{}, "migrate: boom"},
		"ends before ready":     {endedEarly, supervise.Config{}, "worker: ended before it was ready: exit status 3: no database"},
		"no such program":       {supervise.Part{Name: "x", Start: supervise.Command{Argv: []string{"/no/such"}}.Start}, supervise.Config{}, "x: start /no/such: "},
		"never ready":           {neverReady(), supervise.Config{ReadyTimeout: time.Millisecond}, "slow: not ready within 1ms: still cold"},
		"OnReady has the error": {supervise.Step("ok", func(context.Context) error { return nil }), supervise.Config{OnReady: func(context.Context) error { return boom }}, "boom"},
	} {
		d := &diary{}
		err := supervise.Run(context.Background(), c.cfg, []supervise.Part{part(d, "a", nil), c.bad})
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %s", name, err, c.want)
		}
		if got := d.String(); got != "start a, stop a" {
			t.Errorf("%s: %s, want that the part before is stopped", name, got)
		}
	}
}

func neverReady() supervise.Part {
	return supervise.Part{
		Name:  "slow",
		Start: supervise.Command{Argv: []string{"sleep", "1000"}}.Start,
		Ready: func(context.Context) error { return errors.New("still cold") },
	}
}

func TestADeadPartIsRestartedAndItIsSaid(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	d, out := &diary{}, &diary{}
	started := make(chan *fake, 8)
	finished := make(chan error, 1)
	cfg := supervise.Config{Output: out, Backoff: time.Microsecond}
	go func() { finished <- supervise.Run(ctx, cfg, []supervise.Part{part(d, "edge", started)}) }()
	(<-started).kill()
	(<-started).kill()
	<-started
	cancel()
	if err := <-finished; err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(d.String(), "start edge"); got != 3 {
		t.Errorf("started %d times, want 3", got)
	}
	if !strings.Contains(out.String(), "edge | edge ended (struck by lightning), restarting in 1µs") {
		t.Errorf("the restart was not said: %s", out)
	}
}

func TestAnEndDuringTheStartIsNoError(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	d := &diary{}
	waiting := part(d, "a", nil)
	waiting.Ready = func(context.Context) error { cancel(); return errors.New("not yet") }
	if err := supervise.Run(ctx, supervise.Config{}, []supervise.Part{waiting}); err != nil {
		t.Fatal(err)
	}
	if got := d.String(); got != "start a, stop a" {
		t.Errorf("%s, want that it is stopped", got)
	}
}

func TestLinesGoToTheTerminalAndToFiles(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	dir, out := t.TempDir(), &diary{}
	script := supervise.Command{Argv: []string{"/bin/sh", "-c", `printf 'one\ntwo'; trap 'exit 0' TERM; echo x > "$1"; while :; do sleep 0.01; done`, "sh", filepath.Join(dir, "up")}}
	parts := []supervise.Part{
		{Name: "a", Start: script.Start, Ready: func(context.Context) error { _, err := os.Stat(filepath.Join(dir, "up")); return err }},
		supervise.Step("longer", func(context.Context) error { return nil }),
	}
	cfg := supervise.Config{LogDir: filepath.Join(dir, "logs"), Output: out, OnReady: func(context.Context) error { cancel(); return nil }}
	if err := supervise.Run(ctx, cfg, parts); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); got != "a      | one, a      | two" {
		t.Errorf("terminal: %s", got)
	}
	file, err := os.ReadFile(filepath.Join(dir, "logs", "a.log"))
	if err != nil || string(file) != "one\ntwo\n" {
		t.Errorf("file: %q, %v", file, err)
	}
}

// What comes behind a ready stack becomes a part of it, and has others restarted.
func TestWhatComesBehindJoinsTheStack(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	d, out := &diary{}, &diary{}
	started := make(chan *fake, 8)
	cfg := supervise.Config{
		Output: out, Backoff: time.Microsecond,
		OnReady: func(context.Context) error { d.add("all ready"); return nil },
		Behind: func(ctx context.Context, s *supervise.Stack) {
			<-started // of media, at first
			if err := s.Add(ctx, part(d, "engine", nil)); err != nil {
				t.Error(err)
			}
			s.Restart("media")
			s.Restart("nobody")
			<-started
			if err := s.Add(ctx, supervise.Step("bad", func(context.Context) error { return errors.New("boom") })); err == nil {
				t.Error("a part that cannot be started was added")
			}
			cancel()
		},
	}
	if err := supervise.Run(ctx, cfg, []supervise.Part{part(d, "media", started)}); err != nil {
		t.Fatal(err)
	}
	want := "start media, all ready, start engine, stop media, start media, stop engine, stop media"
	if got := d.String(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
