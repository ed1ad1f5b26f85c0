package edgestatus

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"sluice.dev/sluice/controlplane/gateway/xds"
	"sluice.dev/sluice/filters/edgeapi"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/platform/storage/postgres/pgtest"
)

var clock = time.Unix(1_800_000_000, 0)

// seen is a connected edge that holds a version, by the clock of its replica.
func seen(id string, held int64, now time.Time) xds.EdgeStatus {
	return xds.EdgeStatus{ID: id, Connected: true, Since: now, LastSeen: now, Wanted: held, Held: held, Published: held, Current: true}
}

func observe(t *testing.T, s Store, replica string, now time.Time, edges ...xds.EdgeStatus) {
	t.Helper()
	if err := s.Observe(t.Context(), replica, now, edges); err != nil {
		t.Fatal(err)
	}
}

// edge returns one edge of the view; its zero value when it is not there.
func edge(t *testing.T, s Store, id string) Edge {
	t.Helper()
	v, err := s.View(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range v.Data {
		if e.ID == id {
			return e
		}
	}
	return Edge{}
}

func exec(t *testing.T, pool *pgxpool.Pool, sql string) {
	t.Helper()
	if _, err := pool.Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
}

// Replicas whose clocks are wrong by hours agree on who is alive, and an edge
// that moves to the one with the slow clock is that one's.
func TestClocksOfReplicasDoNotMatter(t *testing.T) {
	t.Parallel()
	s := Store{pgtest.Pool(t)}
	fast, slow := clock.Add(5*time.Hour), clock.Add(-5*time.Hour)
	observe(t, s, "fast", fast, seen("e1", 3, fast.Add(-time.Minute)))
	observe(t, s, "slow", slow, seen("e1", 4, slow))
	e := edge(t, s, "e1")
	if e.Replica != "slow" || e.Held != 4 || !e.Live || !e.Connected {
		t.Errorf("%+v", e)
	}
	if age := time.Since(e.Since); age < -time.Minute || age > time.Minute {
		t.Errorf("connected since %v", e.Since)
	}
}

// What a replica still believes of an edge that has moved on changes nothing.
func TestTheReplicaOfTheNewestStreamIsRight(t *testing.T) {
	t.Parallel()
	s := Store{pgtest.Pool(t)}
	observe(t, s, "a", clock, seen("e1", 3, clock.Add(-time.Minute)))
	observe(t, s, "b", clock, seen("e1", 5, clock.Add(-time.Second)))
	observe(t, s, "a", clock, seen("e1", 4, clock.Add(-time.Minute)))
	lost := seen("e1", 3, clock)
	lost.Connected = false
	observe(t, s, "a", clock, lost)
	if n, err := s.Beat(t.Context(), "a", []string{"e1"}); err != nil || n != 0 {
		t.Errorf("%d %v", n, err)
	}
	if e := edge(t, s, "e1"); e.Replica != "b" || e.Held != 5 || !e.Connected {
		t.Errorf("%+v", e)
	}
	lost.Since = clock
	observe(t, s, "b", clock, lost)
	if e := edge(t, s, "e1"); e.Connected {
		t.Error("b has lost it, and says so")
	}
}

func TestEdgesThatAreGoneAreSeenToBe(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	s := Store{pool}
	observe(t, s, "a", clock, seen("e1", 0, clock), seen("e2", 0, clock))
	exec(t, pool, `UPDATE edges SET last_seen = now() - interval '16 s' WHERE id = 'e1'`)
	if e := edge(t, s, "e1"); e.Live || e.Connected || e.Current {
		t.Errorf("its replica is dead: %+v", e)
	}
	if n, err := s.Beat(t.Context(), "a", []string{"e1"}); err != nil || n != 1 {
		t.Fatal(n, err)
	}
	if e := edge(t, s, "e1"); !e.Live || !e.Current {
		t.Errorf("its replica lives: %+v", e)
	}
	exec(t, pool, `UPDATE edges SET last_seen = now() - interval '61 min' WHERE id = 'e1'`)
	if _, err := s.Beat(t.Context(), "b", nil); err != nil {
		t.Fatal(err)
	}
	if e := edge(t, s, "e1"); e.ID != "" {
		t.Errorf("it is still there: %+v", e)
	}
}

func TestLagIsTheAgeOfWhatIsLacking(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	s := Store{pool}
	exec(t, pool, `INSERT INTO config_versions (author, document, created_at) VALUES
		('a', '{}', now() - interval '1 h'), ('a', '{}', now() - interval '40 s'), ('a', '{}', now())`)
	observe(t, s, "a", clock, seen("late", 1, clock), seen("current", 3, clock))
	if e := edge(t, s, "late"); e.Lag < 40 || e.Lag > 60 || e.Current || e.Wanted != 3 {
		t.Errorf("%+v", e)
	}
	if e := edge(t, s, "current"); e.Lag != 0 || !e.Current {
		t.Errorf("%+v", e)
	}
}

func report(t *testing.T, s Store, body string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	s.Reports(httpapi.Adapter{})(w, httptest.NewRequest("POST", edgeapi.ReportPath, strings.NewReader(body)))
	return w
}

func TestReports(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	s := Store{pool}
	exec(t, pool, `UPDATE edge_feed SET epoch = 7, head = 12`)
	exec(t, pool, `INSERT INTO edge_records (tag, seq, changed_at) SELECT decode(lpad(n::text, 32, '0'), 'hex'), n, now() - interval '30 s' FROM generate_series(1, 12) n`)
	if w := report(t, s, `{"edge":"e1","state":"cached","state_age_seconds":9,"uptime_seconds":100,"feed_epoch":7,"feed_position":10}`); w.Code != 204 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	observe(t, s, "a", clock, seen("e1", 0, clock))
	e := edge(t, s, "e1")
	if e.Report == nil || e.Report.State != "cached" || e.Report.Uptime < 100 || e.Feed.Behind != 2 || e.Feed.Age < 30 || !e.Connected {
		t.Errorf("%+v %+v %+v", e, e.Report, e.Feed)
	}
	if w := report(t, s, `{"edge":"e1","feed_epoch":6,"feed_position":12}`); w.Code != 204 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	if e := edge(t, s, "e1"); e.Feed.Behind != 12 {
		t.Errorf("a position of another history: %+v", e.Feed)
	}
}

func TestBadReportsNameEveryField(t *testing.T) {
	t.Parallel()
	s := Store{pgtest.Pool(t)}
	w := report(t, s, `{"edge":"","feed_position":-1,"envoy_epoch":-1}`)
	for _, field := range []string{`"edge"`, `"feed_position"`, `"envoy_epoch"`} {
		if w.Code != 400 || !strings.Contains(w.Body.String(), field) {
			t.Errorf("%d %s lacks %s", w.Code, w.Body, field)
		}
	}
	if w := report(t, s, `{"edge":"`+strings.Repeat("x", maxReport)+`"}`); w.Code != 413 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestFleetOverHTTP(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	s := Store{pool}
	bad := seen("edge-b", 1, clock)
	bad.Refusals = []string{"routes: no"}
	bad.Types = []xds.TypeStatus{{Type: "routes", Refusal: &xds.Refusal{Reason: "no", Time: clock}}}
	observe(t, s, "a", clock, bad, seen("edge-a", 1, clock))
	r := chi.NewRouter()
	s.Routes(r, httpapi.Adapter{})
	w := httptest.NewRecorder()
	r.ServeHTTP(w, httptest.NewRequest("GET", "/edges", nil))
	var got View
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != 200 || len(got.Data) != 2 || got.Data[0].ID != "edge-a" {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	if e := got.Data[1]; len(e.Refusals) != 1 || e.Types[0].Refusal.Reason != "no" {
		t.Errorf("%+v", e)
	}
}
