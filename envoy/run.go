package envoy

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"sluice.dev/sluice/envoy/logpipe"
	"sluice.dev/sluice/platform/process/child"
	"sluice.dev/sluice/platform/process/pause"
)

const (
	pollEvery    = 20 * time.Millisecond  // of the admin interface, while starting and draining
	firstBackoff = 200 * time.Millisecond // before the first restart of an Envoy that died
	maxBackoff   = 5 * time.Second
	settled      = 30 * time.Second // an Envoy that lived this long starts the backoff anew
	killAfter    = 10 * time.Second // between SIGTERM and SIGKILL
	settleTime   = 3 * time.Second  // for usage that has not been sent
)

// Run starts Envoy and restarts it when it dies, with the doorman in its place
// meanwhile. When ctx ends it drains: requests in flight are finished within
// DrainTime, then Envoy is stopped. It returns nil after that, and an error only
// if Envoy could not be started at all.
func (e *Edge) Run(ctx context.Context) error {
	backoff := firstBackoff
	for {
		began := e.cfg.Now()
		err := e.runOnce(ctx)
		if ctx.Err() != nil && errors.Is(err, errExpelled) {
			err = nil // it was to end anyway
		}
		if ctx.Err() != nil || err == nil {
			return errors.Join(err, e.closeDoor(), e.tidy())
		}
		if e.proc == nil {
			return errors.Join(err, e.closeDoor())
		}
		if e.cfg.Now().Sub(began) > settled {
			backoff = firstBackoff
		}
		e.cfg.Logger.Error("envoy ended, restarting it", "cause", err, "in", backoff.String())
		if err := e.openDoor(); err != nil {
			return err
		}
		if !pause.For(ctx, backoff) {
			e.dismiss()
			return e.closeDoor()
		}
		backoff = min(2*backoff, maxBackoff)
	}
}

// runOnce runs one Envoy, and those that take over from it, to the end of the
// last: nil if that was asked for.
func (e *Edge) runOnce(ctx context.Context) error {
	e.proc, e.epoch, e.serving = nil, 0, false
	e.workers = watcher{}
	e.dismiss()
	proc, err := e.launch(0, e.cfg.HandOver)
	if err != nil {
		return err
	}
	e.proc = proc
	var expired <-chan struct{} // nil until it serves
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return e.drain()
		case <-expired:
			return e.expel("what it serves from is too old")
		case <-e.reload:
			if err := e.handOver(ctx); err != nil {
				return err
			}
		case <-look.C:
			if err := e.attend(ctx); err != nil {
				return err
			}
		case <-e.proc.Done():
			if ctx.Err() != nil {
				return e.drain()
			}
			if !e.serving {
				e.forgetBase()
			}
			return errors.Join(errors.New("envoy ended by itself"), e.proc.Err())
		case <-tick.C:
			if e.admin.listening(ctx, e.ports) {
				tick.Stop()
				e.announce()
				if e.cfg.Agent != nil {
					expired = e.cfg.Agent.Expired()
				}
			}
		}
	}
}

// errExpelled says that Envoy was stopped to be started anew.
var errExpelled = errors.New("envoy had to stop")

// expel stops an Envoy that must not go on, and posts the doorman in its place.
func (e *Edge) expel(why string) error {
	if err := e.openDoor(); err != nil {
		return err
	}
	return errors.Join(fmt.Errorf("%w: %s", errExpelled, why), e.finish())
}

// launch starts a process that takes over from the one of the epoch before, and
// asks it to end when handOver has gone by then; from nobody if epoch is 0.
func (e *Edge) launch(epoch int, handOver time.Duration) (*child.Process, error) {
	bootstrap, err := e.writeBootstrap()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(e.cfg.Binary, append(e.args(bootstrap, handOver), e.epochArgs(epoch)...)...)
	cmd.Dir = e.cfg.Dir
	cmd.Env = append(os.Environ(), "TZ=UTC")
	log := &logpipe.Lines{To: e.cfg.Output}
	cmd.Stdout, cmd.Stderr = log, log
	files := e.cfg.stamps()
	proc, err := child.Start(cmd, syscall.SIGKILL)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", e.cfg.Binary, err)
	}
	e.started.Store(&files)
	return proc, nil
}

