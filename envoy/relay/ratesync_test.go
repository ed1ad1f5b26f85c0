package relay

import (
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"sluice.dev/sluice/filters/edgeapi"
	"sluice.dev/sluice/filters/limits/sharedlimit"
)

// counting is a replica that answers exchanges of counts as it is told: by the
// number of edges; 0: it is not there.
type counting struct {
	mu    sync.Mutex
	edges uint32
	now   time.Time
	last  sharedlimit.Report // that was sent
}

func (c *counting) RoundTrip(r *http.Request) (*http.Response, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	c.last, _ = sharedlimit.ParseReport(raw)
	if c.edges == 0 {
		return nil, io.ErrUnexpectedEOF
	}
	body := string(sharedlimit.Answer{Edges: c.edges}.Append(nil))
	return &http.Response{StatusCode: 200, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), ContentLength: -1}, nil
}

func (c *counting) clock() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *counting) set(edges uint32, later time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.edges, c.now = edges, c.now.Add(later)
}

// ask is what Envoy asks, and what it hears.
func (c *counting) ask(t *testing.T, x *rateSync) (status int, a sharedlimit.Answer) {
	t.Helper()
	w := newRecorder()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://agent"+edgeapi.CountsPath, strings.NewReader(string(sharedlimit.Report{}.Append(nil))))
	if err != nil {
		t.Fatal(err)
	}
	x.handler(&upstreams{cfg: x.cfg, http: &http.Client{Transport: c}}).ServeHTTP(w, r)
	a, ok := sharedlimit.ParseAnswer(w.body)
	if !ok {
		t.Fatalf("%d %x", w.status, w.body)
	}
	return w.status, a
}

// recorder is a response writer in memory.
type recorder struct {
	status int
	header http.Header
	body   []byte
}

func newRecorder() *recorder                    { return &recorder{status: 200, header: http.Header{}} }
func (w *recorder) Header() http.Header         { return w.header }
func (w *recorder) WriteHeader(status int)      { w.status = status }
func (w *recorder) Write(b []byte) (int, error) { w.body = append(w.body, b...); return len(b), nil }

func wantLimits(t *testing.T, x *rateSync, how string, edges uint32, age float64) {
	t.Helper()
	if gotHow, gotEdges, gotAge := x.status(); gotHow != how || gotEdges != edges || gotAge != age {
		t.Fatalf("limits are %s of %d, heard %v s ago; want %s of %d, %v s ago", gotHow, gotEdges, gotAge, how, edges, age)
	}
}

// The agent knows how its edge limits, and remembers the others over a restart.
func TestHowAnEdgeLimits(t *testing.T) {
	t.Parallel()
	c := &counting{now: time.Unix(1_800_000_000, 0)}
	config := quietly(t.TempDir(), c.clock)
	x := newRateSync(config)
	wantLimits(t, x, Alone, 0, -1)
	c.set(1, 0)
	if status, a := c.ask(t, x); status != 200 || a.Edges != 1 {
		t.Fatal(status, a)
	}
	wantLimits(t, x, Alone, 1, 0)
	c.set(3, time.Second)
	if status, a := c.ask(t, x); status != 200 || a.Edges != 3 {
		t.Fatal(status, a)
	}
	wantLimits(t, x, Shared, 3, 0)
	c.set(0, 2*time.Second)
	wantLimits(t, x, Shared, 3, 2)
	if status, a := c.ask(t, x); status != 503 || a.Edges != 3 {
		t.Fatal("no replica answers:", status, a)
	}
	c.set(0, time.Second)
	wantLimits(t, x, Share, 3, 3)

	x = newRateSync(config) // a restart, while still no replica answers
	wantLimits(t, x, Share, 3, -1)
	if status, a := c.ask(t, x); status != 503 || a.Edges != 3 {
		t.Fatal("after a restart:", status, a)
	}
	c.set(2, 0)
	c.ask(t, x)
	wantLimits(t, x, Shared, 2, 0)
}

// A damaged file is as good as none.
func TestNumberOfEdgesThatIsDamaged(t *testing.T) {
	t.Parallel()
	config := quietly(t.TempDir(), time.Now)
	if err := writeSealed(filepath.Join(config.Dir, "fleet.state"), []byte("no number")); err != nil {
		t.Fatal(err)
	}
	wantLimits(t, newRateSync(config), Alone, 0, -1)
}

// A replica is told that an edge has ended, and its last counts, once its Envoy has.
func TestAnEdgeLeaves(t *testing.T) {
	t.Parallel()
	c := &counting{edges: 2, now: time.UnixMilli(1_800_000_000_000)}
	x := newRateSync(Config{Dir: t.TempDir(), Now: c.clock, Log: slog.New(slog.DiscardHandler), Edge: "e1"})
	up := &upstreams{cfg: x.cfg, http: &http.Client{Transport: c}}
	x.leave(up)
	c.ask(t, x)
	told := sharedlimit.Report{Told: 1_800_000_000_500, Boot: 7, Holders: 3, Strict: true}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://agent"+edgeapi.CountsPath, strings.NewReader(string(told.Append(nil))))
	if err != nil {
		t.Fatal(err)
	}
	x.handler(up).ServeHTTP(newRecorder(), r)
	if x.leave(up); c.last.Boot != 7 {
		t.Fatalf("Envoy still runs: %+v", c.last)
	}
	if got := x.holders(); got != 3 {
		t.Errorf("it holds 1 of %d", got)
	}
	x.ended = true
	if x.leave(up); c.last.Boot != 0 || c.last.Told != told.Told+1 || c.last.Holders != 3 {
		t.Errorf("%+v", c.last)
	}
}
