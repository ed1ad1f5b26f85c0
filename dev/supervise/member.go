package supervise

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sluice.dev/sluice/platform/process/pause"
)

const (
	askReadyEvery = 20 * time.Millisecond
	maxBackoff    = 5 * time.Second
	settled       = 30 * time.Second // a part that lived this long starts the backoff anew
)

// member is one part and its present run.
type member struct {
	part    Part
	cfg     Config
	log     *partLog
	running Running // nil for a step that is done; owned by keepAlive once that runs
	cancel  context.CancelFunc
	ended   chan struct{} // closed when keepAlive has returned
	again   chan struct{} // holds one while a restart is asked for
}

func newMember(part Part, cfg Config, log *partLog) *member {
	return &member{part: part, cfg: cfg, log: log, again: make(chan struct{}, 1)}
}

// start runs the part and waits until it is ready. Nothing of it is left after
// an error.
func (m *member) start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, m.cfg.ReadyTimeout)
	defer cancel()
	running, err := m.part.Start(ctx, m.log)
	if err != nil {
		return err
	}
	m.running = running
	if err := m.awaitReady(ctx); err != nil {
		m.stopRunning()
		return err
	}
	return nil
}

// awaitReady asks until the part is ready, has ended, or ctx is done.
func (m *member) awaitReady(ctx context.Context) error {
	if m.part.Ready == nil {
		return nil
	}
	var done <-chan struct{}
	if m.running != nil {
		done = m.running.Done()
	}
	tick := time.NewTicker(askReadyEvery)
	defer tick.Stop()
	for {
		notYet := m.part.Ready(ctx)
		if notYet == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-done:
			return fmt.Errorf("ended before it was ready: %s", m.running.Cause())
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return fmt.Errorf("not ready within %s: %w", m.cfg.ReadyTimeout, notYet)
			}
			return ctx.Err()
		}
	}
}

// keepAlive restarts the part whenever it ends, until stop.
func (m *member) keepAlive() {
	ctx, cancel := context.WithCancel(context.Background())
	m.cancel, m.ended = cancel, make(chan struct{})
	go func() {
		defer close(m.ended)
		backoff, began := m.cfg.Backoff, time.Now()
		for m.running != nil {
			select {
			case <-ctx.Done():
				return
			case <-m.again:
				m.stopRunning()
				backoff, began = m.restart(ctx, m.cfg.Backoff), time.Now()
				continue
			case <-m.running.Done():
			}
			if time.Since(began) > settled {
				backoff = m.cfg.Backoff
			}
			m.log.say("ended (%s), restarting in %s", m.running.Cause(), backoff)
			m.stopRunning()
			backoff, began = m.restart(ctx, backoff), time.Now()
		}
	}()
}

// askRestart has keepAlive end the present run and begin another. One that is
// asked for already is enough.
func (m *member) askRestart() {
	select {
	case m.again <- struct{}{}:
	default:
	}
}

// restart tries until the part is up again or ctx ends; it returns the backoff
// for the next time.
func (m *member) restart(ctx context.Context, backoff time.Duration) time.Duration {
	for pause.For(ctx, backoff) {
		backoff = min(2*backoff, maxBackoff)
		err := m.start(ctx)
		if err == nil {
			m.log.say("is back")
			break
		}
		if ctx.Err() == nil {
			m.log.say("cannot be restarted (%v), trying again in %s", err, backoff)
		}
	}
	return backoff
}

// stop ends the part for good.
func (m *member) stop() error {
	if m.cancel != nil {
		m.cancel()
		<-m.ended
	}
	m.stopRunning()
	return m.log.Close()
}

// stopRunning ends the present run, if there is one.
func (m *member) stopRunning() {
	if m.running == nil {
		return
	}
	if err := m.running.Stop(); err != nil {
		m.log.say("%v", err)
	}
	m.running = nil
}
