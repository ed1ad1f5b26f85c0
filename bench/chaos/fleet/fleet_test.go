package fleet

import (
	"bufio"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"sluice.dev/sluice/bench/chaos/audit"
	"sluice.dev/sluice/bench/chaos/plan"
)

// echo answers each line with itself.
func echo(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(c, c); c.Close() }()
		}
	}()
	return l.Addr().String()
}

// Waits for what comes, on a busy machine too, and for what must not.
const long, short = 20 * time.Second, 200 * time.Millisecond

// says sends a line over a new connection and returns what comes back in time.
func says(addr string, wait time.Duration) (string, error) {
	c, err := net.DialTimeout("tcp", addr, long)
	if err != nil {
		return "", err
	}
	defer c.Close()
	if _, err := io.WriteString(c, "hello\n"); err != nil {
		return "", err
	}
	if err := c.SetReadDeadline(time.Now().Add(wait)); err != nil {
		return "", err
	}
	return bufio.NewReader(c).ReadString('\n')
}

func laid(t *testing.T) (*wires, string) {
	t.Helper()
	w := newWires()
	t.Cleanup(w.close)
	addr, err := w.lay("a>b", "127.0.0.1:0", echo(t))
	if err != nil {
		t.Fatal(err)
	}
	return w, addr
}

func TestAWireCarriesUntilItIsCut(t *testing.T) {
	t.Parallel()
	w, addr := laid(t)
	if got, err := says(addr, long); err != nil || got != "hello\n" {
		t.Fatalf("%q %v", got, err)
	}
	mendOne, err := w.cut("a>b")
	if err != nil {
		t.Fatal(err)
	}
	mendTwo, err := w.cut("a>b")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := says(addr, short); err == nil {
		t.Error("a cut wire carries")
	}
	if err := mendOne(); err != nil {
		t.Fatal(err)
	}
	if _, err := says(addr, short); err == nil {
		t.Error("it was cut twice and mended once, and carries")
	}
	if err := mendTwo(); err != nil {
		t.Fatal(err)
	}
	if got, err := says(addr, long); err != nil || got != "hello\n" {
		t.Errorf("after it was mended: %q %v", got, err)
	}
}

func TestAPoisonedWireHeals(t *testing.T) {
	t.Parallel()
	for kind, attributes := range map[string]map[string]any{"timeout": {"timeout": 0}, "reset_peer": {"timeout": 0}} {
		w, addr := laid(t)
		heal, err := w.poison("a>b", kind, attributes)
		if err != nil {
			t.Fatal(err)
		}
		also, err := w.poison("a>b", "latency", map[string]any{"latency": 1, "jitter": 0})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := says(addr, short); err == nil {
			t.Errorf("%s: %q passes", kind, got)
		}
		if err := errors.Join(heal(), also()); err != nil {
			t.Fatal(err)
		}
		if got, err := says(addr, long); err != nil || got != "hello\n" {
			t.Errorf("%s, healed: %q %v", kind, got, err)
		}
	}
}

func TestNobodyPoisonsWhatIsNotThere(t *testing.T) {
	t.Parallel()
	w, _ := laid(t)
	if _, err := w.poison("a>c", "timeout", nil); err == nil {
		t.Error("no error")
	}
	if _, err := w.cut("a>c"); err == nil {
		t.Error("no error")
	}
	if _, err := w.poison("a>b", "arsenic", nil); err == nil {
		t.Error("an unknown toxic is no error")
	}
}

// shell makes commands that run script.
func shell(script string) func() *exec.Cmd {
	return func() *exec.Cmd { return exec.Command("/bin/sh", "-c", script) }
}

// A process that is killed comes back; one that is stopped does not.
func TestProcessComesBack(t *testing.T) {
	t.Parallel()
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	p := &process{name: "sleeper", command: shell("sleep 1000 & wait"), log: log}
	if err := p.start(); err != nil {
		t.Fatal(err)
	}
	first := p.current()
	if err := p.signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-first.Done()
	deadline := time.After(long)
	for p.current() == first {
		select {
		case <-deadline:
			t.Fatal("it does not come back")
		case <-time.After(20 * time.Millisecond):
		}
	}
	if p.starts != 2 {
		t.Errorf("%d starts", p.starts)
	}
	if err := p.stop(); err != nil {
		t.Error(err)
	}
	select {
	case <-p.current().Done():
	default:
		t.Error("it goes on")
	}
}

// What an edge could not hear of is known from what was broken.
func TestOutages(t *testing.T) {
	t.Parallel()
	f := &Fleet{kills: map[string][]audit.Span{}}
	span := audit.Span{From: time.Unix(1, 0), To: time.Unix(2, 0)}
	for _, fault := range []plan.Fault{
		{Kind: plan.Kill, Target: "edge-1"}, {Kind: plan.Cut, Target: "edge-2>controlplane-1"}, {Kind: plan.Kill, Target: "controlplane-2"},
		{Kind: plan.Slow, Target: "controlplane-1>postgres"}, {Kind: plan.CrashPostgres, Target: "postgres"}, {Kind: plan.Kill, Target: "worker-1"}, {Kind: plan.Cut, Target: "edges>media"},
		{Kind: plan.Cut, Target: "clients>edge-1"}, {Kind: plan.Cut, Target: "operators>controlplane-1"}, {Kind: plan.Cut, Target: "controlplane-1>edge-1"},
		{Kind: plan.JumpClock, Target: "edge-1", Amount: 300},
	} {
		f.note(fault, span)
	}
	var got []string
	for _, o := range f.Outages() {
		got = append(got, o.Edge)
	}
	if strings.Join(got, ",") != "edge-1,edge-2,,," {
		t.Errorf("%q", got)
	}
	if s := f.Skews(); len(s) != 1 || s[0] != (audit.Skew{Part: "edge-1", Seconds: 300, Span: span}) {
		t.Errorf("%+v", s)
	}
	if n := len(f.Struck()); n != 11 {
		t.Errorf("%d things were broken", n)
	}
	if len(f.Kills("edge-1")) != 1 || len(f.Kills("worker-1")) != 1 || len(f.Kills("edge-2")) != 0 {
		t.Errorf("%v", f.kills)
	}
}

// Edges end before what they report to, and every process is asked to end in order.
func TestStop(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	out, log, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	defer log.Close()
	ended := filepath.Join(dir, "ended")
	f := &Fleet{processes: map[string]*process{}, wires: newWires()}
	for _, name := range []string{"controlplane-1", "worker-1", "edge-1"} {
		script := "trap 'echo " + name + " >> " + ended + "; exit 0' TERM; echo " + name + "; while :; do sleep 1000 & wait; done"
		p := &process{name: name, command: shell(script), log: log}
		f.processes[name], f.order = p, append(f.order, name)
		if err := p.start(); err != nil {
			t.Fatal(err)
		}
	}
	if err := out.SetReadDeadline(time.Now().Add(long)); err != nil {
		t.Fatal(err)
	}
	for lines, n := bufio.NewReader(out), 0; n < 3; n++ { // each has set its trap
		if _, err := lines.ReadString('\n'); err != nil {
			t.Fatalf("%d have started: %v", n, err)
		}
	}
	if err := f.Stop(); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(ended); err != nil || string(text) != "edge-1\nworker-1\ncontrolplane-1\n" {
		t.Errorf("%q %v", text, err)
	}
}
