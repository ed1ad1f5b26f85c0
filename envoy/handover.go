package envoy

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"sluice.dev/sluice/platform/process/child"
)

// handOverTimeout bounds how long a new Envoy may take until it listens.
const handOverTimeout = 60 * time.Second

// handOver lets a new Envoy take over from the present one: it is given the open
// listeners, and the old one finishes what it has. When the new one does not get
// that far it is stopped, and the old one stays. An error means that Envoy has to
// be started anew, behind the standby listener.
func (e *Edge) handOver(ctx context.Context) error {
	if !e.serving {
		e.cfg.Logger.Info("no hot restart: Envoy has just been started")
		return nil
	}
	if err := e.compatible(ctx); err != nil && ctx.Err() == nil {
		return e.drainForRestart(err.Error())
	}
	old := &retired{proc: e.proc, hung: e.workers.anyHung(), bound: e.cfg.HandOver}
	if old.hung {
		old.bound = e.cfg.HandOverHung
	}
	files := e.started.Load()
	next, err := e.launch(e.epoch+1, old.bound) // by which the present one asks the one before it to end
	if err == nil {
		err = e.awaitTakeOver(ctx, next)
	}
	if err != nil {
		e.started.Store(files)
		e.cfg.Logger.Error("the hot restart failed: the Envoy of before goes on", "cause", err)
		return nil
	}
	e.stopRetired()
	e.retired, e.proc, e.epoch, e.workers = old, next, e.epoch+1, hangDetector{}
	go e.awaitExit(old)
	e.cfg.Logger.Info("another Envoy has taken over", "epoch", e.epoch)
	return nil
}

// awaitTakeOver returns nil when next listens. Else next has been stopped.
func (e *Edge) awaitTakeOver(ctx context.Context, next *child.Process) error {
	ctx, cancel := context.WithTimeout(ctx, handOverTimeout)
	defer cancel()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		select {
		case <-next.Done():
			return errors.Join(errors.New("the new Envoy ended by itself"), next.Err())
		case <-e.proc.Done():
			return errors.Join(errors.New("the old Envoy ended meanwhile"), next.Stop(syscall.SIGTERM, killAfter))
		case <-ctx.Done():
			return errors.Join(ctx.Err(), next.Stop(syscall.SIGTERM, killAfter))
		case <-tick.C:
			if e.admin.epoch(ctx) == e.epoch+1 && e.admin.listening(ctx, e.ports) {
				return nil
			}
		}
	}
}

// compatible returns an error unless the binary can take over from the Envoy
// that runs, which depends on their versions.
func (e *Edge) compatible(ctx context.Context) error {
	out, err := exec.CommandContext(ctx, e.cfg.Binary, "--hot-restart-version").CombinedOutput() // it says so on standard error
	if err != nil {
		return fmt.Errorf("no hot restart: ask %s for its version: %w", e.cfg.Binary, err)
	}
	if is := strings.TrimSpace(string(out)); is != e.version {
		return fmt.Errorf("no hot restart from version %q to %q", e.version, is)
	}
	return nil
}

// baseFile keeps the number by which the Envoys of this edge find each other, so
// that the next start takes the same, and with it what a crash has left.
func (e *Edge) baseFile() string { return filepath.Join(e.cfg.StateDir, "base-id") }

// epochArgs are the arguments that Envoys of one edge find each other by.
func (e *Edge) epochArgs(epoch int) []string {
	if e.base == "" {
		if b, err := os.ReadFile(e.baseFile()); err == nil {
			e.base = strings.TrimSpace(string(b))
		}
	}
	args := []string{"--restart-epoch", strconv.Itoa(epoch)}
	if e.base != "" {
		return append(args, "--base-id", e.base)
	}
	file, err := filepath.Abs(e.baseFile())
	if err != nil {
		return append(args, "--use-dynamic-base-id")
	}
	return append(args, "--use-dynamic-base-id", "--base-id-path", file)
}

// readRestartInfo asks the Envoy that has begun to serve for what a hot restart needs. One
// that has tried to hand over and could not is not asked again: it has given its
// admin interface up.
func (e *Edge) readRestartInfo() {
	if b, err := os.ReadFile(e.baseFile()); err == nil {
		e.base = strings.TrimSpace(string(b))
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	version, err := e.admin.call(ctx, http.MethodGet, "/hot_restart_version")
	if err != nil {
		e.cfg.Logger.Warn("Envoy does not tell its version: there will be no hot restart", "cause", err)
	}
	e.version = strings.TrimSpace(string(version))
}

// forgetBase lets the next Envoy choose another number: another edge may have
// taken this one.
func (e *Edge) forgetBase() {
	e.base = ""
	_ = os.Remove(e.baseFile())
}

// removeSharedMemory removes the memory that Envoys of this edge shared, which Envoy leaves.
func (e *Edge) removeSharedMemory() error {
	if e.base == "" {
		return nil
	}
	err := os.Remove("/dev/shm/envoy_shared_memory_" + e.base + "0")
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
