package jobs

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"
	"sluice.dev/sluice/platform/events"
	"sluice.dev/sluice/workers/webhooks"
	"sluice.dev/sluice/workers/webhooks/concurrency"
	"sluice.dev/sluice/workers/webhooks/delivery"
	"sluice.dev/sluice/workers/webhooks/webhooktest"
)

// webhookWorker is a worker whose one job is found in queue and is for an
// endpoint that takes what answers says, one after another.
func webhookWorker(t *testing.T, queue string, answers ...time.Duration) (*webhookDeliveryWorker, *river.Job[webhooks.DeliveryArgs], *webhooktest.Bundle) {
	t.Helper()
	b := webhooktest.New(t, nil)
	sub := b.Subscribe("http://127.0.0.1:1/", webhooks.Create{})
	b.Emit(events.Event{})
	if _, err := b.Pool.Exec(t.Context(), `UPDATE river_job SET state = 'running', queue = $1`, queue); err != nil {
		t.Fatal(err)
	}
	limiter := concurrency.New(nil)
	for _, took := range answers {
		limiter.Ask(t.Context(), sub.ID, concurrency.Slow).Permit.Done(took, 32)
	}
	d := delivery.New(delivery.Config{DB: b.Pool, Service: b.Service, Client: b.Client})
	found := b.Jobs()[0]
	job := &river.Job[webhooks.DeliveryArgs]{JobRow: &rivertype.JobRow{ID: found.ID, Queue: queue}, Args: found.Args}
	return &webhookDeliveryWorker{Webhooks: Webhooks{Service: b.Service, Deliverer: d, Limiter: limiter}}, job, b
}

// snoozed is how long err puts the job off; ok is false when it does not.
func snoozed(err error) (d time.Duration, ok bool) {
	var snooze *rivertype.JobSnoozeError
	if !errors.As(err, &snooze) {
		return 0, false
	}
	return snooze.Duration, true
}

func TestJobOfASlowEndpointIsMovedAtOnce(t *testing.T) {
	t.Parallel()
	w, job, b := webhookWorker(t, webhooks.QueueFirst, 5*time.Second)
	if wait, ok := snoozed(w.Work(t.Context(), job)); !ok || wait != 0 {
		t.Errorf("put off %v, %v", wait, ok)
	}
	if got := b.Jobs()[0]; got.Queue != webhooks.QueueSlow {
		t.Errorf("in %s", got.Queue)
	}
}

func TestJobWaitsInTheSlowQueueWhenItsEndpointIsBusy(t *testing.T) {
	t.Parallel()
	w, job, b := webhookWorker(t, webhooks.QueueSlow, 5*time.Second)
	for range 2 {
		if d := w.Limiter.Ask(t.Context(), job.Args.Subscription, concurrency.Slow); d.Verdict != concurrency.Go {
			t.Fatal(d)
		}
	}
	if wait, ok := snoozed(w.Work(t.Context(), job)); !ok || wait <= 0 {
		t.Errorf("put off %v, %v", wait, ok)
	}
	if got := b.Jobs()[0]; got.Queue != webhooks.QueueSlow {
		t.Errorf("in %s", got.Queue)
	}
}

func TestJobIsDoneWhenItsAttemptIsStored(t *testing.T) {
	t.Parallel()
	w, job, _ := webhookWorker(t, webhooks.QueueFirst)
	if err := w.Work(t.Context(), job); err != nil {
		t.Errorf("a failed attempt is the delivery's business, not the job's: %v", err)
	}
}

func TestJobIsPutOffWhenTheDatabaseIsGone(t *testing.T) {
	t.Parallel()
	w, job, b := webhookWorker(t, webhooks.QueueFirst)
	w.Log = slog.New(slog.DiscardHandler)
	b.Pool.Close()
	if wait, ok := snoozed(w.Work(t.Context(), job)); !ok || wait != storeUnreachable {
		t.Errorf("put off %v, %v", wait, ok)
	}
	r := webhookRecoveryWorker{Webhooks: w.Webhooks}
	recovery := &river.Job[webhooks.RecoveryArgs]{JobRow: &rivertype.JobRow{}, Args: webhooks.RecoveryArgs{Recovery: "rec_1"}}
	if wait, ok := snoozed(r.Work(t.Context(), recovery)); !ok || wait != storeUnreachable {
		t.Errorf("recovery put off %v, %v", wait, ok)
	}
}

func TestRecoveryComesBackUntilItIsDone(t *testing.T) {
	t.Parallel()
	w, job, b := webhookWorker(t, webhooks.QueueFirst)
	if _, err := b.Pool.Exec(t.Context(), `UPDATE webhook_deliveries SET status = 'failed', error_code = 'WEBHOOK_001', finished_at = now() - interval '1 second'`); err != nil {
		t.Fatal(err)
	}
	made, err := b.Service.Recover(t.Context(), webhooktest.Account, job.Args.Subscription, time.Now().Add(-time.Hour), time.Time{}, false)
	if err != nil {
		t.Fatal(err)
	}
	r := webhookRecoveryWorker{Webhooks: w.Webhooks}
	recovery := &river.Job[webhooks.RecoveryArgs]{JobRow: &rivertype.JobRow{}, Args: webhooks.RecoveryArgs{Recovery: made.ID}}
	if wait, ok := snoozed(r.Work(t.Context(), recovery)); !ok || wait != recoveryStepPause {
		t.Errorf("after the first step: %v, %v", wait, ok)
	}
	if err := r.Work(t.Context(), recovery); err != nil {
		t.Errorf("after the last step: %v", err)
	}
}

func TestUpkeepPrunesByAge(t *testing.T) {
	t.Parallel()
	_, _, b := webhookWorker(t, webhooks.QueueFirst)
	d := delivery.New(delivery.Config{DB: b.Pool, Service: b.Service, Client: b.Client})
	for _, c := range []struct {
		later, retention time.Duration
		removed          int
	}{
		{29 * 24 * time.Hour, 0, 0},
		{time.Hour, 2 * time.Hour, 0},
		{31 * 24 * time.Hour, 0, 1},
	} {
		u := WebhookUpkeep{Deliverer: d, Retention: c.retention, Now: func() time.Time { return time.Now().Add(c.later) }}
		if n, err := u.Prune(t.Context()); err != nil || n != c.removed {
			t.Errorf("%v later: %d removed, want %d, %v", c.later, n, c.removed, err)
		}
	}
}

func TestUpkeepEndsWithItsContext(t *testing.T) {
	t.Parallel()
	_, _, b := webhookWorker(t, webhooks.QueueFirst)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	d := delivery.New(delivery.Config{DB: b.Pool, Service: b.Service, Client: b.Client})
	WebhookUpkeep{Deliverer: d, Log: slog.New(slog.DiscardHandler)}.Run(ctx)
}
