package jobs

import (
	"context"
	"log/slog"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"
	"sluice.dev/sluice/controlplane/accounts/billing/invoicing"
)

// billingQueue is the queue of billing, which River's leader fills.
const billingQueue = "billing"

// BillingQueues is that queue: one round at a time in a process is enough.
func BillingQueues() map[string]river.QueueConfig {
	return map[string]river.QueueConfig{billingQueue: {MaxWorkers: 2}}
}

// InvoicesArgs asks for invoices to be issued and collected.
type InvoicesArgs struct{}

// Kind names the job in the queue.
func (InvoicesArgs) Kind() string { return "billing_invoices" }

// StorageArgs asks how much is stored now.
type StorageArgs struct{}

// Kind names the job in the queue.
func (StorageArgs) Kind() string { return "billing_storage" }

// BillingRounds are the jobs that River's leader puts into the queue: invoices every minute,
// what is stored every hour. While one waits or runs there is no second.
func BillingRounds() []*river.PeriodicJob {
	opts := &river.InsertOpts{Queue: billingQueue, MaxAttempts: 1, UniqueOpts: river.UniqueOpts{ByQueue: true, ByState: []rivertype.JobState{
		rivertype.JobStateAvailable, rivertype.JobStatePending, rivertype.JobStateRunning, rivertype.JobStateRetryable, rivertype.JobStateScheduled,
	}}}
	round := func(every time.Duration, args river.JobArgs) *river.PeriodicJob {
		return river.NewPeriodicJob(river.PeriodicInterval(every), func() (river.JobArgs, *river.InsertOpts) { return args, opts }, &river.PeriodicJobOpts{RunOnStart: true})
	}
	return []*river.PeriodicJob{round(time.Minute, InvoicesArgs{}), round(time.Hour, StorageArgs{})}
}

// AddBilling registers the jobs of billing.
func AddBilling(w *river.Workers, s invoicing.Store) {
	river.AddWorker(w, &invoicesWorker{store: s})
	river.AddWorker(w, &storageWorker{store: s})
}

// roundTime is for how long a round begins to issue, and then to collect. The next goes on.
const roundTime = 8 * time.Second

// invoicesWorker runs InvoicesArgs.
type invoicesWorker struct {
	river.WorkerDefaults[InvoicesArgs]
	store invoicing.Store
}

// Timeout leaves what the round has begun its time; it is less than that after which a job is
// taken for one of a worker that died.
func (*invoicesWorker) Timeout(*river.Job[InvoicesArgs]) time.Duration {
	return 2*roundTime + invoicing.OneTakes
}

// Work issues and collects. It never fails: the next round comes in a minute.
func (w *invoicesWorker) Work(ctx context.Context, _ *river.Job[InvoicesArgs]) error {
	for _, part := range []struct {
		what string
		do   func(context.Context) (int, error)
	}{{"invoices issued", w.store.Issue}, {"invoices paid", w.store.Collect}} {
		bounded, cancel := context.WithTimeout(ctx, roundTime)
		n, err := part.do(bounded)
		if bounded.Err() != nil {
			err = nil // its time is over
		}
		said(ctx, part.what, n, err)
		cancel()
	}
	return nil
}

// said logs what a part of a round did.
func said(ctx context.Context, what string, n int, err error) {
	switch {
	case err != nil:
		slog.WarnContext(ctx, "billing failed", "part", what, "cause", err)
	case n > 0:
		slog.InfoContext(ctx, what, "count", n)
	}
}

// storageWorker runs StorageArgs.
type storageWorker struct {
	river.WorkerDefaults[StorageArgs]
	store invoicing.Store
}

// Work notes what is stored. It never fails: the next round comes in an hour.
func (w *storageWorker) Work(ctx context.Context, _ *river.Job[StorageArgs]) error {
	if n, err := w.store.NoteStorage(ctx); err != nil {
		said(ctx, "storage noted", n, err)
	}
	return nil
}
