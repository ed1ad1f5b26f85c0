package sandbox_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"sluice.dev/sluice/platform/process/sandbox"
)

// attacks are what a program that was taken over would try. Each gets one word, and
// nil means that it has succeeded.
var attacks = map[string]func(word string) error{
	"tcp": func(address string) error {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			conn.Close()
		}
		return err
	},
	"udp": func(string) error {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
		if err == nil {
			unix.Close(fd)
		}
		return err
	},
	"unix": func(string) error {
		_, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM, 0)
		return err
	},
	"read": func(path string) error {
		_, err := os.ReadFile(path)
		return err
	},
	"list": func(path string) error {
		_, err := os.ReadDir(path)
		return err
	},
	"write": func(path string) error { return os.WriteFile(path, []byte("was here"), 0o600) },
	"run": func(path string) error {
		return exec.Command(path, "--help").Run()
	},
	"signal": func(pid string) error {
		n, _ := strconv.Atoi(pid)
		return syscall.Kill(n, 0)
	},
	"trace": func(pid string) error {
		n, _ := strconv.Atoi(pid)
		if err := syscall.PtraceAttach(n); err != nil {
			return err
		}
		return syscall.PtraceDetach(n)
	},
	"namespace": func(string) error {
		if _, _, errno := syscall.RawSyscall(syscall.SYS_UNSHARE, unix.CLONE_NEWNS, 0, 0); errno != 0 {
			return errno
		}
		return nil
	},
	"file": func(fd string) error {
		n, _ := strconv.Atoi(fd)
		var b [1]byte
		_, err := unix.Pread(n, b[:], 0)
		return err
	},
	"environment": func(name string) error {
		if strings.Contains(strings.Join(os.Environ(), "\n"), name) {
			return nil
		}
		return errors.New("it is not there")
	},
	"memory": func(size string) error {
		n, _ := strconv.Atoi(size)
		for b := make([]byte, n); len(b) > 0; b = b[min(len(b), 4096):] {
			b[0] = 1
		}
		return nil
	},
	"cpu": func(string) error {
		for end := cpu() + 4*time.Second; cpu() < end; {
		}
		return nil
	},
}

// cpu is the time that this process has taken.
func cpu() time.Duration {
	var u unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

const (
	succeeded = 0
	refused   = 3
)

// attack does what two words on standard input say.
func attack() int {
	line, _ := bufio.NewReader(os.Stdin).ReadString('\n')
	name, word, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
	if err := attacks[name](word); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return refused
	}
	return succeeded
}

func TestMain(m *testing.M) {
	sandbox.Main(map[string]func() int{"attack": attack})
	if len(os.Args) > 1 && os.Args[1] == "attack" {
		os.Exit(attack())
	}
	if len(os.Args) > 1 && os.Args[1] == "hold" {
		hold(os.Args[2] == "protected")
	}
	os.Exit(m.Run())
}

// job is a program of ours in a folder of its own, or a function.
func job(t *testing.T, function bool) sandbox.Job {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	j := sandbox.Job{Program: self, Args: []string{"attack"}, Folder: t.TempDir(), Memory: 256 << 20, FileSize: 1 << 10}
	if function {
		j.Program, j.Args, j.Folder, j.Function, j.FileSize = "", nil, "", "attack", 0
	}
	return j
}

// try has j attack, and returns how it ended.
func try(t *testing.T, j sandbox.Job, name, word string) (status int, said string) {
	t.Helper()
	var out bytes.Buffer
	j.Stderr = &out
	j.Talk = func(in io.Writer, _ io.Reader) error {
		_, err := fmt.Fprintf(in, "%s %s\n", name, word)
		return err
	}
	err := j.Run(t.Context())
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode(), out.String()
	}
	if err != nil {
		t.Fatal(err)
	}
	return succeeded, out.String()
}

// bare does the same without a sandbox, which shows that the attack is one.
func bare(t *testing.T, name, word string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, "attack")
	cmd.Stdin = strings.NewReader(name + " " + word + "\n")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%s %s fails without a sandbox too: %v %s", name, word, err, out)
	}
}

func TestWhatAConfinedProcessCannotDo(t *testing.T) {
	t.Setenv("SANDBOX_TEST_SECRET", "hunter2")
	if h := sandbox.Check(); !h.Whole() {
		t.Fatalf("this machine confines nothing: %s", h)
	}
	t.Log(sandbox.Check())
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	fd, err := unix.Open(secret, unix.O_RDONLY, 0) // without close-on-exec, as from who started us
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	pid := strconv.Itoa(os.Getpid())
	for _, c := range []struct{ name, word string }{
		{"tcp", l.Addr().String()}, {"udp", ""}, {"unix", ""},
		{"read", "/proc/" + pid + "/environ"}, {"read", secret}, {"read", "/etc/passwd"}, {"list", "/"}, {"list", "/proc"},
		{"write", filepath.Join(filepath.Dir(secret), "new")}, {"signal", pid}, {"namespace", ""},
		{"environment", "SANDBOX_TEST_SECRET"}, {"environment", "hunter2"}, {"file", strconv.Itoa(fd)},
	} {
		if c.name != "file" && c.name != "environment" && (c.name != "namespace" || os.Getuid() == 0) {
			bare(t, c.name, c.word)
		}
		for _, function := range []bool{false, true} {
			if status, said := try(t, job(t, function), c.name, c.word); status != refused {
				t.Errorf("%s %s, function %v: status %d %s", c.name, c.word, function, status, said)
			}
		}
	}
	for _, function := range []bool{false, true} {
		if status, said := try(t, job(t, function), "trace", pid); status != refused {
			t.Errorf("trace: %d %s", status, said)
		}
		if status, said := try(t, job(t, function), "run", "/bin/true"); status != refused {
			t.Errorf("run: %d %s", status, said)
		}
	}
}

