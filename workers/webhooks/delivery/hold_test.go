package delivery_test

import (
	"testing"
	"time"

	"sluice.dev/sluice/platform/events"
	"sluice.dev/sluice/workers/webhooks"
	"sluice.dev/sluice/workers/webhooks/webhooktest"
)

func (b bundle) set(id string, s webhooks.Status) {
	b.T.Helper()
	if _, err := b.Service.Update(b.T.Context(), webhooktest.Account, id, webhooks.Update{Status: &s}); err != nil {
		b.T.Fatal(err)
	}
}

// recover runs the steps of every recovery that is queued.
func (b bundle) recover() {
	b.T.Helper()
	var id string
	for {
		err := b.Pool.QueryRow(b.T.Context(), `DELETE FROM river_job WHERE id = (SELECT min(id) FROM river_job WHERE kind = 'webhook_recovery')
			RETURNING args->>'recovery'`).Scan(&id)
		if err != nil {
			return
		}
		for done := false; !done; {
			if done, err = b.Service.RecoveryStep(b.T.Context(), id); err != nil {
				b.T.Fatal(err)
			}
		}
	}
}

func TestPauseHoldsAndResumeReleases(t *testing.T) {
	t.Parallel()
	b := setup(t)
	sub := b.Subscribe(b.receiver.URL, webhooks.Create{})
	b.set(sub.ID, webhooks.Paused)
	b.Emit(events.Event{})
	if _, r := b.next(); r.Made || len(b.receiver.Got) > 0 {
		t.Fatalf("sent while paused: %+v", r)
	}
	if d := b.only(sub.ID); d.Status != "held" {
		t.Fatalf("%+v", d.Delivery)
	}
	b.set(sub.ID, webhooks.Active)
	b.recover()
	if _, r := b.next(); !r.OK {
		t.Fatalf("%+v", r)
	}
	if d := b.only(sub.ID); d.Status != "succeeded" {
		t.Fatalf("%+v", d.Delivery)
	}
}

func TestResendTakesThePlaceOfThePlannedRetry(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.receiver.Answer(500)
	sub := b.Subscribe(b.receiver.URL, webhooks.Create{})
	b.Emit(events.Event{})
	b.next()
	planned := b.Jobs()[0]
	if err := b.Service.Resend(t.Context(), webhooktest.Account, sub.ID, b.only(sub.ID).Number()); err != nil {
		t.Fatal(err)
	}
	b.receiver.Answer(200)
	jobs := b.Jobs()
	resent := jobs[len(jobs)-1]
	if resent.ID == planned.ID {
		resent = jobs[0]
	}
	if _, r := b.run(resent); !r.OK {
		t.Fatalf("%+v", r)
	}
	if _, r := b.run(planned); r.Made {
		t.Error("the planned retry was made too")
	}
	if d := b.only(sub.ID); d.Status != "succeeded" || d.Attempts != 2 {
		t.Errorf("%+v", d.Delivery)
	}
}

func TestRecoverResendsWhatFailedAndWhatWasMissed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.receiver.Answer(410)
	sub := b.Subscribe(b.receiver.URL, webhooks.Create{Events: []string{"stream.*"}})
	b.Emit(events.Event{ID: "evt_failed"})
	b.next() // 410: failed, and the subscription is disabled
	b.Emit(events.Event{ID: "evt_missed"})
	b.Emit(events.Event{ID: "evt_unwanted", Type: "vod.ready"})
	b.receiver.Answer(200)
	b.clock.Set(start.Add(time.Minute))
	b.set(sub.ID, webhooks.Active)
	r, err := b.Service.Recover(t.Context(), webhooktest.Account, sub.ID, start.Add(-time.Hour), time.Time{}, true)
	if err != nil || r.Total != 1 || r.Status != "running" {
		t.Fatalf("%+v %v", r, err)
	}
	b.recover()
	for len(b.Jobs()) > 0 {
		b.next()
	}
	if r, err = b.Service.Recovery(t.Context(), webhooktest.Account, sub.ID, r.ID); err != nil || r.Status != "completed" || r.Resent != 2 {
		t.Fatalf("%+v %v", r, err)
	}
	<-b.receiver.Got // the one that was answered with 410
	ids := map[string]bool{}
	for len(b.receiver.Got) > 0 {
		ids[(<-b.receiver.Got).Header.Get("X-Service-Event-Id")] = true
	}
	if len(ids) != 2 || !ids["evt_failed"] || !ids["evt_missed"] {
		t.Errorf("resent: %v", ids)
	}
}

func TestOrderPerStream(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.receiver.Answer(500)
	b.Subscribe(b.receiver.URL, webhooks.Create{Ordered: true})
	for _, e := range []events.Event{{ID: "a1", StreamID: "a"}, {ID: "a2", StreamID: "a"}, {ID: "b1", StreamID: "b"}, {ID: "none"}} {
		b.Emit(e)
	}
	jobs := b.Jobs()
	if _, r := b.run(jobs[0]); !r.Made {
		t.Fatalf("the first of stream a: %+v", r)
	}
	if _, r := b.run(jobs[1]); r.Made || r.Wait != 5*time.Second {
		t.Fatalf("the second of stream a must wait for the retry of the first: %+v", r)
	}
	for _, j := range jobs[2:] {
		if _, r := b.run(j); !r.Made {
			t.Fatalf("another stream, or none, must not wait: %+v", r)
		}
	}
	b.receiver.Answer(200)
	b.next()
	if r, err := b.Attempt(t.Context(), jobs[1].Args); err != nil || !r.OK {
		t.Fatalf("the second of stream a, after the first: %+v %v", r, err)
	}
}

func TestRateHoldsForAllWorkersTogether(t *testing.T) {
	t.Parallel()
	b := setup(t)
	rate := 2
	b.Subscribe(b.receiver.URL, webhooks.Create{RatePerSecond: &rate})
	for range 5 {
		b.Emit(events.Event{})
	}
	made := 0
	for _, j := range b.Jobs() {
		r, err := b.Attempt(t.Context(), j.Args)
		if err != nil {
			t.Fatal(err)
		}
		if r.Made {
			made++
		} else if r.Wait <= 0 {
			t.Errorf("neither made nor put off: %+v", r)
		}
	}
	if made != rate {
		t.Errorf("%d attempts at one moment, want %d", made, rate)
	}
}
