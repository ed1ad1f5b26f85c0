package edgestatus

import (
	"context"
	"log/slog"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sluice.dev/sluice/controlplane/gateway/xds"
	"sluice.dev/sluice/platform/storage/postgres/pgtest"
)

// fake is a source whose edges the test sets.
type fake struct {
	mu      sync.Mutex
	edges   []xds.EdgeStatus
	changed chan struct{}
}

func newFake(edges ...xds.EdgeStatus) *fake {
	return &fake{edges: edges, changed: make(chan struct{})}
}

func (f *fake) Changed() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.changed
}

func (f *fake) Edges() []xds.EdgeStatus {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]xds.EdgeStatus(nil), f.edges...)
}

func (f *fake) set(edges ...xds.EdgeStatus) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.edges = edges
	close(f.changed)
	f.changed = make(chan struct{})
}

// start runs a recorder; stop ends it and returns when it has.
func start(t *testing.T, s Store, f *fake, every time.Duration) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	r := Recorder{Store: s, Source: f, Replica: "r1", Every: every, Pause: time.Millisecond, Log: slog.New(slog.DiscardHandler)}
	go func() { r.Run(ctx); close(done) }()
	stop = func() { cancel(); <-done }
	t.Cleanup(stop)
	return stop
}

// until polls the table, which gives no signal.
func until(t *testing.T, s Store, id string, ok func(Edge) bool) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for e := edge(t, s, id); !ok(e); e = edge(t, s, id) {
		if time.Now().After(deadline) {
			t.Fatalf("it never came: %+v", e)
		}
	}
}

func TestRecorderWritesWhatChanges(t *testing.T) {
	t.Parallel()
	s := Store{pgtest.Pool(t)}
	now := time.Now()
	f := newFake(seen("e1", 1, now))
	stop := start(t, s, f, time.Hour)
	until(t, s, "e1", func(e Edge) bool { return e.Held == 1 })
	f.set(seen("e1", 2, now), seen("e2", 2, now))
	until(t, s, "e2", func(e Edge) bool { return e.Held == 2 })
	stop()
	if e := edge(t, s, "e1"); e.Connected || e.Held != 2 {
		t.Errorf("the replica is gone: %+v", e)
	}
}

// A crash of the database empties the table, which no recorder is told.
func TestRecorderWritesAgainWhatTheTableLost(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	s := Store{pool}
	start(t, s, newFake(seen("e1", 1, time.Now())), 5*time.Millisecond)
	until(t, s, "e1", func(e Edge) bool { return e.Held == 1 })
	exec(t, pool, `TRUNCATE edges`)
	until(t, s, "e1", func(e Edge) bool { return e.Held == 1 && e.Connected })
}

func TestRecorderGoesOnAfterFailures(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	s := Store{pool}
	f := newFake(seen("e1", 1, time.Now()))
	exec(t, pool, `ALTER TABLE edges RENAME TO away`)
	start(t, s, f, 5*time.Millisecond)
	exec(t, pool, `ALTER TABLE away RENAME TO edges`)
	until(t, s, "e1", func(e Edge) bool { return e.Held == 1 })
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	late := seen("e1", 3, clock)
	late.Wanted, late.Current, late.Refusals = 5, false, []string{"routes: no"}
	gone := seen("e2", 3, clock)
	gone.Connected = false
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(Metrics(newFake(late, gone)))
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			got[f.GetName()+" "+m.GetLabel()[0].GetValue()] = m.GetGauge().GetValue()
		}
	}
	want := map[string]float64{
		"sluice_edge_connected e1": 1, "sluice_edge_connected e2": 0,
		"sluice_edge_current e1": 0, "sluice_edge_refusals e1": 1, "sluice_edge_versions_behind e1": 2,
	}
	if !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
