package pgserver

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"sluice.dev/sluice/platform/process/child/childtest"
)

// fakeBinaries makes a folder of a server named as Debian names it.
func fakeBinaries(t *testing.T, root, version string, names ...string) string {
	t.Helper()
	dir := filepath.Join(root, version, "bin")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		script := "#!/bin/sh\necho 'postgres (PostgreSQL) 16.2 (Homemade)'\n"
		childtest.Program(t, filepath.Join(dir, name), script)
	}
	return dir
}

func TestNewest(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	v14 := fakeBinaries(t, root, "14", "postgres", "initdb")
	v15 := fakeBinaries(t, root, "15", "postgres", "initdb")
	v17 := fakeBinaries(t, root, "17", "postgres", "initdb")
	v18 := fakeBinaries(t, root, "18", "postgres") // a client's package without initdb
	own := fakeBinaries(t, root, "homemade", "postgres", "initdb")
	for want, dirs := range map[string][]string{
		v17: {v14, v15, v17, v18, own},
		own: {v15, own},
		v15: {"/no/such/folder", v15, v14},
		"":  {v14, v18},
	} {
		if got := newest(dirs); got != want {
			t.Errorf("newest(%v) = %s, want %s", dirs, got, want)
		}
	}
}

func FuzzParseVersion(f *testing.F) {
	for text, want := range map[string]int{
		"postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)": 15,
		"postgres (PostgreSQL) 17beta1":                        17,
		"bash: postgres: command not found":                    0,
	} {
		if got := parseVersion(text); got != want {
			f.Errorf("%q: %d, want %d", text, got, want)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if parseVersion(text) < 0 {
			t.Fatalf("a version below zero from %q", text)
		}
	})
}

func FuzzPidOf(f *testing.F) {
	for text, want := range map[string]int{"4711\n/data\n": 4711, "1\n": 0, "-5": 0, "": 0, "x\n1": 0} {
		if got := pidOf(text); got != want {
			f.Errorf("%q: %d, want %d", text, got, want)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		// 1 is init and a negative number a process group: neither may ever get a signal.
		if pid := pidOf(text); pid < 0 || pid == 1 {
			t.Fatalf("pid %d from %q", pid, text)
		}
	})
}

func TestLogTail(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		pieces []string
		ready  bool
		cause  string
	}{
		"ready":            {[]string{"LOG:  database system is re", "ady to accept connections\n"}, true, "LOG:  database system is ready to accept connections"},
		"fatal":            {[]string{"FATAL:  first\n", "FATAL:  second\nLOG:  database system is shut down\n"}, false, "FATAL:  second"},
		"fatal with hint":  {[]string{"FATAL:  no port\nHINT:  choose one\n"}, false, "FATAL:  no port (HINT:  choose one)"},
		"nothing":          {nil, false, "its log is empty"},
		"no more than ten": {[]string{strings.Repeat("x", 3*maxLogLine), "\nLOG:  end\n"}, false, "LOG:  end"},
	} {
		var out strings.Builder
		l := newLogTail(&out)
		for _, piece := range c.pieces {
			if _, err := l.Write([]byte(piece)); err != nil {
				t.Fatal(err)
			}
		}
		ready := false
		select {
		case <-l.ready:
			ready = true
		default:
		}
		if ready != c.ready || l.cause() != c.cause || out.String() != strings.Join(c.pieces, "") {
			t.Errorf("%s: ready %v, cause %q", name, ready, l.cause())
		}
	}
}

