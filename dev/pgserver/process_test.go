package pgserver

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// startIn runs a shell script in dir and returns when the script has made the
// file "up" there: a named pipe, so that this is a signal and no poll.
func startIn(t *testing.T, dir, script string) *exec.Cmd {
	t.Helper()
	fifo := filepath.Join(dir, "up")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/bin/sh", "-c", script)
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); _, _ = cmd.Process.Wait() })
	ready, err := os.Open(fifo)
	if err != nil {
		t.Fatal(err)
	}
	_ = ready.Close()
	return cmd
}
