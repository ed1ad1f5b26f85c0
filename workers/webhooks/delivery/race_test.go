package delivery_test

import (
	"context"
	"sync"
	"testing"

	"sluice.dev/sluice/platform/events"
	"sluice.dev/sluice/workers/webhooks"
	"sluice.dev/sluice/workers/webhooks/webhooktest"
)

// A pause and a resume race with workers that look at the same deliveries: none
// may stay held once the subscription is active.
func TestNothingStaysHeldWhenPauseAndResumeRaceWithWorkers(t *testing.T) {
	t.Parallel()
	b := setup(t)
	sub := b.Subscribe(b.receiver.URL, webhooks.Create{})
	const events = 60
	b.EmitMany(events)
	toggling, stop := context.WithCancel(t.Context())
	var toggler sync.WaitGroup
	toggler.Go(func() {
		for toggling.Err() == nil {
			for _, s := range []webhooks.Status{webhooks.Paused, webhooks.Active} {
				if _, err := b.Service.Update(t.Context(), webhooktest.Account, sub.ID, webhooks.Update{Status: &s}); err != nil {
					t.Error(err)
				}
			}
		}
	})
	b.runAll(b.Deliverer)
	stop()
	toggler.Wait()
	for len(b.receiver.Got) < events {
		b.recover()
		if len(b.Jobs()) == 0 {
			break
		}
		b.runAll(b.Deliverer)
	}
	list, err := b.Service.Deliveries(t.Context(), webhooktest.Account, sub.ID, webhooks.DeliveryFilter{Status: "succeeded", Limit: events})
	if err != nil || len(list) != events {
		t.Errorf("%d of %d have succeeded, %v", len(list), events, err)
	}
}

// A job that several workers run at the same moment may be sent more than once;
// the log has every request.
func TestSameJobInSeveralWorkersAtOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.Subscribe(b.receiver.URL, webhooks.Create{})
	b.Emit(events.Event{})
	args := b.Jobs()[0].Args
	var made [8]bool
	var wg sync.WaitGroup
	for i := range made {
		wg.Go(func() {
			r, err := b.Attempt(t.Context(), args)
			if err != nil {
				t.Error(err)
			}
			made[i] = r.Made
		})
	}
	wg.Wait()
	n := 0
	for _, m := range made {
		if m {
			n++
		}
	}
	if n == 0 || n != len(b.receiver.Got) {
		t.Errorf("%d attempts were made, %d requests arrived", n, len(b.receiver.Got))
	}
	b.compareWithLog()
}
