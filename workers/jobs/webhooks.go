package jobs

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/riverqueue/river"
	"sluice.dev/sluice/workers/webhooks"
	"sluice.dev/sluice/workers/webhooks/concurrency"
	"sluice.dev/sluice/workers/webhooks/delivery"
)

// Webhooks is what the jobs of the webhook service work with.
type Webhooks struct {
	Service   *webhooks.Service    // required
	Deliverer *delivery.Deliverer  // required
	Limiter   *concurrency.Limiter // nil: a new one
	// JobTimeout bounds a job; 0: 20 s, which is more than an attempt takes at
	// worst: a second each for its account's place and for its turn, 5 s for each write and 5 s for the receiver.
	JobTimeout time.Duration
	Log        *slog.Logger // nil: slog.Default

	shares map[string]*share // by queue
}

// webhookJobTimeout is the default of Webhooks.JobTimeout.
const webhookJobTimeout = 20 * time.Second

// AddWebhooks registers the jobs of the webhook service.
func AddWebhooks(w *river.Workers, deps Webhooks) {
	deps.Log = cmp.Or(deps.Log, slog.Default())
	deps.JobTimeout = cmp.Or(deps.JobTimeout, webhookJobTimeout)
	if deps.Limiter == nil {
		deps.Limiter = concurrency.New(nil)
	}
	deps.shares = map[string]*share{}
	for queue, places := range webhookPlaces {
		deps.shares[queue] = newShare(places)
	}
	river.AddWorker(w, &webhookDeliveryWorker{Webhooks: deps})
	river.AddWorker(w, &webhookRecoveryWorker{Webhooks: deps})
}

// webhookPlaces is how many jobs of a queue a process works on at once. One account
// has at most a quarter of each. A job that waits for a receiver costs a goroutine,
// no database connection, so there can be many.
var webhookPlaces = map[string]int{
	webhooks.QueueFirst: 2000, webhooks.QueueRetry: 500, webhooks.QueueSlow: 500, webhooks.QueueBackground: 4,
}

// WebhookQueues are the queues of the webhook service with their sizes, to be worked
// beside DueJobs: there is room for jobs that wait for their account's share.
func WebhookQueues() map[string]river.QueueConfig {
	room := func(queue string) int { return webhookPlaces[queue] + webhookPlaces[queue]/2 }
	return map[string]river.QueueConfig{
		webhooks.QueueFirst:      {MaxWorkers: room(webhooks.QueueFirst), FetchCooldown: 5 * time.Millisecond, FetchPollInterval: pollSoon},
		webhooks.QueueRetry:      {MaxWorkers: room(webhooks.QueueRetry), FetchCooldown: 20 * time.Millisecond, FetchPollInterval: pollSoon},
		webhooks.QueueSlow:       {MaxWorkers: room(webhooks.QueueSlow), FetchCooldown: 50 * time.Millisecond},
		webhooks.QueueBackground: {MaxWorkers: room(webhooks.QueueBackground), FetchCooldown: 100 * time.Millisecond},
	}
}

// webhookDeliveryWorker runs webhooks.DeliveryArgs.
type webhookDeliveryWorker struct {
	river.WorkerDefaults[webhooks.DeliveryArgs]
	Webhooks
}

// Timeout bounds a job.
func (w *webhookDeliveryWorker) Timeout(*river.Job[webhooks.DeliveryArgs]) time.Duration {
	return w.JobTimeout
}

// putOff snoozes a job of an account that has its share under way, behind those of
// others.
func (w Webhooks) putOff(ctx context.Context, job int64, wait time.Duration) error {
	if err := w.Deliverer.Behind(ctx, job); err != nil {
		w.Log.WarnContext(ctx, "webhook job not put behind others", "cause", err)
	}
	return river.JobSnooze(wait)
}

// Work makes the attempt, puts the job off, or moves it to the queue of slow
// endpoints. It never fails: what becomes of the delivery is in its own table.
func (w *webhookDeliveryWorker) Work(ctx context.Context, job *river.Job[webhooks.DeliveryArgs]) error {
	release, wait := w.shares[job.Queue].enter(ctx, job.Args.Account)
	if wait > 0 {
		return w.putOff(ctx, job.ID, wait)
	}
	defer release()
	lane := concurrency.Fast
	if job.Queue == webhooks.QueueSlow {
		lane = concurrency.Slow
	}
	d := w.Limiter.Ask(ctx, job.Args.Subscription, lane)
	switch d.Verdict {
	case concurrency.Later:
		return river.JobSnooze(d.Wait)
	case concurrency.Divert:
		if err := w.Deliverer.Divert(ctx, job.ID); err != nil {
			w.Log.WarnContext(ctx, "webhook job not diverted", "cause", err)
		}
		return river.JobSnooze(0)
	}
	r, err := w.Deliverer.Attempt(ctx, job.Args)
	d.Permit.Done(r.Duration, r.Most)
	w.shares[job.Queue].learn(job.Args.Account, r.Duration)
	if err != nil {
		w.Log.WarnContext(ctx, "webhook attempt put off", "delivery", webhooks.DeliveryID(job.Args.Delivery), "cause", err)
		return river.JobSnooze(storeUnreachable)
	}
	if r.Wait > 0 {
		return river.JobSnooze(r.Wait)
	}
	return nil
}

// webhookRecoveryWorker runs webhooks.RecoveryArgs.
type webhookRecoveryWorker struct {
	river.WorkerDefaults[webhooks.RecoveryArgs]
	Webhooks
}

// recoveryStepPause lets deliveries of new events in between two steps.
const recoveryStepPause = 50 * time.Millisecond

// Work does one step and comes back until nothing is left.
func (w *webhookRecoveryWorker) Work(ctx context.Context, job *river.Job[webhooks.RecoveryArgs]) error {
	release, wait := w.shares[job.Queue].enter(ctx, job.Args.Account)
	if wait > 0 {
		return w.putOff(ctx, job.ID, wait)
	}
	defer release()
	began := time.Now()
	done, err := w.Service.RecoveryStep(ctx, job.Args.Recovery)
	w.shares[job.Queue].learn(job.Args.Account, time.Since(began))
	if err != nil {
		w.Log.WarnContext(ctx, "webhook recovery put off", "cause", err)
		return river.JobSnooze(storeUnreachable)
	}
	if !done {
		return river.JobSnooze(recoveryStepPause)
	}
	return nil
}
