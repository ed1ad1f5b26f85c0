package main

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestMain lets the test binary be attend itself, as make would start it.
func TestMain(m *testing.M) {
	if os.Getenv("ATTEND_TEST") != "" {
		status, _ := run(os.Args[1:])
		os.Exit(status)
	}
	os.Exit(m.Run())
}

// startMake starts make on a target that attends a command which says when it
// is up and when it is asked to end.
func startMake(t *testing.T) (*exec.Cmd, *bufio.Reader) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "Makefile")
	script := `trap 'echo asked; exit 0' INT TERM; echo up; while :; do sleep 0.01; done`
	rule := "up:\n\t@exec " + self + " /bin/sh -c \"" + script + "\"\n"
	if err := os.WriteFile(file, []byte(rule), 0o644); err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("make", "-f", file, "up")
	cmd.Env = append(os.Environ(), "ATTEND_TEST=1")
	cmd.Stdout = w
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	t.Cleanup(func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); _ = r.Close() })
	out := bufio.NewReader(r)
	expectLine(t, out, "up")
	return cmd, out
}

func expectLine(t *testing.T, out *bufio.Reader, want string) {
	t.Helper()
	line, err := out.ReadString('\n')
	if err != nil || strings.TrimSpace(line) != want {
		t.Fatalf("the command said %q, %v; want %s", line, err, want)
	}
}

func TestASignalToMakeAloneEndsTheCommand(t *testing.T) {
	t.Parallel()
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGKILL} {
		cmd, out := startMake(t)
		if err := cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		expectLine(t, out, "asked")
		if _, err := out.ReadString('\n'); err == nil {
			t.Errorf("%v: the command went on", sig)
		}
		_ = cmd.Wait()
	}
}

func TestTheExitStatusIsPassedOn(t *testing.T) {
	t.Parallel()
	if got, err := run([]string{"/bin/sh", "-c", "exit 5"}); err != nil || got != 5 {
		t.Errorf("status %d, %v; want 5", got, err)
	}
	if got, err := run(nil); err == nil || got != 2 {
		t.Errorf("no command: %d, %v", got, err)
	}
}

func TestWatchSendsOneInterrupt(t *testing.T) {
	t.Parallel()
	ticks, signals := make(chan time.Time, 1), make(chan os.Signal, 2)
	ticks <- time.Time{}
	watch(os.Getppid()+1, false, ticks, signals) // not our parent: as if it had died
	if sig := <-signals; sig != syscall.SIGINT || len(signals) != 0 {
		t.Fatalf("sent %v and %d more", sig, len(signals))
	}
}

func TestCatchesInterrupt(t *testing.T) {
	t.Parallel()
	for status, want := range map[string]bool{
		"Name:\tmake\nSigCgt:\t0000000001814207\n": true,
		"Name:\tmake\nSigCgt:\t0000000001814205\n": false,
		"SigCgt:\tnonsense\n":                      false,
		"":                                         false,
	} {
		if got := catchesInterrupt(status); got != want {
			t.Errorf("%q: %v, want %v", status, got, want)
		}
	}
}

func FuzzCatchesInterrupt(f *testing.F) {
	f.Add("SigCgt:\t0000000001814207\n")
	f.Fuzz(func(t *testing.T, status string) {
		if catchesInterrupt(status) && !strings.Contains(status, "SigCgt:") {
			t.Fatalf("read a mask from %q", status)
		}
	})
}
