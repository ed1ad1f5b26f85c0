// Package childtest writes programs for tests that start processes.
package childtest

import (
	"os"
	"syscall"
	"testing"
)

// Program writes text to file as a program that can be run at once. A process
// that another test forks meanwhile would hold the file open for writing until it
// runs its own program, and the kernel refuses to run a file that somebody
// writes (ETXTBSY); the lock keeps forks away.
func Program(t testing.TB, file, text string) {
	t.Helper()
	syscall.ForkLock.RLock()
	err := os.WriteFile(file, []byte(text), 0o755)
	syscall.ForkLock.RUnlock()
	if err != nil {
		t.Fatal(err)
	}
}
