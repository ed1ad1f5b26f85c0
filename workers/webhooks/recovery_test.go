package webhooks_test

import (
	"sync"
	"testing"
	"time"

	"sluice.dev/sluice/platform/events"
	"sluice.dev/sluice/workers/webhooks"
	"sluice.dev/sluice/workers/webhooks/webhooktest"
)

// fail marks every delivery failed, as after the last retry.
func fail(b *webhooktest.Bundle) {
	b.T.Helper()
	_, err := b.Pool.Exec(b.T.Context(), `UPDATE webhook_deliveries SET status = 'failed', error_code = 'WEBHOOK_001', finished_at = $1; `, b.Service.Now())
	if err != nil {
		b.T.Fatal(err)
	}
	for _, j := range b.Jobs() {
		b.Take(j)
	}
}

func TestRecoveryGoesInStepsAndTellsHowFarItIs(t *testing.T) {
	t.Parallel()
	b := webhooktest.New(t, nil)
	sub := b.Subscribe(nowhere, webhooks.Create{}).ID
	const events = 1200
	b.EmitMany(events)
	fail(b)
	r, err := b.Service.Recover(t.Context(), webhooktest.Account, sub, time.Now().Add(-time.Hour), time.Time{}, false)
	if err != nil || r.Total != events {
		t.Fatalf("%+v %v", r, err)
	}
	for _, want := range []int{500, 1000, 1200, 1200} {
		done, err := b.Service.RecoveryStep(t.Context(), r.ID)
		if err != nil {
			t.Fatal(err)
		}
		r, err = b.Service.Recovery(t.Context(), webhooktest.Account, sub, r.ID)
		if err != nil || r.Resent != want || done != (r.Status == "completed") || len(b.Jobs()) != want {
			t.Fatalf("%+v, done %v, %d jobs, want %d: %v", r, done, len(b.Jobs()), want, err)
		}
	}
	if r.Status != "completed" || r.FinishedAt.IsZero() {
		t.Errorf("%+v", r)
	}
	if done, err := b.Service.RecoveryStep(t.Context(), r.ID); err != nil || !done {
		t.Errorf("a step more: %v %v", done, err)
	}
}

func TestRecoveryKeepsToItsTimes(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	b := webhooktest.New(t, func() time.Time { return at })
	sub := b.Subscribe(nowhere, webhooks.Create{}).ID
	for _, minute := range []int{0, 10, 20} {
		at = at.Truncate(time.Hour).Add(time.Duration(minute) * time.Minute)
		b.Emit(events.Event{})
	}
	fail(b)
	at = at.Add(time.Hour)
	hour := at.Truncate(time.Hour).Add(-time.Hour)
	r, err := b.Service.Recover(t.Context(), webhooktest.Account, sub, hour.Add(10*time.Minute), hour.Add(20*time.Minute), false)
	if err != nil || r.Total != 1 {
		t.Fatalf("%+v %v", r, err)
	}
	if _, err := b.Service.RecoveryStep(t.Context(), r.ID); err != nil || len(b.Jobs()) != 1 {
		t.Errorf("%d jobs, %v", len(b.Jobs()), err)
	}
}

func TestRecoveryOfADeletedSubscriptionIsDone(t *testing.T) {
	t.Parallel()
	b := webhooktest.New(t, nil)
	sub := b.Subscribe(nowhere, webhooks.Create{}).ID
	r, err := b.Service.Recover(t.Context(), webhooktest.Account, sub, time.Now().Add(-time.Hour), time.Time{}, true)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Service.Delete(t.Context(), webhooktest.Account, sub); err != nil {
		t.Fatal(err)
	}
	if done, err := b.Service.RecoveryStep(t.Context(), r.ID); err != nil || !done {
		t.Errorf("%v %v", done, err)
	}
}

// Products repeat a request whose answer was lost, also while the first one is
// still under way.
func TestSameEventPublishedManyTimesAtOnceIsStoredOnce(t *testing.T) {
	t.Parallel()
	b := webhooktest.New(t, nil)
	b.Subscribe(nowhere, webhooks.Create{})
	var fresh [16]bool
	var wg sync.WaitGroup
	for i := range fresh {
		wg.Go(func() {
			out, err := b.Service.Publish(t.Context(), events.Event{ID: "evt_1", Account: webhooktest.Account, Type: "stream.deleted"})
			if err != nil {
				t.Error(err)
			}
			fresh[i] = !out.Duplicate
		})
	}
	wg.Wait()
	stored := 0
	for _, f := range fresh {
		if f {
			stored++
		}
	}
	if stored != 1 || len(b.Jobs()) != 1 {
		t.Errorf("stored %d times, %d deliveries", stored, len(b.Jobs()))
	}
}
