package sandbox

import (
	"debug/elf"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// called says that the program's main lets itself be confined.
var called atomic.Bool

// report is the function that says what the machine allows.
const report = "report"

// failed is the exit status of a process that could not be confined.
const failed = 125

// Main is what main calls first, and TestMain of tests that confine. In a confined
// process it does not return; functions are those that a Job may name, which return
// an exit status. They find the other side on standard input and output.
func Main(functions map[string]func() int) {
	if len(os.Args) != 3 || os.Args[1] != word {
		called.Store(true)
		return
	}
	runtime.LockOSThread() // what is given up is the thread's, and goes over into the program
	var o order
	err := json.Unmarshal([]byte(os.Args[2]), &o)
	if o.Function == report {
		functions = map[string]func() int{report: say}
	}
	f := functions[o.Function]
	if err == nil && (f == nil) == (o.Program == "") {
		err = fmt.Errorf("there is no function %q", o.Function)
	}
	if err == nil {
		err = o.confine()
	}
	if err == nil && o.Program == "" {
		os.Exit(f())
	}
	if err == nil {
		err = syscall.Exec(o.Program, append([]string{filepath.Base(o.Program)}, o.Args...), os.Environ())
	}
	fmt.Fprintln(os.Stderr, "sandbox: "+err.Error())
	os.Exit(failed)
}

// confine gives up what the process is not to have, for good.
func (o order) confine() error {
	// If memory runs out this process is the one that the kernel ends.
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte(strconv.Itoa(1000)), 0)
	if err := keepFiles(); err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("refuse new privileges: %w", err)
	}
	memory := room(o.Memory) // which looks into a file
	reach, err := o.reach()
	if err == nil && o.Landlock {
		err = restrict(reach)
	}
	if err == nil {
		err = o.bound(memory)
	}
	if err == nil && o.Seccomp {
		err = install(o.filter())
	}
	return err
}

// reach are the files that the process may use, by path.
func (o order) reach() (map[string]uint64, error) {
	if o.Program == "" {
		return nil, nil
	}
	const public = unix.LANDLOCK_ACCESS_FS_READ_FILE
	reach := map[string]uint64{o.Program: public | unix.LANDLOCK_ACCESS_FS_EXECUTE, o.Folder: inFolder,
		"/dev/null": public | unix.LANDLOCK_ACCESS_FS_WRITE_FILE, "/dev/urandom": public, "/dev/random": public}
	for _, path := range o.Read {
		reach[path] = public | unix.LANDLOCK_ACCESS_FS_READ_DIR
	}
	f, err := elf.Open(o.Program)
	if err != nil {
		return nil, fmt.Errorf("look at %s: %w", o.Program, err)
	}
	defer func() { _ = f.Close() }()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP { // linked with libraries, which are no secret
			for _, path := range []string{"/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib"} {
				reach[path] = public | unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_DIR
			}
			reach["/etc/ld.so.cache"] = public
		}
	}
	return reach, nil
}

// bound sets the bounds that the kernel holds, that of memory included.
func (o order) bound(memory uint64) error {
	for _, b := range []struct {
		resource int
		most     uint64
	}{
		{unix.RLIMIT_CORE, 0}, {unix.RLIMIT_CPU, o.CPU}, {unix.RLIMIT_FSIZE, o.FileSize}, {unix.RLIMIT_NOFILE, 64}, {unix.RLIMIT_DATA, memory},
	} {
		if err := unix.Setrlimit(b.resource, &unix.Rlimit{Cur: b.most, Max: b.most}); err != nil {
			return fmt.Errorf("bound resource %d: %w", b.resource, err)
		}
	}
	return nil
}

// say tells on standard output what the machine allows.
func say() int {
	h := Holds{Landlock: landlockVersion(), Seccomp: install(order{Program: "x"}.filter()) == nil}
	if json.NewEncoder(os.Stdout).Encode(h) != nil {
		return 1
	}
	return 0
}

// Protect keeps this process, which holds secrets, from the eyes of others of its
// user: its memory and environment cannot be read through /proc, nor can it be
// traced or leave a core. What it inherited of open files goes to no program that it
// starts.
func Protect() error {
	if err := keepFiles(); err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("keep memory from others: %w", err)
	}
	return nil
}

// keepFiles has the programs that this process starts inherit none of its files:
// Go's own are not, but it may have inherited some itself.
func keepFiles() error {
	if err := unix.CloseRange(3, ^uint(0), unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fmt.Errorf("keep open files from programs: %w", err)
	}
	return nil
}
