package jobs_test

import (
	"context"
	"testing"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"sluice.dev/sluice/platform/storage/postgres/pgtest"
	"sluice.dev/sluice/workers/jobs"
)

const dueQueue = "due"

// dueArgs is a job that puts itself off at first.
type dueArgs struct {
	Snooze bool `json:"snooze"`
}

func (dueArgs) Kind() string { return "due_test" }

// dueWorker tells of each job that it has done.
type dueWorker struct {
	river.WorkerDefaults[dueArgs]
	done chan dueArgs
}

func (w *dueWorker) Work(_ context.Context, job *river.Job[dueArgs]) error {
	if job.Args.Snooze && job.CreatedAt.Add(snoozedFor).After(time.Now()) {
		return river.JobSnooze(snoozedFor)
	}
	w.done <- job.Args
	return nil
}

const snoozedFor = 200 * time.Millisecond

// TestDueJobsAreFetchedWithoutPolls has jobs done that River would fetch an hour later:
// one that was put off, and one of which River told nobody, as another one had come just
// before.
func TestDueJobsAreFetchedWithoutPolls(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	w := &dueWorker{done: make(chan dueArgs, 10)}
	work := river.NewWorkers()
	river.AddWorker(work, w)
	queues := map[string]river.QueueConfig{dueQueue: {MaxWorkers: 10, FetchCooldown: time.Millisecond, FetchPollInterval: time.Hour}}
	client, err := river.NewClient(riverpgxv5.New(pool), &river.Config{Queues: queues, Workers: work, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.StopAndCancel(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	inserts, err := river.NewClient(riverpgxv5.New(pool), &river.Config{FetchCooldown: time.Hour, FetchPollInterval: time.Hour, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	insert := func(args dueArgs) {
		t.Helper()
		if _, err := inserts.Insert(t.Context(), args, &river.InsertOpts{Queue: dueQueue}); err != nil {
			t.Fatal(err)
		}
	}
	insert(dueArgs{}) // River tells of it, and then of none for an hour
	<-w.done
	insert(dueArgs{})
	insert(dueArgs{Snooze: true})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		jobs.DueJobs{DB: pool, Queues: queues, Every: time.Millisecond, Log: quiet}.Run(ctx)
	}()
	if first, second := <-w.done, <-w.done; first.Snooze || !second.Snooze {
		t.Errorf("%+v, then %+v", first, second)
	}
	cancel()
	<-ended
	for name, q := range jobs.Unpolled(jobs.WebhookQueues()) {
		if q.FetchPollInterval < time.Second || q.MaxWorkers != jobs.WebhookQueues()[name].MaxWorkers {
			t.Errorf("%s: %+v", name, q)
		}
	}
}
