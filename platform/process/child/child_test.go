package child_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"sluice.dev/sluice/platform/process/child"
)

// shell starts a script whose first line of output says that it is set up.
func shell(t *testing.T, script string) (*child.Process, *bufio.Reader) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	cmd := exec.Command("/bin/sh", "-c", script)
	cmd.Stdout = w
	p, err := child.Start(cmd, syscall.SIGKILL)
	if err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	t.Cleanup(func() { _ = p.SignalGroup(syscall.SIGKILL); <-p.Done() })
	return p, bufio.NewReader(r)
}

func firstLine(t *testing.T, r *bufio.Reader) string {
	t.Helper()
	line, err := r.ReadString('\n')
	if err != nil {
		t.Fatalf("child said nothing: %v", err)
	}
	return strings.TrimSpace(line)
}

func TestExitCode(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]int{"exit 0": 0, "exit 3": 3, "kill -TERM $$": 143} {
		p, _ := shell(t, script)
		if got := p.ExitCode(); got != want {
			t.Errorf("%q: exit code %d, want %d", script, got, want)
		}
		if got := p.Err() == nil; got != (want == 0) {
			t.Errorf("%q: Err() = %v", script, p.Err())
		}
	}
}

func TestStartReportsMissingProgram(t *testing.T) {
	t.Parallel()
	if _, err := child.Start(exec.Command("/no/such/program"), syscall.SIGKILL); err == nil {
		t.Fatal("no error for a program that is not there")
	}
}

func TestStopLetsAChildFinish(t *testing.T) {
	t.Parallel()
	p, out := shell(t, `trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.01; done`)
	firstLine(t, out)
	if err := p.Stop(syscall.SIGTERM, time.Minute); err != nil {
		t.Fatal(err)
	}
	if got := firstLine(t, out); got != "bye" {
		t.Fatalf("child said %q, want its own goodbye", got)
	}
	if err := p.Stop(syscall.SIGTERM, time.Minute); err != nil {
		t.Fatalf("second stop: %v", err)
	}
}

func TestStopKillsTheGroupOfADeafChild(t *testing.T) {
	t.Parallel()
	p, out := shell(t, `trap '' TERM; sleep 1000 & echo $!; wait; while :; do sleep 1; done`)
	var grandchild int
	if _, err := fmt.Sscan(firstLine(t, out), &grandchild); err != nil {
		t.Fatal(err)
	}
	if err := p.Stop(syscall.SIGTERM, time.Millisecond); err == nil {
		t.Fatal("no word about the child having been killed")
	}
	if code := p.ExitCode(); code != 137 {
		t.Fatalf("exit code %d, want 137", code)
	}
	// The pipe reaches its end only when the last process that holds it is gone.
	if _, err := out.ReadString('\n'); err == nil {
		t.Fatal("unexpected output")
	}
}

// TestChildDiesWithItsParent runs this test binary as a parent, kills it and
// waits for the end of the pipe that only its child still holds.
func TestChildDiesWithItsParent(t *testing.T) {
	if os.Getenv("CHILD_TEST_PARENT") != "" {
		cmd := exec.Command("sleep", "1000")
		cmd.Stdout = os.Stdout
		p, err := child.Start(cmd, syscall.SIGKILL)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Println("started")
		<-p.Done()
		return
	}
	t.Parallel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	parent := exec.Command(os.Args[0], "-test.run=^TestChildDiesWithItsParent$")
	parent.Env = append(os.Environ(), "CHILD_TEST_PARENT=1")
	parent.Stdout = w
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	out := bufio.NewReader(r)
	firstLine(t, out)
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait()
	if rest, err := out.ReadString('\n'); err == nil {
		t.Fatalf("child lives on and says %q", rest)
	}
}
