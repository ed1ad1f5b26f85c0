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
	stableAfter  = 30 * time.Second // an Envoy that lived this long starts the backoff anew
	killAfter    = 10 * time.Second // between SIGTERM and SIGKILL
	usageTimeout = 3 * time.Second  // for usage that has not been sent
)

// Run starts Envoy and restarts it when it dies; the standby listener answers
// meanwhile. When ctx ends it drains: requests in flight are finished within
// DrainTime, then Envoy is stopped. It returns nil after that, and an error only
// if Envoy could not be started at all.
func (e *Edge) Run(ctx context.Context) error {
	backoff := firstBackoff
	for {
		began := e.cfg.Now()
		err := e.runOnce(ctx)
		if ctx.Err() != nil && errors.Is(err, errRestart) {
			err = nil // it was to end anyway
		}
		if ctx.Err() != nil || err == nil {
			return errors.Join(err, e.closeStandby(), e.removeSharedMemory())
		}
		if e.proc == nil {
			return errors.Join(err, e.closeStandby())
		}
		if e.cfg.Now().Sub(began) > stableAfter {
			backoff = firstBackoff
		}
		e.cfg.Logger.Error("envoy ended, restarting it", "cause", err, "in", backoff.String())
		if err := e.openStandby(); err != nil {
			return err
		}
		if !pause.For(ctx, backoff) {
			e.stopRetired()
			return e.closeStandby()
		}
		backoff = min(2*backoff, maxBackoff)
	}
}

// runOnce runs one Envoy, and those that take over from it, to the end of the
// last: nil if that was asked for.
func (e *Edge) runOnce(ctx context.Context) error {
	e.proc, e.epoch, e.serving = nil, 0, false
	e.workers = hangDetector{}
	e.stopRetired()
	proc, err := e.launch(0, e.cfg.HandOver)
	if err != nil {
		return err
	}
	e.proc = proc
	var expired <-chan struct{} // nil until it serves
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	look := time.NewTicker(checkEvery)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return e.drain()
		case <-expired:
			return e.drainForRestart("what it serves from is too old")
		case <-e.reload:
			if err := e.handOver(ctx); err != nil {
				return err
			}
		case <-look.C:
			if err := e.checkWorkers(ctx); err != nil {
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
				e.startServing()
				if e.cfg.Agent != nil {
					expired = e.cfg.Agent.Expired()
				}
			}
		}
	}
}

// errRestart says that Envoy was stopped to be started anew.
var errRestart = errors.New("envoy had to stop")

// drainForRestart opens the standby listener, drains an Envoy that must not go on,
// and stops it.
func (e *Edge) drainForRestart(why string) error {
	if err := e.openStandby(); err != nil {
		return err
	}
	return errors.Join(fmt.Errorf("%w: %s", errRestart, why), e.finish())
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
		"--file-flush-interval-msec", "500", // a request is in the request log within two seconds
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

// startServing closes the standby listener at the addresses that Envoy now serves.
func (e *Edge) startServing() {
	e.serving = true
	e.readRestartInfo()
	if err := e.closeStandby(); err != nil {
		e.cfg.Logger.Warn("standby listener did not close cleanly", "error", err)
	}
	e.standbyClosed.Store(true)
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
	e.draining.Store(true)
	if err := e.closeStandby(); err != nil {
		e.cfg.Logger.Warn("standby listener did not close cleanly", "error", err)
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
	e.awaitUsageSent()
	err := e.proc.Stop(syscall.SIGTERM, killAfter)
	e.stopRetired()
	return err
}

// awaitUsageSent waits until the control plane has all usage that Envoy has counted,
// or for as long as settleTime: a control plane that is gone must not hold up a
// stop.
func (e *Edge) awaitUsageSent() {
	ctx, cancel := context.WithTimeout(context.Background(), usageTimeout)
	defer cancel()
	for e.admin.unsentUsage(ctx) && pause.For(ctx, pollEvery) {
	}
	if ctx.Err() != nil {
		e.cfg.Logger.Warn("stopped before the control plane had all usage")
	}
}
