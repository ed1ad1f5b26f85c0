package envoy

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"sluice.dev/sluice/filters/limits/meter"
	"sluice.dev/sluice/platform/process/child"
)

// busyAdmin is an admin interface with requests in flight: one fewer each time
// that it is asked.
type busyAdmin struct {
	mu       sync.Mutex
	inFlight int
	unsent   int // batches of usage
	calls    []string
}

func (b *busyAdmin) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if strings.Contains(r.FormValue("filter"), meter.SettledMetric) {
		b.calls = append(b.calls, "usage")
		_, _ = fmt.Fprintf(w, "wasmcustom.%s: 7\nwasmcustom.%s: %d\n", meter.BegunMetric, meter.SettledMetric, 7-b.unsent)
		b.unsent--
		return
	}
	b.calls = append(b.calls, r.Method+" "+r.URL.Path)
	if r.URL.Path == "/stats" {
		_, _ = fmt.Fprintf(w, "http.admin.downstream_rq_active: 1\nhttp.gateway.downstream_rq_active: %d\n", b.inFlight)
		b.inFlight--
	}
}

// drainWith drains an Edge whose Envoy is a process that only waits.
func drainWith(t *testing.T, b *busyAdmin, drainTime time.Duration) {
	t.Helper()
	srv := httptest.NewServer(b)
	t.Cleanup(srv.Close)
	proc, err := child.Start(exec.Command("sleep", "1000"), syscall.SIGKILL)
	if err != nil {
		t.Fatal(err)
	}
	e := &Edge{cfg: EdgeConfig{DrainTime: drainTime}, admin: newAdmin(srv.Listener.Addr().String()), proc: proc}
	if err := e.drain(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-proc.Done():
	default:
		t.Fatal("Envoy still runs")
	}
}

func TestEnvoyIsStoppedWhenAllIsAnsweredAndCounted(t *testing.T) {
	t.Parallel()
	b := &busyAdmin{inFlight: 2, unsent: 1}
	drainWith(t, b, time.Hour)
	want := []string{"POST /drain_listeners", "GET /stats", "GET /stats", "GET /stats", "usage", "usage"}
	if !slices.Equal(b.calls, want) {
		t.Errorf("calls %v, want %v", b.calls, want)
	}
}

func TestARequestThatNeverEndsDoesNotHoldTheEnd(t *testing.T) {
	t.Parallel()
	b := &busyAdmin{inFlight: 1 << 30}
	drainWith(t, b, time.Millisecond)
	if b.inFlight < 1<<29 {
		t.Error("it waited for the requests")
	}
}
