package harness

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// started is a shell that runs script.
func started(t *testing.T, script string) *Process {
	t.Helper()
	p, err := Start(exec.Command("/bin/sh", "-c", script))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	return p
}

func TestProcess(t *testing.T) {
	t.Parallel()
	p := started(t, "trap 'echo bye; kill $!; exit 0' TERM; echo one; echo ready now; while :; do sleep 1000 & wait; done")
	if err := p.Writes("ready"); err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(Children(os.Getpid()), func(c Proc) bool { return c.PID == p.PID() }) {
		t.Error("a child is not among the children")
	}
	if c, err := Below(os.Getpid(), "sleep", func(c Proc) bool { return c.Name == "sleep" && c.Parent == p.PID() }); err != nil || c.Args[1] != "1000" {
		t.Errorf("%+v %v", c, err)
	}
	if err := p.Stop(); err != nil {
		t.Error(err)
	}
	if got := p.Output(); got != "one\nready now\nbye\n" {
		t.Errorf("%q", got)
	}
	if err := p.Stop(); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("a second stop: %v", err)
	}
}

// What ends before it is ready, or not in order, says so with its last words.
func TestProcessFails(t *testing.T) {
	t.Parallel()
	if err := started(t, "echo no ready database; exit 3").Writes("ready"); err == nil || !strings.Contains(err.Error(), "no ready database") || !strings.Contains(err.Error(), "exit status 3") {
		t.Error(err)
	}
	p := started(t, "echo ready; exec sleep 1000")
	if err := errors.Join(p.Writes("ready"), p.Stop()); err == nil || !strings.Contains(err.Error(), "terminated") {
		t.Error(err)
	}
	if _, err := Start(exec.Command("/no/such/program")); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// What a killed process has left behind has ended, too, when Kill returns.
func TestKill(t *testing.T) {
	t.Parallel()
	p := started(t, "(trap 'sleep 0.3; echo late; exit' HUP; echo ready; while :; do sleep 0.05; done) & wait")
	if err := p.Writes("ready"); err != nil {
		t.Fatal(err)
	}
	left := Children(p.PID())
	if len(left) != 1 {
		t.Fatalf("%+v", left)
	}
	time.AfterFunc(50*time.Millisecond, func() { _ = syscall.Kill(left[0].PID, syscall.SIGHUP) })
	p.Kill()
	if !strings.Contains(p.Output(), "late") {
		t.Errorf("%q", p.Output())
	}
}

func TestProc(t *testing.T) {
	t.Parallel()
	self := Processes()[os.Getpid()]
	if self.Parent != os.Getppid() || !slices.Equal(self.Args, os.Args) {
		t.Errorf("%+v", self)
	}
	now, peak, err := Memory(os.Getpid())
	if err != nil || now < 1<<20 || peak < now/2 {
		t.Errorf("%d %d %v", now, peak, err)
	}
	if _, _, err := Memory(-1); err == nil {
		t.Error("nobody has memory")
	}
	if main, ok := MainThread(os.Getpid()); !ok || main.PID != os.Getpid() {
		t.Errorf("%+v", main)
	}
}

func TestReadEnv(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "dev.env")
	if err := os.WriteFile(file, []byte("# keys\nA=1\nB='two words'\nC=\"x=y\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	env, err := ReadEnv(file)
	if err != nil || len(env) != 3 || env["A"] != "1" || env["B"] != "two words" || env["C"] != "x=y" {
		t.Errorf("%v %v", env, err)
	}
}

// A command has nothing of Sluice's that it was not given, and a process's
// environment can be read.
func TestCommand(t *testing.T) {
	t.Setenv("SLUICE_BIN", "/bin/sleep")
	p, err := Start(Command(map[string]string{"SLUICE_OWN": "x"}, "1000"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	env := Environment(p.PID())
	if env["SLUICE_OWN"] != "x" || env["SLUICE_BIN"] != "" || env["PATH"] != os.Getenv("PATH") {
		t.Errorf("%v", env)
	}
	if err := p.Signal(syscall.SIGKILL); err != nil || p.Err() == nil {
		t.Error(err)
	}
}
