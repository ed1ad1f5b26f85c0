package jobs_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/workers/schedules"
	"sluice.dev/sluice/workers/schedules/definition"
)

const (
	crashAccount = "acct_0000000000001"
	// crashLimit is how long anything may take before the test gives up.
	crashLimit = 90 * time.Second
	// crashSpacing is the time between two due runs: a kill is never further
	// than that from a tick.
	crashSpacing = 10 * time.Millisecond
)

// scheduleCrash is a bed with a run due at every moment.
type scheduleCrash struct {
	*crashBed
	service *schedules.Service
	calls   *callCounter
	url     string // of the receiver
}

// callCounter is the receiver of the schedules' webhooks.
type callCounter struct {
	mu      sync.Mutex
	seen    map[string]int // calls by execution
	arrived chan struct{}
}

func (c *callCounter) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	c.seen[r.Header.Get("Idempotency-Key")]++
	c.mu.Unlock()
	select {
	case c.arrived <- struct{}{}:
	default:
	}
}

// TestEveryDueRunExistsExactlyOnce kills workers, both of them at times, and
// the database at random moments, with runs due every few milliseconds.
// Afterwards every schedule has had its one run, recorded once, and the
// receiver has heard of each. SLUICE_TEST_CRASH_ROUNDS=200 is the long form.
func TestEveryDueRunExistsExactlyOnce(t *testing.T) {
	c := newScheduleCrash(t)
	stop := c.plan()
	for round := range crashRounds() {
		c.startDead()
		c.awaitCalls(1 + rand.IntN(40))
		switch {
		case round%10 == 5:
			c.restartDatabase()
		case round%7 == 3:
			c.killWorker(0)
			c.killWorker(1)
		default:
			c.killWorker(rand.IntN(len(c.procs)))
		}
	}
	planned := stop()
	c.startDead()
	c.finish()
	c.compare(planned)
}

func newScheduleCrash(t *testing.T) *scheduleCrash {
	t.Helper()
	c := &scheduleCrash{crashBed: newCrashBed(t, scheduleProcessEnv), calls: &callCounter{seen: map[string]int{}, arrived: make(chan struct{}, 1000)}}
	receiver := httptest.NewServer(c.calls)
	t.Cleanup(receiver.Close)
	c.url = receiver.URL
	var err error
	if _, err := c.pool.Exec(t.Context(), `INSERT INTO accounts (id, name, plan) VALUES ($1, 'Crash', 'local')`, crashAccount); err != nil {
		t.Fatal(err)
	}
	if c.service, _, err = scheduleService(c.pool); err != nil {
		t.Fatal(err)
	}
	c.startWorkers()
	return c
}

// plan creates one-time schedules without pause, each due shortly after, until
// stop is called. It returns how many there are. One whose commit was not
// confirmed is created again with the same key.
func (c *scheduleCrash) plan() (stop func() int) {
	ctx, cancel := context.WithCancel(c.t.Context())
	done := make(chan int)
	go func() {
		planned := 0
		ticker := time.NewTicker(crashSpacing)
		defer ticker.Stop()
		for ctx.Err() == nil {
			if c.create(ctx, planned) == nil {
				planned++
			}
			select {
			case <-ticker.C:
			case <-ctx.Done():
			}
		}
		done <- planned
	}()
	return func() int { cancel(); return <-done }
}

func (c *scheduleCrash) create(ctx context.Context, number int) error {
	name := fmt.Sprint("run-", number)
	_, err := c.service.Create(ctx, crashAccount, definition.Definition{
		Name: name, Type: definition.TypeWebhook, Webhook: &definition.Webhook{URL: c.url},
		Schedule: definition.Timing{Type: definition.OneTime, ExecuteAt: time.Now().Add(300 * time.Millisecond).Truncate(time.Microsecond).Format(time.RFC3339Nano)},
	})
	if apierror.Code(err) == decision.Conflict { // a try whose answer was lost has created it
		return nil
	}
	return err
}

// awaitCalls waits until n further calls have reached the receiver.
func (c *scheduleCrash) awaitCalls(n int) {
	c.t.Helper()
	give := time.After(crashLimit)
	for range n {
		select {
		case <-c.calls.arrived:
		case <-give:
			c.t.Fatal("no more runs arrive")
		}
	}
}

// finish waits until nothing is planned or under way. Workers are other
// processes: the database is asked again and again.
func (c *scheduleCrash) finish() {
	c.t.Helper()
	give := time.After(crashLimit)
	for {
		var open int
		err := c.pool.QueryRow(c.t.Context(), `SELECT (SELECT count(*) FROM schedules WHERE status = 'active') +
			(SELECT count(*) FROM schedule_executions WHERE status IN ('waiting', 'executing'))`).Scan(&open)
		if err == nil && open == 0 {
			return
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-give:
			c.t.Fatalf("%d schedules or executions are still open (%v)", open, err)
		}
	}
}

// compare holds every schedule against its executions, and these against what
// the receiver has seen. Lateness is shown, not judged: it depends on the
// machine.
func (c *scheduleCrash) compare(planned int) {
	c.t.Helper()
	var created, runs, right int
	var median, p99, worst float64
	err := c.pool.QueryRow(c.t.Context(), `
		SELECT count(DISTINCT s.id), count(e.id), count(*) FILTER (WHERE e.status = 'success' AND s.execution_count = 1
				AND s.status = 'completed' AND e.scheduled_for = (s.definition -> 'schedule' ->> 'executeAt')::timestamptz),
			percentile_cont(0.5) WITHIN GROUP (ORDER BY extract(epoch FROM e.executed_at - e.scheduled_for)),
			percentile_cont(0.99) WITHIN GROUP (ORDER BY extract(epoch FROM e.executed_at - e.scheduled_for)),
			max(extract(epoch FROM e.executed_at - e.scheduled_for))
		FROM schedules s LEFT JOIN schedule_executions e ON e.schedule_id = s.id`).Scan(&created, &runs, &right, &median, &p99, &worst)
	if err != nil {
		c.t.Fatal(err)
	}
	if created < planned || runs != created || right != created {
		c.t.Errorf("%d schedules confirmed, %d created, %d runs, %d of them right", planned, created, runs, right)
	}
	c.calls.mu.Lock()
	defer c.calls.mu.Unlock()
	repeated := 0
	for _, n := range c.calls.seen {
		repeated += n - 1
	}
	if len(c.calls.seen) != runs {
		c.t.Errorf("the receiver heard of %d executions, there are %d", len(c.calls.seen), runs)
	}
	c.t.Logf("%d runs; lateness of firing %.0f ms median, %.0f ms p99, %.0f ms at most; %d calls repeated", runs, median*1000, p99*1000, worst*1000, repeated)
}
