package ratesync

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"sluice.dev/sluice/filters/edgeapi"
	"sluice.dev/sluice/filters/limits/sharedlimit"
	"sluice.dev/sluice/platform/storage/postgres/pgtest"
)

// replica is one replica of the control plane.
type replica struct {
	url  string
	stop func()
}

func newReplica(t *testing.T, pool *pgxpool.Pool) replica {
	t.Helper()
	x := New(Config{Pool: pool, Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	s := httptest.NewServer(x)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); x.Run(ctx) }()
	stop := func() { cancel(); <-ended; s.Close() }
	t.Cleanup(stop)
	return replica{s.URL, stop}
}

// post sends body as the named edge and returns the status and what was answered.
func (r replica) post(t *testing.T, name string, body []byte) (int, sharedlimit.Answer) {
	t.Helper()
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, r.url, bytes.NewReader(body))
	req.Header.Set(edgeapi.EdgeHeader, name)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	a, _ := sharedlimit.ParseAnswer(raw)
	return resp.StatusCode, a
}

// began is the second in which everything is counted.
var began = time.Now().Unix()

// clock is what edges say when they report: never the same twice.
var clock atomic.Int64

func init() { clock.Store(began * 1000) }

// tell reports that an edge has counted n requests, and returns how many the
// others have.
func (r replica) tell(t *testing.T, name string, n uint32) (others uint64, edges uint32) {
	t.Helper()
	status, a := r.post(t, name, counted(clock.Add(1), 1, 7, began, n).Append(nil))
	if status != http.StatusOK {
		t.Fatalf("status %d", status)
	}
	for _, e := range a.Entries {
		others += sum(&e.Others)
	}
	return others, a.Edges
}

func TestWhatIsAReport(t *testing.T) {
	t.Parallel()
	r := newReplica(t, nil)
	good := counted(time.Now().UnixMilli(), 1, 7, time.Now().Unix(), 1).Append(nil)
	for name, c := range map[string]struct {
		edge string
		body []byte
		want int
	}{
		"a report":         {"a", good, 200},
		"no name":          {"", good, 400},
		"not a report":     {"a", []byte("x"), 400},
		"cut short":        {"a", good[:len(good)-1], 400},
		"one that is huge": {"a", make([]byte, sharedlimit.MaxBytes+1), 400},
	} {
		if status, _ := r.post(t, c.edge, c.body); status != c.want {
			t.Errorf("%s: status %d, want %d", name, status, c.want)
		}
	}
}

// An edge without counts waits for those of others and hears them at once.
func TestAnIdleEdgeHearsOfTheFirstCount(t *testing.T) {
	t.Parallel()
	r := newReplica(t, nil)
	heard := make(chan sharedlimit.Answer)
	go func() {
		_, a := r.post(t, "idle", sharedlimit.Report{Told: uint64(time.Now().UnixMilli()), Boot: 1}.Append(nil))
		heard <- a
	}()
	r.tell(t, "busy", 5)
	if a := <-heard; len(a.Entries) > 1 || len(a.Entries) == 1 && sum(&a.Entries[0].Others) != 5 {
		t.Fatalf("%+v", a)
	}
	if _, a := r.post(t, "idle", sharedlimit.Report{Told: uint64(time.Now().UnixMilli()) + 1, Boot: 1}.Append(nil)); len(a.Entries) != 1 || a.Edges != 2 {
		t.Fatalf("%+v", a)
	}
}

// Edges that speak to different replicas hear each other, and one that changes
// replicas is not counted twice.
func TestReplicasPassCountsOn(t *testing.T) {
	t.Parallel()
	db := pgtest.Pool(t)
	one, two := newReplica(t, db), newReplica(t, db)
	one.tell(t, "a", 5)
	until(t, "b hears a by the other replica", func() bool { others, edges := two.tell(t, "b", 3); return others == 5 && edges == 2 })
	until(t, "a hears b", func() bool { others, _ := one.tell(t, "a", 6); return others == 3 })
	two.tell(t, "a", 8)
	until(t, "c hears both, each once", func() bool { others, edges := one.tell(t, "c", 0); return others == 11 && edges == 3 })
	if n, err := Prune(t.Context(), db); n != 0 || err != nil {
		t.Fatalf("%d fresh rows were pruned: %v", n, err)
	}
	if _, err := db.Exec(t.Context(), `UPDATE edge_counts SET at = at - interval '61 minutes' WHERE edge = 'a'`); err != nil {
		t.Fatal(err)
	}
	one.stop()
	two.stop()
	if n, err := Prune(t.Context(), db); n != 1 || err != nil {
		t.Fatalf("%d old rows were pruned: %v", n, err)
	}
}

// until polls for what another replica does in its own time.
func until(t *testing.T, what string, f func() bool) {
	t.Helper()
	deadline, tick := time.After(20*time.Second), time.NewTicker(10*time.Millisecond)
	defer tick.Stop()
	for !f() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal(what)
		}
	}
}

// A replica that starts knows which edges there are, heard of or not, and what starts of
// them that have ended had counted.
func TestAReplicaStartsWithWhatOthersKnew(t *testing.T) {
	t.Parallel()
	db := pgtest.Pool(t)
	one := newReplica(t, db)
	one.tell(t, "a", 5)
	one.post(t, "a", counted(clock.Add(1), 2, 7, began, 3).Append(nil)) // another start
	last := counted(clock.Add(1), 0, 7, began, 4)
	one.post(t, "b", counted(clock.Add(1), 5, 7, began, 2).Append(nil))
	ended := clock.Add(1)
	one.post(t, "b", sharedlimit.Report{Told: uint64(ended), Entries: last.Entries}.Append(nil)) // it ends
	until(t, "all is passed on, and last that b has ended", func() bool {
		rows, last := 0, false
		err := db.QueryRow(t.Context(), `SELECT count(*), bool_or(edge = 'b' AND told = $1) FROM edge_counts`, ended).Scan(&rows, &last)
		return err == nil && rows == 3 && last
	})
	one.stop()
	two := newReplica(t, db)
	until(t, "c hears of every start", func() bool {
		_, a := two.post(t, "c", sharedlimit.Report{Told: uint64(time.Now().UnixMilli()), Boot: 9, Strict: true}.Append(nil))
		return a.Members.Whole && a.Members.Edges == 2 && len(a.Entries) == 1 && sum(&a.Entries[0].Others) == 12
	})
}