// What takes too much dies, and nobody else.
func TestWhatAConfinedProcessCannotTake(t *testing.T) {
	t.Parallel()
	for _, function := range []bool{false, true} {
		j := job(t, function)
		if status, said := try(t, j, "memory", strconv.Itoa(64<<20)); status != succeeded {
			t.Errorf("64 MiB: %d %s", status, said)
		}
		if status, said := try(t, j, "memory", strconv.Itoa(512<<20)); status == succeeded || status == refused {
			t.Errorf("512 MiB of 256: %d %s", status, said)
		}
		if status, said := try(t, j, "cpu", ""); status != -1 {
			t.Errorf("four seconds of one: %d %s", status, said)
		}
	}
}

// Strangers' files do not make requests late; what keeps up with a stream does not wait.
func TestConfinedProcessesGiveWay(t *testing.T) {
	t.Parallel()
	for live, want := range map[bool]int{false: 10, true: 0} {
		j := job(t, true)
		j.Live = live
		j.Talk = func(in io.Writer, _ io.Reader) error { // on the thread that started it, whose niceness it has
			raw, err := unix.Getpriority(unix.PRIO_PROCESS, 0) // 20 less the niceness
			if got := 20 - raw; got != want {
				t.Errorf("live %v: niceness %d, want %d", live, got, want)
			}
			fmt.Fprintln(in, "environment PATH")
			return err
		}
		if err := j.Run(t.Context()); err == nil {
			t.Error("it did not listen")
		}
	}
}

func TestAProgramHasItsFolder(t *testing.T) {
	t.Parallel()
	j := job(t, false)
	name := filepath.Join(j.Folder, "result")
	if status, said := try(t, j, "write", name); status != succeeded {
		t.Fatalf("%d %s", status, said)
	}
	if status, said := try(t, j, "read", name); status != succeeded {
		t.Errorf("%d %s", status, said)
	}
	j.FileSize = 3
	if status, said := try(t, j, "write", name); status == succeeded {
		t.Errorf("a file larger than is allowed: %s", said)
	}
}

func TestJobsThatCannotBeRun(t *testing.T) {
	t.Parallel()
	script := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(script, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, j := range map[string]sandbox.Job{
		"no program": {Program: "/no/such/program", Folder: t.TempDir(), Memory: 1 << 30},
		"a script":   {Program: script, Folder: t.TempDir(), Memory: 1 << 30},
		"a function": {Function: "nobody knows", Memory: 1 << 30},
		"nothing":    {Memory: 1 << 30},
	} {
		var said bytes.Buffer
		j.Stderr = &said
		err := j.Run(t.Context())
		if !sandbox.Failed(err) || !strings.HasPrefix(said.String(), "sandbox: ") {
			t.Errorf("%s: %v %s", name, err, said.String())
		}
	}
}

// hold stays, with a secret in its environment, until its input ends.
func hold(protected bool) {
	if protected {
		if err := sandbox.Protect(); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	}
	fmt.Println("here")
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}

// Another process of the same user reads what is in the environment of one that is
// not protected.
func TestAProtectedProcessIsNotRead(t *testing.T) {
	t.Parallel()
	for _, protected := range []string{"open", "protected"} {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		cmd := exec.CommandContext(ctx, "/proc/self/exe", "hold", protected)
		as(cmd)
		cmd.Env = []string{"SECRET=hunter2"}
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if line, err := bufio.NewReader(out).ReadString('\n'); line != "here\n" {
			t.Fatal(line, err)
		}
		look := exec.CommandContext(ctx, "/proc/self/exe", "attack")
		as(look)
		look.Stdin = strings.NewReader("read /proc/" + strconv.Itoa(cmd.Process.Pid) + "/environ\n")
		if err := look.Run(); (err == nil) != (protected == "open") {
			t.Errorf("%s: %v", protected, err)
		}
	}
}

// as has cmd run as a user without privileges.
func as(cmd *exec.Cmd) {
	cmd.Dir = "/"
	if os.Getuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
}

// A program may read the folders that it is given besides, and do nothing else there.
func TestAProgramReadsItsModels(t *testing.T) {
	t.Parallel()
	models := t.TempDir()
	file := filepath.Join(models, "model")
	if err := os.WriteFile(file, []byte("weights"), 0o644); err != nil {
		t.Fatal(err)
	}
	given := job(t, false)
	given.Read = []string{models}
	for name, word := range map[string]string{"read": file, "list": models} {
		if status, said := try(t, given, name, word); status != succeeded {
			t.Errorf("%s %s: status %d %s", name, word, status, said)
		}
		if status, said := try(t, job(t, false), name, word); status != refused {
			t.Errorf("%s %s without leave: status %d %s", name, word, status, said)
		}
	}
	for _, word := range []string{file, filepath.Join(models, "new")} {
		if status, said := try(t, given, "write", word); status != refused {
			t.Errorf("write %s: status %d %s", word, status, said)
		}
	}
}
