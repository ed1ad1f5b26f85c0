package delivery_test

import (
	"sync"
	"testing"

	"sluice.dev/sluice/controlplane/accounts"
	"sluice.dev/sluice/platform/events"
	"sluice.dev/sluice/workers/webhooks"
	"sluice.dev/sluice/workers/webhooks/webhooktest"
)

func (b bundle) suspend() {
	b.T.Helper()
	if _, err := (accounts.Store{DB: b.Pool}).Suspend(b.T.Context(), webhooktest.Account, "x"); err != nil {
		b.T.Error(err)
	}
}

func (b bundle) resume() {
	b.T.Helper()
	if _, err := (accounts.Store{DB: b.Pool, Resumed: b.Service.ReleaseTx}).Resume(b.T.Context(), webhooktest.Account); err != nil {
		b.T.Error(err)
	}
}

// What is to be delivered to a suspended account waits, and is sent when it is resumed, but
// not to a subscription that is paused.
func TestDeliveriesOfASuspendedAccountWait(t *testing.T) {
	t.Parallel()
	b := setup(t)
	sub := b.Subscribe(b.receiver.URL, webhooks.Create{})
	paused := b.Subscribe(b.receiver.URL+"/paused", webhooks.Create{})
	b.suspend()
	b.Emit(events.Event{})
	b.set(paused.ID, webhooks.Paused)
	for range 2 {
		if _, r := b.next(); r.Made || r.Wait != 0 || len(b.receiver.Got) > 0 {
			t.Fatalf("sent while suspended: %+v", r)
		}
	}
	if jobs := b.Jobs(); len(jobs) != 0 {
		t.Fatalf("jobs ask again and again: %v", jobs)
	}
	for _, s := range []string{sub.ID, paused.ID} {
		if d := b.only(s); d.Status != "held" {
			t.Fatalf("%+v", d.Delivery)
		}
	}
	b.resume()
	b.recover()
	if _, r := b.next(); !r.OK {
		t.Fatalf("%+v", r)
	}
	if d := b.only(sub.ID); d.Status != "succeeded" {
		t.Errorf("%+v", d.Delivery)
	}
	if d := b.only(paused.ID); d.Status != "held" || len(b.Jobs()) != 0 {
		t.Errorf("%+v", d.Delivery)
	}
}

func TestNothingStaysHeldWhenSuspendAndResumeRaceWithWorkers(t *testing.T) {
	t.Parallel()
	b := setup(t)
	sub := b.Subscribe(b.receiver.URL, webhooks.Create{})
	const events = 60
	b.EmitMany(events)
	stop := make(chan struct{})
	var toggler sync.WaitGroup
	toggler.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				b.suspend()
				b.resume()
			}
		}
	})
	b.runAll(b.Deliverer)
	close(stop)
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