func TestReaches(t *testing.T) {
	t.Parallel()
	open := t.TempDir()
	closed := filepath.Join(open, "closed")
	if err := os.Mkdir(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	stranger := account{switched: true, uid: 4711, gid: 4711}
	if stranger.reaches(closed) {
		t.Error("a stranger enters a folder of mode 0700")
	}
	if !stranger.reaches("/usr/lib") {
		t.Error("a stranger is kept from /usr/lib")
	}
	if stranger.reaches(filepath.Join(open, "missing")) {
		t.Error("a folder that is not there can be entered")
	}
	if !(account{}).reaches(closed) {
		t.Error("whoever runs this is kept from an own folder")
	}
	if owner := (account{switched: true, uid: uint32(os.Getuid()), gid: 1}); !owner.enters(mustStat(t, closed)) {
		t.Error("the owner is kept out")
	}
}

func mustStat(t *testing.T, name string) os.FileInfo {
	t.Helper()
	info, err := os.Stat(name)
	if err != nil {
		t.Fatal(err)
	}
	return info
}

func TestFindAccount(t *testing.T) {
	t.Parallel()
	self, err := findAccount(4711)
	if err != nil || self.switched || self.uid != 4711 || self.attributes().Credential != nil {
		t.Errorf("not root: %+v, %v; want the caller", self, err)
	}
	other, err := findAccount(0)
	if err != nil || !other.switched || other.uid == 0 || other.attributes().Credential.Uid != other.uid {
		t.Errorf("root: %+v, %v; want another user", other, err)
	}
}

// TestALeftoverServerIsStopped has a process that keeps the data folder as its
// working folder, as a postmaster does.
func TestALeftoverServerIsStopped(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	cmd := startIn(t, data, "trap 'exit 0' INT; : > up; while :; do sleep 0.01; done")
	pidFile := filepath.Join(data, "postmaster.pid")
	if err := os.WriteFile(pidFile, []byte(strconv.Itoa(cmd.Process.Pid)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	reaped := make(chan error, 1)
	go func() { reaped <- cmd.Wait() }()
	if err := stopLeftover(context.Background(), data); err != nil {
		t.Fatal(err)
	}
	if err := <-reaped; err != nil {
		t.Errorf("it was not asked in order: %v", err)
	}
}

func TestAPidFileOfSomebodyElseIsRemovedAndNobodyIsHurt(t *testing.T) {
	t.Parallel()
	data, elsewhere := t.TempDir(), t.TempDir()
	cmd := startIn(t, elsewhere, ": > up; exec sleep 1000")
	pidFile := filepath.Join(data, "postmaster.pid")
	if err := os.WriteFile(pidFile, []byte(strconv.Itoa(cmd.Process.Pid)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := stopLeftover(context.Background(), data); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(pidFile); !os.IsNotExist(err) {
		t.Errorf("the pid file is still there (%v)", err)
	}
	if err := cmd.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("the other process was hurt: %v", err)
	}
}

// fakeServer is a folder whose postgres says that it is of a version.
func fakeServer(t *testing.T, dir, version string) {
	t.Helper()
	for _, name := range []string{"postgres", "initdb"} {
		file := filepath.Join(dir, "bin", name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		childtest.Program(t, file, "#!/bin/sh\necho 'postgres (PostgreSQL) "+version+"'\n")
	}
}

// Data are served by the version that made them, also where a newer server is there;
// a download is unpacked once, and only where nothing else is.
func TestTheServerIsThatOfItsData(t *testing.T) {
	t.Parallel()
	h := home{base: t.TempDir()}
	old := filepath.Join(t.TempDir(), "old")
	fakeServer(t, old, "98.1")
	unpacked := 0
	download := Download{Version: "99.0", Unpack: func(_ context.Context, dir string) error {
		unpacked++
		fakeServer(t, dir, "99.0")
		return nil
	}}
	find := func(path string) string {
		t.Helper()
		bin, err := findBinaries(t.Context(), path, download, h)
		if err != nil {
			t.Fatal(err)
		}
		return bin
	}
	oldBin := filepath.Join(old, "bin")
	if got := find(oldBin); got != oldBin || unpacked != 0 || !Installed(oldBin) {
		t.Errorf("%s, unpacked %d times: the machine has a server", got, unpacked)
	}
	fresh := filepath.Join(h.base, "postgresql-99.0", "bin")
	fakeServer(t, filepath.Dir(fresh), "99.0")
	if err := os.MkdirAll(h.data(), 0o755); err != nil {
		t.Fatal(err)
	}
	for version, want := range map[string]string{"99": fresh, "98": oldBin} {
		if err := os.WriteFile(filepath.Join(h.data(), "PG_VERSION"), []byte(version+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		if got := find(oldBin); got != want {
			t.Errorf("data of %s: %s, want %s", version, got, want)
		}
	}
}