func (e *Edge) args(bootstrap string, handOver time.Duration) []string {
	return []string{
		"-c", bootstrap,
		"--concurrency", strconv.Itoa(e.cfg.Concurrency),
		"--log-level", e.cfg.LogLevel,
		"--component-log-level", "wasm:" + wasmLevel(e.cfg.LogLevel),
		"--log-format", e.logFormat(),
		"--drain-time-s", strconv.Itoa(max(1, int((e.cfg.Announce+e.cfg.DrainTime)/time.Second))),
		"--drain-strategy", "immediate",
		"--ignore-unknown-dynamic-fields", // looking for those takes a fifth of each change; tests look, with the Envoy that is pinned
		"--skip-hot-restart-parent-stats", // else an Envoy does not survive the end of its parent
		"--parent-shutdown-time-s", strconv.Itoa(max(2, int(handOver/time.Second))),
	}
}

// wasmLevel is the level for what filters print. Why one has panicked is printed as
// information, and little else is.
func wasmLevel(level string) string {
	switch level {
	case "trace", "debug":
		return level
	}
	return "info"
}

// logFormat is a line of Envoy's log, in the fields of our own lines where it is JSON.
func (e *Edge) logFormat() string {
	if e.cfg.LogJSON {
		return `{"time":"%Y-%m-%dT%T.%eZ","level":"%l","msg":"%j","process":"envoy","logger":"%n"}`
	}
	return "%Y-%m-%dT%T.%eZ %l %n: %v"
}

// announce takes the doorman away from the addresses that Envoy now serves.
func (e *Edge) announce() {
	e.serving = true
	e.learn()
	if err := e.closeDoor(); err != nil {
		e.cfg.Logger.Warn("doorman did not leave in order", "error", err)
	}
	e.alone.Store(true)
	select {
	case <-e.ready:
	default:
		close(e.ready)
	}
	e.cfg.Logger.Info("edge is serving", "gateway", e.cfg.Bootstrap.GatewayAddr, "runtime", e.cfg.Bootstrap.RuntimeAddr)
}

// drain announces the end, lets requests in flight finish, then stops Envoy, which
// accepts connections until then.
func (e *Edge) drain() error {
	e.going.Store(true)
	if err := e.closeDoor(); err != nil {
		e.cfg.Logger.Warn("doorman did not leave in order", "error", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), e.cfg.Announce)
	defer cancel()
	if _, err := e.admin.call(ctx, http.MethodPost, "/drain_listeners?graceful"); err == nil {
		<-ctx.Done()
	}
	return e.finish()
}

// finish waits for the requests in flight, at most DrainTime, and stops Envoy.
func (e *Edge) finish() error {
	ctx, cancel := context.WithTimeout(context.Background(), e.cfg.DrainTime)
	defer cancel()
	if _, err := e.admin.call(ctx, http.MethodPost, "/drain_listeners?graceful"); err == nil {
		for e.admin.activeRequests(ctx) > 0 && pause.For(ctx, pollEvery) {
		}
	}
	e.settleUsage()
	err := e.proc.Stop(syscall.SIGTERM, killAfter)
	e.dismiss()
	return err
}

// settleUsage waits until the control plane has all usage that Envoy has counted,
// or for as long as settleTime: a control plane that is gone must not hold up a
// stop.
func (e *Edge) settleUsage() {
	ctx, cancel := context.WithTimeout(context.Background(), settleTime)
	defer cancel()
	for e.admin.unsentUsage(ctx) && pause.For(ctx, pollEvery) {
	}
	if ctx.Err() != nil {
		e.cfg.Logger.Warn("stopped before the control plane had all usage")
	}
}
