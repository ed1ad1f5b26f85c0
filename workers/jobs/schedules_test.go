package jobs_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"
	"sluice.dev/sluice/platform/storage/postgres/pgtest"
	"sluice.dev/sluice/workers/jobs"
	"sluice.dev/sluice/workers/schedules"
	"sluice.dev/sluice/workers/schedules/definition"
	"sluice.dev/sluice/workers/schedules/run"
)

// TestASchedulesCallArrives goes the whole way: a schedule is created, its time
// comes, the queue carries its execution, the receiver is called, fails once,
// and is called again.
func TestASchedulesCallArrives(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	if _, err := pool.Exec(t.Context(), `INSERT INTO accounts (id, name, plan) VALUES ($1, 'A', 'local')`, crashAccount); err != nil {
		t.Fatal(err)
	}
	service, _, err := scheduleService(pool)
	if err != nil {
		t.Fatal(err)
	}
	bodies := make(chan string, 10)
	var failed atomic.Bool
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if failed.CompareAndSwap(false, true) {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		bodies <- string(body)
	}))
	t.Cleanup(receiver.Close)
	one := 1
	made, err := service.Create(t.Context(), crashAccount, definition.Definition{
		Name: "call", Type: definition.TypeWebhook,
		Webhook:     &definition.Webhook{URL: receiver.URL, Payload: []byte(`{"eventName":"go"}`)},
		RetryPolicy: &definition.RetryPolicy{InitialDelaySeconds: &one},
		Schedule:    definition.Timing{Type: definition.OneTime, ExecuteAt: time.Now().Add(200 * time.Millisecond).Format(time.RFC3339Nano)},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if err := startScheduleWorker(ctx, pool); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		select {
		case body := <-bodies:
			if body != `{"eventName":"go"}` {
				t.Errorf("the receiver got %s", body)
			}
		case <-time.After(crashLimit):
			t.Fatal("no call arrives")
		}
	}
	c := &scheduleCrash{crashBed: &crashBed{t: t, pool: pool}}
	c.finish()
	if done, err := service.Get(t.Context(), crashAccount, made.ID); err != nil || done.Status != schedules.Completed || done.Count != 1 || *done.LastStatus != schedules.Success {
		t.Errorf("%+v %v", done, err)
	}
}

// deadStore is a database that is away.
type deadStore struct{ run.Store }

var errAway = errors.New("the database is away")

func (deadStore) Begin(context.Context, string) (*schedules.Attempt, time.Time, error) {
	return nil, time.Time{}, errAway
}

// waitingStore has an execution whose next attempt is due later.
type waitingStore struct{ run.Store }

func (waitingStore) Begin(context.Context, string) (*schedules.Attempt, time.Time, error) {
	return nil, time.Now().Add(time.Hour), nil
}

func (waitingStore) Postpone(context.Context, int64, string, time.Time) error { return nil }

// endedStore has an execution that has ended.
type endedStore struct{ run.Store }

func (endedStore) Begin(context.Context, string) (*schedules.Attempt, time.Time, error) {
	return nil, time.Time{}, nil
}

func TestWhatTheQueueIsTold(t *testing.T) {
	t.Parallel()
	job := &river.Job[schedules.ExecutionArgs]{JobRow: &rivertype.JobRow{}, Args: schedules.ExecutionArgs{Execution: "exec_1"}}
	work := func(s run.Store) error { return jobs.WorkSchedule(t.Context(), run.Runner{Store: s}, job) }
	if err := work(deadStore{}); !errors.Is(err, errAway) {
		t.Errorf("the database is away: %v", err)
	}
	if err := work(endedStore{}); err != nil {
		t.Errorf("it has ended: %v", err)
	}
	var snooze *rivertype.JobSnoozeError
	if err := work(waitingStore{}); !errors.As(err, &snooze) || snooze.Duration < 59*time.Minute {
		t.Errorf("it waits: %v", err)
	}
}

// TestABurstIsTakenInBatches has many more schedules due at once than one claim
// takes.
func TestABurstIsTakenInBatches(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	if _, err := pool.Exec(t.Context(), `INSERT INTO accounts (id, name, plan) VALUES ($1, 'A', 'local')`, crashAccount); err != nil {
		t.Fatal(err)
	}
	service, _, err := scheduleService(pool)
	if err != nil {
		t.Fatal(err)
	}
	const count = 40
	due := time.Now().Add(time.Hour).Truncate(time.Second)
	for i := range count {
		if _, err := service.Create(t.Context(), crashAccount, definition.Definition{Name: fmt.Sprint("s", i), Type: definition.TypeCustom,
			Schedule: definition.Timing{Type: definition.OneTime, ExecuteAt: due.Format(time.RFC3339)}}); err != nil {
			t.Fatal(err)
		}
	}
	service.Batch, service.Now = 3, func() time.Time { return due }
	ctx, cancel := context.WithCancel(t.Context())
	claims := make(chan schedules.Fired, count)
	var loop sync.WaitGroup
	loop.Go(func() {
		jobs.ScheduleLoop{Service: service, Fired: func(f schedules.Fired) { claims <- f }}.Run(ctx)
	})
	for started := 0; started < count; {
		select {
		case f := <-claims:
			if f.Schedules > 3 {
				t.Errorf("a claim of %d", f.Schedules)
			}
			started += f.Started
		case <-time.After(crashLimit):
			t.Fatalf("%d executions are started", started)
		}
	}
	cancel()
	loop.Wait()
	var runs int
	if err := pool.QueryRow(t.Context(), `SELECT count(*) FROM schedule_executions`).Scan(&runs); err != nil || runs != count {
		t.Errorf("%d runs, %v", runs, err)
	}
}

// The loop seals the headers that lie open.
func TestTheLoopSealsHeaders(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	if _, err := pool.Exec(t.Context(), `INSERT INTO accounts (id, name, plan) VALUES ($1, 'A', 'local')`, crashAccount); err != nil {
		t.Fatal(err)
	}
	service, _, err := scheduleService(pool)
	if err != nil {
		t.Fatal(err)
	}
	config := service.Config
	config.Box = nil // as releases of before store them
	made, err := schedules.New(config).Create(t.Context(), crashAccount, definition.Definition{
		Name: "call", Type: definition.TypeWebhook,
		Webhook:  &definition.Webhook{URL: "https://127.0.0.1/hook", Headers: map[string]string{"Authorization": "hush"}},
		Schedule: definition.Timing{Type: definition.OneTime, ExecuteAt: time.Now().Add(time.Hour).Format(time.RFC3339Nano)},
	})
	if err != nil || made.Definition.Webhook.Headers["Authorization"] != "hush" {
		t.Fatal(made, err)
	}
	sealed := make(chan struct{}, 1)
	config = service.Config
	config.Log = slog.New(slog.NewTextHandler(writer(func(line []byte) (int, error) {
		if bytes.Contains(line, []byte("headers of scheduled webhooks were sealed")) {
			sealed <- struct{}{}
		}
		return len(line), nil
	}), nil))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		jobs.ScheduleLoop{Service: schedules.New(config), Log: quiet}.Run(ctx)
	}()
	<-sealed
	cancel()
	<-ended
	after, err := service.Get(t.Context(), crashAccount, made.ID)
	if err != nil || after.Definition.Webhook.Headers["Authorization"] != definition.Sealed {
		t.Error(after, err)
	}
}

type writer func([]byte) (int, error)

func (w writer) Write(b []byte) (int, error) { return w(b) }
