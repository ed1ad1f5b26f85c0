package jobs_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/platform/events"
	"sluice.dev/sluice/workers/webhooks"
	"sluice.dev/sluice/workers/webhooks/webhooktest"
)

// crash is a bed under a load of events.
type crash struct {
	*crashBed
	service *webhooks.Service
	tally   *tally
}

// Workers are killed, and the database is, at random moments under load.
// Every event that was committed reaches the receiver at least once, with the
// same id and bytes each time, and no request is missing from the log.
func TestNothingIsLostWhenWorkersAndTheDatabaseCrash(t *testing.T) {
	c := newCrash(t)
	stop := c.publish()
	for round := range crashRounds() {
		c.startDead()
		c.arrivals(1 + rand.IntN(60))
		if round%10 == 5 {
			c.restartDatabase()
		} else {
			i := rand.IntN(len(c.procs))
			c.killWorker(i)
			c.startWorker(i)
		}
	}
	published := stop()
	c.startDead()
	c.finish(published)
	c.compare(published)
}

func newCrash(t *testing.T) *crash {
	t.Helper()
	c := &crash{crashBed: newCrashBed(t, processEnv), tally: newTally()}
	receiver := httptest.NewServer(c.tally)
	t.Cleanup(receiver.Close)
	b := webhooktest.Over(t, c.pool, nil)
	b.Subscribe(receiver.URL, webhooks.Create{Events: []string{"stream.*"}})
	c.service = b.Service
	c.startWorkers()
	return c
}

// publish commits events without pause until stop is called, which returns
// the ids of those that were. One whose commit was not confirmed is published
// again under its id, as a product does.
func (c *crash) publish() (stop func() []string) {
	ctx, cancel := context.WithCancel(c.t.Context())
	done := make(chan []string)
	go func() {
		var ids []string
		for ctx.Err() == nil {
			id := fmt.Sprintf("evt_%d", len(ids))
			if c.emit(ctx, id) == nil {
				ids = append(ids, id)
				c.tally.allow(ctx)
			}
		}
		done <- ids
	}()
	return func() []string { cancel(); return <-done }
}

func (c *crash) emit(ctx context.Context, id string) error {
	return pgx.BeginFunc(ctx, c.pool, func(tx pgx.Tx) error {
		return c.service.EmitTx(ctx, tx, events.Event{ID: id, Account: webhooktest.Account, Type: "stream.started"})
	})
}

// limit is how long anything may take before the test gives up.
const limit = 90 * time.Second

// arrivals waits until n further requests have reached the receiver.
func (c *crash) arrivals(n int) {
	c.t.Helper()
	give := time.After(limit)
	for range n {
		select {
		case <-c.tally.arrived:
		case <-give:
			c.t.Fatal("no more requests arrive")
		}
	}
}

// finish waits until every delivery has succeeded. Workers are other processes:
// the database is asked again and again.
func (c *crash) finish(published []string) {
	c.t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	deadline := time.Now().Add(limit)
	for open := -1; open != 0; <-tick.C {
		if time.Now().After(deadline) {
			c.t.Fatalf("%d of %d deliveries are not finished", open, len(published))
		}
		err := c.pool.QueryRow(c.t.Context(), `SELECT count(*) FROM webhook_deliveries WHERE status <> 'succeeded'`).Scan(&open)
		if err != nil {
			open = -1
		}
	}
}

// compare holds what the receiver has seen against the log.
func (c *crash) compare(published []string) {
	c.t.Helper()
	type logged struct{ all, finished int }
	rows, _ := c.pool.Query(c.t.Context(), `SELECT e.id, count(*), count(*) FILTER (WHERE a.status_code IS NOT NULL)
		FROM webhook_attempts a JOIN webhook_deliveries d ON d.id = a.delivery_id JOIN account_events e ON e.seq = d.event_seq GROUP BY e.id`)
	log := map[string]logged{}
	var id string
	var l logged
	if _, err := pgx.ForEachRow(rows, []any{&id, &l.all, &l.finished}, func() error { log[id] = l; return nil }); err != nil {
		c.t.Fatal(err)
	}
	c.tally.mu.Lock()
	defer c.tally.mu.Unlock()
	requests := 0
	for _, id := range published {
		seen := c.tally.seen[id]
		requests += seen
		switch {
		case seen == 0:
			c.t.Errorf("%s was committed and never arrived", id)
		case seen > log[id].all:
			c.t.Errorf("%s arrived %d times, the log has %d attempts", id, seen, log[id].all)
		case seen < log[id].finished:
			c.t.Errorf("%s: the log has %d answers, it arrived %d times", id, log[id].finished, seen)
		}
	}
	if c.tally.changed > 0 {
		c.t.Errorf("%d repeats had another body", c.tally.changed)
	}
	c.t.Logf("%d events, %d requests, of which %d repeats", len(published), requests, requests-len(published))
}

// tally is a receiver that counts, and refuses each event of the sort once.
type tally struct {
	arrived chan struct{}
	credit  chan struct{}

	mu      sync.Mutex
	seen    map[string]int
	bodies  map[string]string
	changed int
}

// maxOpen is how many events may be on their way before publishing waits.
const maxOpen = 200

func newTally() *tally {
	return &tally{arrived: make(chan struct{}, 1<<20), credit: make(chan struct{}, maxOpen), seen: map[string]int{}, bodies: map[string]string{}}
}

// allow waits while too many events are on their way.
func (t *tally) allow(ctx context.Context) {
	select {
	case t.credit <- struct{}{}:
	case <-ctx.Done():
	}
}

// ServeHTTP counts; the first request of every tenth event is answered with 503.
func (t *tally) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	id := r.Header.Get("X-Service-Event-Id")
	t.mu.Lock()
	t.seen[id]++
	first := t.seen[id] == 1
	if first {
		t.bodies[id] = string(body)
	} else if t.bodies[id] != string(body) {
		t.changed++
	}
	t.mu.Unlock()
	if first {
		select {
		case <-t.credit:
		default:
		}
	}
	t.arrived <- struct{}{}
	if first && id[len(id)-1] == '7' {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}
