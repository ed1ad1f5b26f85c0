package foreground_test

import (
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"sluice.dev/sluice/dev/foreground"
)

func TestASignalReachesTheCommand(t *testing.T) {
	t.Parallel()
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		fifo := filepath.Join(t.TempDir(), "ready")
		if err := syscall.Mkfifo(fifo, 0o600); err != nil {
			t.Fatal(err)
		}
		signals := make(chan os.Signal, 1)
		go func() {
			if f, err := os.Open(fifo); err == nil { // returns when the trap is set
				_ = f.Close()
			}
			signals <- sig
		}()
		script := `trap 'exit 42' ` + strconv.Itoa(int(sig)) + `; : > "$0"; while :; do sleep 0.01; done`
		if got, err := foreground.Run([]string{"/bin/sh", "-c", script, fifo}, os.Environ(), signals); err != nil || got != 42 {
			t.Errorf("%v: status %d, %v; want 42", sig, got, err)
		}
	}
}
