package status

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/controlplane/gateway/edgestatus"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/platform/storage/postgres/pgtest"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// well is a platform with nothing wrong.
func well() Report {
	return Report{
		Time: noon, Database: Database{Connections: 10, ConnectionsMax: 100, Schema: 7, SchemaNewest: 7},
		Processes: []Process{{Name: "a/1", Kind: "worker", Live: true, LastSeen: noon}},
		Edges:     edgestatus.View{Version: 3, Data: []edgestatus.Edge{{ID: "edge-1", Live: true, Connected: true, Current: true, Held: 3, Wanted: 3}}},
		Usage:     Usage{SummedTo: noon.Add(-90 * time.Minute)},
	}
}

func TestJudge(t *testing.T) {
	t.Parallel()
	edge := func(change func(*edgestatus.Edge)) func(*Report) {
		return func(r *Report) { change(&r.Edges.Data[0]) }
	}
	for want, change := range map[string]func(*Report){
		"": func(*Report) {},
		"database: the schema is at 6, and processes know 7": func(r *Report) { r.Database.Schema = 6 },
		"database: 90 of 100 connections are taken":          func(r *Report) { r.Database.Connections = 90 },
		"processes: no worker runs":                          func(r *Report) { r.Processes[0].Kind = "media" },
		"processes: media b/2 was last heard of 40s ago": func(r *Report) {
			r.Processes = append(r.Processes, Process{Name: "b/2", Kind: "media", LastSeen: noon.Add(-40 * time.Second)})
		},
		"edges: there is no configuration":                              func(r *Report) { r.Edges.Version = 0 },
		"edges: no edge runs":                                           func(r *Report) { r.Edges.Data = nil },
		"edges: edge-1 refuses version 3: routes: no":                   edge(func(e *edgestatus.Edge) { e.Refusals = []string{"routes: no"} }),
		"edges: edge-1 holds version 2 of 3 for 11 s":                   edge(func(e *edgestatus.Edge) { e.Current, e.Held, e.Lag = false, 2, 11 }),
		"edges: edge-1 is cached":                                       edge(func(e *edgestatus.Edge) { e.Report = &edgestatus.Report{State: "cached"} }),
		"edges: edge-1 lacks 1001 changes of keys":                      edge(func(e *edgestatus.Edge) { e.Feed = &edgestatus.Feed{Behind: 1001} }),
		"edges: edge-1 was last heard of 1m0s ago; edges: no edge runs": edge(func(e *edgestatus.Edge) { e.Live, e.LastSeen = false, noon.Add(-time.Minute) }),
		"queues: 5 jobs wait in q, one of them for 61 s":                func(r *Report) { r.Queues = []Queue{{"a", 9, 1}, {"q", 5, 61}} },
		"schedules: 2 schedules are late, one by 9 s":                   func(r *Report) { r.Schedules = Schedules{5, 2, 9} },
		"webhooks: 6 of 10 webhook endpoints fail":                      func(r *Report) { r.Webhooks = Webhooks{Endpoints: 10, Failing: 6} },
		"usage: usage is summed up only to 2026-11-21T07:59:00Z":        func(r *Report) { r.Usage.SummedTo = noon.Add(-241 * time.Minute) },
	} {
		r := well()
		change(&r)
		var got []string
		for _, p := range FindProblems(r) {
			got = append(got, p.Part+": "+p.What)
			if p.Action == "" {
				t.Errorf("%s: and what to do?", p.What)
			}
		}
		if text := strings.Join(got, "; "); text != want {
			t.Errorf("%q, want %q", text, want)
		}
	}
	for name, change := range map[string]func(*Report){
		"a version on its way":       edge(func(e *edgestatus.Edge) { e.Current, e.Held, e.Lag = false, 2, 1 }),
		"an edge that starts":        edge(func(e *edgestatus.Edge) { e.Report = &edgestatus.Report{State: "starting"} }),
		"few endpoints, all failing": func(r *Report) { r.Webhooks = Webhooks{Endpoints: 9, Failing: 9} },
		"a job that has just come":   func(r *Report) { r.Queues = []Queue{{"q", 90000, 1}} },
	} {
		r := well()
		change(&r)
		if list := FindProblems(r); len(list) > 0 {
			t.Errorf("%s: %v", name, list)
		}
	}
}

func TestRead(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	for _, sql := range []string{
		`INSERT INTO processes (name, kind, build) VALUES ('h/1', 'worker', 'v1')`,
		`INSERT INTO processes (name, kind, build, last_seen) VALUES ('h/2', 'media', 'v1', now() - interval '16 seconds')`,
		`INSERT INTO river_job (state, queue, kind, args, max_attempts, scheduled_at) VALUES ('available', 'q', 'k', '{}', 1, now() - interval '70 seconds'),
			('available', 'q', 'k', '{}', 1, now()), ('available', 'later', 'k', '{}', 1, now() + interval '1 hour')`,
	} {
		if _, err := pool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	r, err := Store{DB: pool}.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if r.Status != Problems || len(r.Processes) != 2 || r.Processes[0].Live || !r.Processes[1].Live || len(r.Queues) != 1 || r.Queues[0].Waiting != 2 ||
		r.Queues[0].Oldest < 70 || r.Database.Schema != r.Database.SchemaNewest || r.Database.Version == "" || *r.Webhooks.Failed != 0 {
		t.Errorf("%+v", r)
	}
	pool.Close()
	router := chi.NewRouter()
	Store{DB: pool}.Routes(router, httpapi.Adapter{})
	w := httptest.NewRecorder()
	router.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/status", nil))
	if w.Code != http.StatusServiceUnavailable && w.Code != http.StatusInternalServerError {
		t.Error(w.Code, w.Body)
	}
}

// A process is on the list while it runs, and not after it went.
func TestBeat(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	if _, err := pool.Exec(t.Context(), `INSERT INTO processes (name, kind, build, last_seen) VALUES ('old', 'media', 'v1', now() - interval '2 hours')`); err != nil {
		t.Fatal(err)
	}
	listed := func() (text string) {
		err := pool.QueryRow(context.WithoutCancel(t.Context()), `SELECT coalesce(string_agg(name || ' ' || kind || ' ' || build, ','), '') FROM processes`).Scan(&text)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	b := Beat{DB: pool, Name: "h/1", Kind: "worker", Build: "v2", Every: time.Millisecond}
	for range 2 {
		if err := b.say(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if got := listed(); got != "h/1 worker v2" {
		t.Error(got)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	b.Run(ctx)
	if got := listed(); got != "" {
		t.Error(got)
	}
}

func ExampleFindProblems() {
	r := well()
	r.Processes = nil
	for _, p := range FindProblems(r) {
		fmt.Println(p.What + ": " + p.Action)
	}
	// Output: no worker runs: Start `sluice worker`: schedules, webhooks and conversions wait for one.
}
