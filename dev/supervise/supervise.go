// Package supervise runs the parts of a local stack: it starts them in order,
// each when the one before is ready, restarts one that dies, and stops them in
// reverse order. What they print goes to one terminal, with the part's name in
// front of each line, and to one file for each.
//
// If a part cannot be started, those before it are stopped and the error names
// the first cause in one line.
package supervise

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// Config says how a stack is run.
type Config struct {
	// LogDir gets one NAME.log for each part. Empty: no files.
	LogDir string
	// Output receives all lines. Nil discards them.
	Output io.Writer
	// Color puts colours into Output: for a terminal.
	Color bool
	// ReadyTimeout bounds the start of one part. Zero: 60 s.
	ReadyTimeout time.Duration
	// Backoff is the pause before a first restart; it doubles up to 5 s. Zero: 200 ms.
	Backoff time.Duration
	// OnReady is called once when every part is ready. An error stops the stack
	// and is Run's error. Nil: nothing.
	OnReady func(ctx context.Context) error
	// Behind runs beside the stack from then on, for what need not be there for the
	// stack to be ready. Its context ends with the stack, which waits for it to
	// return. Nil: nothing.
	Behind func(ctx context.Context, s *Stack)
}

// Running is something that has been started.
type Running interface {
	// Done is closed when it has ended.
	Done() <-chan struct{}
	// Cause says in one line why it ended by itself.
	Cause() string
	// Stop ends it, waits, and returns an error if it had to be forced. It is
	// called once for each Running, also for one that has ended by itself.
	Stop() error
}

// Part is one member of a stack.
type Part struct {
	// Name stands in front of its lines; short, unique, fit for a file name.
	Name string
	// Start starts it; its lines go to log. It is called again after a death. A
	// nil Running with a nil error means that the part was a step that is done,
	// a migration for instance. ctx bounds the start, not the life.
	Start func(ctx context.Context, log io.Writer) (Running, error)
	// Ready returns nil when the part does its work; it is asked again and again
	// until then. Nil: ready at once.
	Ready func(ctx context.Context) error
}

// Stack is a running stack.
type Stack struct {
	cfg      Config
	terminal *terminal
	mu       sync.Mutex
	members  []*member
}

// Run starts parts, calls OnReady, and keeps the parts alive until ctx ends; then
// it stops them and returns nil. It returns the first cause if the stack could
// not be brought up, with everything stopped.
func Run(ctx context.Context, cfg Config, parts []Part) (err error) {
	if cfg.ReadyTimeout == 0 {
		cfg.ReadyTimeout = time.Minute
	}
	if cfg.Backoff == 0 {
		cfg.Backoff = 200 * time.Millisecond
	}
	s := &Stack{cfg: cfg, terminal: newTerminal(cfg.Output, cfg.Color, parts)}
	defer func() {
		// What the clean-up meets is told on the terminal; the cause comes first.
		if stopErr := s.stop(); err == nil {
			err = stopErr
		}
	}()
	for _, part := range parts {
		if err := s.Add(ctx, part); err != nil {
			return asked(ctx, err)
		}
	}
	if cfg.OnReady != nil {
		if err := cfg.OnReady(ctx); err != nil {
			return asked(ctx, err)
		}
	}
	if cfg.Behind != nil {
		cfg.Behind(ctx, s)
	}
	<-ctx.Done()
	return nil
}

// asked hides an error that only says that the end was asked for.
func asked(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil
	}
	return err
}

// Add brings up one part, after those that are there: when it returns nil, the part
// is ready, and is kept alive like the others.
func (s *Stack) Add(ctx context.Context, part Part) error {
	s.terminal.add(part.Name, s.cfg.Color)
	log, err := openPartLog(s.cfg.LogDir, part.Name, s.terminal)
	if err != nil {
		return err
	}
	m := newMember(part, s.cfg, log)
	s.mu.Lock()
	s.members = append(s.members, m)
	s.mu.Unlock()
	if err := m.start(ctx); err != nil {
		return fmt.Errorf("%s: %w", part.Name, err)
	}
	m.keepAlive()
	return nil
}

// Restart ends a part that runs, and starts it again with the environment that it is
// given by then.
func (s *Stack) Restart(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.members {
		if m.part.Name == name {
			m.askRestart()
		}
	}
}

// stop ends all parts, the last one first. A part that had to be killed is said
// on its own log, and does not make the end a failure of the stack.
func (s *Stack) stop() error {
	var errs []error
	for i := len(s.members) - 1; i >= 0; i-- {
		errs = append(errs, s.members[i].stop())
	}
	return errors.Join(errs...)
}
