package clock

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The test binary is the program in Go whose clock moves.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "tell" {
		tell()
		return
	}
	os.Exit(m.Run())
}

// tell answers each line with the time, and how long the program runs, in
// seconds, while others of its threads ask for the time all the while.
func tell() {
	began := time.Now()
	for range 2 {
		go func() {
			for {
				_ = time.Now()
			}
		}()
	}
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		now := time.Now()
		fmt.Println(float64(now.UnixMicro())/1e6, now.Sub(began).Seconds())
	}
}

// teller is a program that tells the time when it is asked.
type teller struct {
	pid int
	ask func(t *testing.T) (now, uptime float64)
}

func start(t *testing.T, argv ...string) teller {
	t.Helper()
	cmd := exec.Command(argv[0], argv[1:]...)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()         // by that signal
	})
	lines := bufio.NewScanner(out)
	return teller{cmd.Process.Pid, func(t *testing.T) (now, uptime float64) {
		t.Helper()
		if _, err := fmt.Fprintln(in); err != nil {
			t.Fatal(err)
		}
		lines.Scan()
		f := strings.Fields(lines.Text())
		if len(f) != 2 {
			t.Fatalf("%q", lines.Text())
		}
		if now, err = strconv.ParseFloat(f[0], 64); err != nil {
			t.Fatal(err)
		}
		if uptime, err = strconv.ParseFloat(f[1], 64); err != nil {
			t.Fatal(err)
		}
		return now, uptime
	}}
}

func tellers(t *testing.T) map[string]teller {
	t.Helper()
	const python = "import sys, time\nb = time.monotonic()\nfor l in sys.stdin: print(time.time(), time.monotonic() - b, flush=True)"
	return map[string]teller{"Go": start(t, os.Args[0], "tell"), "C": start(t, "python3", "-c", python)}
}

// wantOff checks how far a teller's clock is from the true time, in seconds, however
// long it takes to answer.
func (x teller) wantOff(t *testing.T, want int) {
	t.Helper()
	before := float64(time.Now().UnixMicro()) / 1e6
	now, _ := x.ask(t)
	after := float64(time.Now().UnixMicro()) / 1e6
	if off := float64(want); now-off < before-0.01 || now-off > after+0.01 {
		t.Fatalf("it is %.1f to %.1f s off, want %d", now-after, now-before, want)
	}
}

// The wall clock moves, again and again, and back; how long something takes is
// measured as before. A kernel that lets nobody write to a process's memory is
// an error, and moves nothing.
func TestShift(t *testing.T) {
	t.Parallel()
	for name, x := range tellers(t) {
		_, before := x.ask(t)
		for _, seconds := range []int{0, 300, -30, -30, 86400, 0, -300} {
			want := seconds
			if err := Shift(x.pid, int64(seconds)); err != nil {
				t.Log(err)
				want = 0
			}
			x.wantOff(t, want)
		}
		if _, after := x.ask(t); after < before || after > before+60 {
			t.Errorf("%s: the monotonic clock went from %v to %v", name, before, after)
		}
	}
}

func TestAStoppedProcessStaysStopped(t *testing.T) {
	t.Parallel()
	x := tellers(t)["C"]
	x.ask(t) // it runs
	if err := syscall.Kill(x.pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(20 * time.Second); !stopped(x.pid); time.Sleep(glance) {
		if time.Now().After(end) {
			t.Fatal("it does not stop")
		}
	}
	want := 7
	if err := Shift(x.pid, 7); err != nil {
		t.Log(err)
		want = 0
	}
	if !stopped(x.pid) {
		t.Error("it goes on")
	}
	if err := syscall.Kill(x.pid, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	x.wantOff(t, want)
}

func TestProcessesThatHaveEnded(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("true")
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	if err := Shift(cmd.Process.Pid, 1); err != nil {
		t.Error(err)
	}
	waiting := exec.Command("true")
	if err := waiting.Start(); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(glance) {
		if maps, err := os.ReadFile(proc(waiting.Process.Pid, "maps")); err != nil || len(maps) == 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatal("it does not end")
		}
	}
	if err := Shift(waiting.Process.Pid, 1); err != nil {
		t.Error("nobody has waited for it:", err)
	}
	if err := waiting.Wait(); err != nil {
		t.Error(err)
	}
}

func TestPlan(t *testing.T) {
	t.Parallel()
	base, size, err := find(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	mem, err := os.Open("/proc/self/mem")
	if err != nil {
		t.Fatal(err)
	}
	defer mem.Close()
	image := make([]byte, size)
	if _, err := mem.ReadAt(image, int64(base)); err != nil {
		t.Fatal(err)
	}
	first, err := plan(image, 5)
	if err != nil || len(first) != 1+2*len(detours) {
		t.Fatalf("%d patches, %v", len(first), err)
	}
	for _, p := range first {
		copy(image[p.at:], p.bytes)
	}
	if again, err := plan(image, 6); err != nil || len(again) != 1 || again[0].at != first[0].at {
		t.Errorf("the second time: %v %v", again, err)
	}
	if again, err := plan(image, 5); err != nil || len(again) != 0 {
		t.Errorf("what is so already: %v %v", again, err)
	}
	for name, bad := range map[string][]byte{"nothing": nil, "no program": []byte("hello"), "a full page": image[:used(image)]} {
		if _, err := plan(bad, 5); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
