package delivery_test

import (
	"context"
	"testing"
	"time"

	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/events"
	"sluice.dev/sluice/platform/outbound"
	"sluice.dev/sluice/workers/webhooks"
	"sluice.dev/sluice/workers/webhooks/delivery"
	"sluice.dev/sluice/workers/webhooks/webhooktest"
)

func TestReviveTakesWhatIsStuckOrDueAndNothingElse(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.Subscribe(b.receiver.URL, webhooks.Create{})
	for range 4 {
		b.Emit(events.Event{})
	}
	jobs := b.Jobs()
	for i, change := range []string{
		`state = 'running', attempted_at = now() - interval '1 minute'`,
		`state = 'running', attempted_at = now()`,
		`state = 'scheduled', scheduled_at = now() - interval '1 second'`,
		`state = 'scheduled', scheduled_at = now() + interval '1 minute'`,
	} {
		if _, err := b.Pool.Exec(t.Context(), `UPDATE river_job SET `+change+` WHERE id = $1`, jobs[i].ID); err != nil {
			t.Fatal(err)
		}
	}
	n, err := b.Revive(t.Context(), 30*time.Second)
	if err != nil || n != 2 {
		t.Fatalf("%d revived, %v", n, err)
	}
	var states string
	if err := b.Pool.QueryRow(t.Context(), `SELECT string_agg(state::text, ' ' ORDER BY id) FROM river_job`).Scan(&states); err != nil {
		t.Fatal(err)
	}
	if states != "available running available scheduled" {
		t.Error(states)
	}
}

func TestDivertMovesTheJobThatIsRunning(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.Subscribe(b.receiver.URL, webhooks.Create{})
	b.Emit(events.Event{})
	job := b.Jobs()[0]
	if _, err := b.Pool.Exec(t.Context(), `UPDATE river_job SET state = 'running'`); err != nil {
		t.Fatal(err)
	}
	if err := b.Divert(t.Context(), job.ID); err != nil {
		t.Fatal(err)
	}
	if got := b.Jobs()[0]; got.Queue != webhooks.QueueSlow {
		t.Errorf("%+v", got)
	}
}

func TestPruneRemovesOldEventsWithTheirLog(t *testing.T) {
	t.Parallel()
	b := setup(t)
	sub := b.Subscribe(b.receiver.URL, webhooks.Create{})
	b.Emit(events.Event{ID: "evt_old"})
	b.next()
	b.clock.Set(start.Add(time.Hour))
	b.Emit(events.Event{ID: "evt_new"})
	b.next()
	if n, err := b.Prune(t.Context(), start.Add(time.Minute)); err != nil || n != 1 {
		t.Fatalf("%d removed, %v", n, err)
	}
	if d := b.only(sub.ID); d.EventID != "evt_new" || len(d.AttemptLog) != 1 {
		t.Errorf("%+v", d)
	}
	var left int
	if err := b.Pool.QueryRow(t.Context(), `SELECT count(*) FROM webhook_attempts`).Scan(&left); err != nil || left != 1 {
		t.Errorf("%d attempts are left, %v", left, err)
	}
}

// An address that was allowed when the subscription was made, and is not any
// more, gets nothing.
func TestDeliveryGoesThroughTheGuardedClient(t *testing.T) {
	t.Parallel()
	b := setup(t)
	sub := b.Subscribe(b.receiver.URL, webhooks.Create{})
	b.Emit(events.Event{})
	strict := delivery.New(delivery.Config{DB: b.Pool, Service: b.Service, Client: outbound.New(outbound.Config{}), Now: b.clock.Now})
	if _, err := strict.Attempt(t.Context(), b.Take(b.Jobs()[0])); err != nil {
		t.Fatal(err)
	}
	a := b.only(sub.ID).AttemptLog[0]
	if len(b.receiver.Got) > 0 || a.Outcome != "failed" || a.Error != "the host leads to an address that is not allowed" {
		t.Errorf("%d requests, %+v", len(b.receiver.Got), a)
	}
}

// A worker may be stopped while the receiver is being waited for: the attempt
// is ended all the same.
func TestAttemptIsEndedWhenTheWorkerIsStopped(t *testing.T) {
	t.Parallel()
	b := setup(t)
	sub := b.Subscribe(b.receiver.URL, webhooks.Create{})
	b.Emit(events.Event{})
	ctx, stop := context.WithCancel(t.Context())
	b.receiver.Before(stop)
	if r, err := b.Attempt(ctx, b.Take(b.Jobs()[0])); err != nil || !r.OK {
		t.Fatalf("%+v %v", r, err)
	}
	if d := b.only(sub.ID); d.Status != "succeeded" || d.AttemptLog[0].Outcome != "succeeded" {
		t.Errorf("%+v", d)
	}
}

func TestAttemptsOfOthersAreNotShown(t *testing.T) {
	t.Parallel()
	b := setup(t)
	sub := b.Subscribe(b.receiver.URL, webhooks.Create{})
	b.Emit(events.Event{})
	d := b.only(sub.ID)
	_, err := b.Service.Delivery(t.Context(), webhooktest.Other, sub.ID, d.Number())
	if apierror.Code(err) != "not_found" {
		t.Errorf("%v", err)
	}
}

// A secret that was sealed with a key which is gone holds up its own
// deliveries, not those of others.
func TestSecretThatCannotBeOpenedPutsOffItsOwnDeliveriesOnly(t *testing.T) {
	t.Parallel()
	b := setup(t)
	lost := b.Subscribe(b.receiver.URL, webhooks.Create{})
	b.Subscribe(b.receiver.URL, webhooks.Create{})
	if _, err := b.Pool.Exec(t.Context(), `UPDATE webhook_subscriptions SET secret = 'gone' WHERE id = $1`, lost.ID); err != nil {
		t.Fatal(err)
	}
	b.Emit(events.Event{})
	for _, j := range b.Jobs() {
		r, err := b.Attempt(t.Context(), j.Args)
		if err != nil || r.OK == (j.Args.Subscription == lost.ID) || r.Made == (r.Wait > 0) {
			t.Errorf("%s: %+v %v", j.Args.Subscription, r, err)
		}
	}
}
