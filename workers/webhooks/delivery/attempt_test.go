package delivery_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sluice.dev/sluice/platform/events"
	"sluice.dev/sluice/workers/webhooks"
	"sluice.dev/sluice/workers/webhooks/retry"
	"sluice.dev/sluice/workers/webhooks/signature"
	"sluice.dev/sluice/workers/webhooks/webhooktest"
)

func TestDeliveryIsSigned(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.Subscribe(b.receiver.URL, webhooks.Create{})
	b.Emit(events.Event{ID: "evt_1", StreamID: "strm_1", Data: map[string]any{"title": "x"}})
	b.next()
	got := <-b.receiver.Got
	if want := `{"id":"evt_1","event":"stream.started","stream_id":"strm_1","timestamp":"2026-03-01T12:00:00.000Z","data":{"title":"x"}}`; string(got.Body) != want {
		t.Errorf("body\n got %s\nwant %s", got.Body, want)
	}
	if err := signature.Verify([]byte(webhooktest.Secret), got.Header, got.Body, start); err != nil {
		t.Error(err)
	}
	if err := signature.VerifyBody([]byte(webhooktest.Secret), got.Header.Values(signature.Header), got.Body); err != nil {
		t.Error(err)
	}
}

func TestBothSecretsSignDuringARotation(t *testing.T) {
	t.Parallel()
	b := setup(t)
	sub := b.Subscribe(b.receiver.URL, webhooks.Create{})
	const fresh = "another secret of many bytes"
	if _, err := b.Service.Rotate(t.Context(), webhooktest.Account, sub.ID, fresh, time.Hour); err != nil {
		t.Fatal(err)
	}
	verify := func(want map[string]bool) {
		t.Helper()
		b.Emit(events.Event{})
		b.next()
		got := <-b.receiver.Got
		for secret, ok := range want {
			if err := signature.Verify([]byte(secret), got.Header, got.Body, b.clock.Now()); (err == nil) != ok {
				t.Errorf("%s: %v", secret, err)
			}
		}
	}
	verify(map[string]bool{fresh: true, webhooktest.Secret: true})
	b.clock.Set(start.Add(time.Hour))
	verify(map[string]bool{fresh: true, webhooktest.Secret: false})
}

func TestRedirectIsAFailureAndNotFollowed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	elsewhere := webhooktest.NewReceiver(t)
	b.receiver.Answer(http.StatusTemporaryRedirect, "Location", elsewhere.URL)
	b.Subscribe(b.receiver.URL, webhooks.Create{})
	b.Emit(events.Event{})
	if _, r := b.next(); r.OK || len(elsewhere.Got) > 0 {
		t.Errorf("%+v, %d requests followed", r, len(elsewhere.Got))
	}
}

func TestGoneDisablesAtOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.receiver.Answer(http.StatusGone)
	sub := b.Subscribe(b.receiver.URL, webhooks.Create{Events: []string{"stream.*"}})
	b.Emit(events.Event{})
	b.next()
	b.Emit(events.Event{})
	if d := b.only(sub.ID); d.Status != "failed" || len(b.Jobs()) != 0 {
		t.Errorf("%+v, %d jobs", d.Delivery, len(b.Jobs()))
	}
	sub, _ = b.Service.Get(t.Context(), webhooktest.Account, sub.ID)
	if sub.Status != webhooks.Disabled || *sub.DisabledReason != "gone" {
		t.Errorf("%+v", sub)
	}
	want := []string{"stream.started", "webhook.disabled", "webhook.delivery_failed", "stream.started"}
	if d := cmp.Diff(want, b.Events(webhooktest.Account)); d != "" {
		t.Error(d)
	}
}

func TestFiveDaysOfNothingButFailureDisable(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.receiver.Answer(500)
	sub := b.Subscribe(b.receiver.URL, webhooks.Create{Events: []string{"stream.*"}})
	status := func() webhooks.Status {
		s, err := b.Service.Get(t.Context(), webhooktest.Account, sub.ID)
		if err != nil {
			t.Fatal(err)
		}
		return s.Status
	}
	fail := func(at time.Time) {
		b.clock.Set(at)
		b.Emit(events.Event{})
		jobs := b.Jobs()
		b.run(jobs[len(jobs)-1])
		for _, j := range b.Jobs() {
			b.Take(j)
		}
	}
	fail(start)
	fail(start.Add(retry.MaxFailing - time.Second))
	if status() != webhooks.Active {
		t.Fatal("disabled too early")
	}
	b.receiver.Answer(200)
	fail(start.Add(retry.MaxFailing - time.Second)) // a success: the count begins anew
	b.receiver.Answer(500)
	fail(start.Add(retry.MaxFailing))
	fail(start.Add(2*retry.MaxFailing - time.Second))
	if status() != webhooks.Active {
		t.Fatal("a success in between did not count")
	}
	fail(start.Add(2 * retry.MaxFailing))
	if status() != webhooks.Disabled {
		t.Fatal("not disabled after five days")
	}
	if types := b.Events(webhooktest.Account); types[len(types)-1] != "webhook.disabled" {
		t.Errorf("%v", types)
	}
}

func TestUnreachableReceiverIsLoggedInWords(t *testing.T) {
	t.Parallel()
	b := setup(t)
	sub := b.Subscribe("http://127.0.0.1:1/x", webhooks.Create{})
	b.Emit(events.Event{})
	b.next()
	a := b.only(sub.ID).AttemptLog[0]
	if a.Outcome != "failed" || a.Error != "the connection failed" || a.Response != nil {
		t.Errorf("%+v", a)
	}
}

func TestBodyOfTheAnswerIsCutShort(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.receiver.AnswerWith(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Bad", "a\xffb")
		_, _ = w.Write([]byte(strings.Repeat("\x00\xff", 40_000)))
	})
	sub := b.Subscribe(b.receiver.URL, webhooks.Create{})
	b.Emit(events.Event{})
	b.next()
	d := b.only(sub.ID)
	if d.Status != "succeeded" || len(d.AttemptLog[0].Response.BodyHead) > 1024 {
		t.Errorf("%s, %d bytes", d.Status, len(d.AttemptLog[0].Response.BodyHead))
	}
}

func TestManyAttemptsAtOnceAllEnd(t *testing.T) {
	t.Parallel()
	b := setup(t)
	sub := b.Subscribe(b.receiver.URL, webhooks.Create{})
	const n = 200
	b.EmitMany(n)
	var wg sync.WaitGroup
	for _, j := range b.Jobs() {
		wg.Go(func() {
			if r, err := b.Attempt(t.Context(), j.Args); err != nil || !r.OK {
				t.Errorf("%+v %v", r, err)
			}
		})
	}
	wg.Wait()
	if len(b.receiver.Got) != n {
		t.Errorf("%d requests, want %d", len(b.receiver.Got), n)
	}
	rest, err := b.Service.Deliveries(t.Context(), webhooktest.Account, sub.ID, webhooks.DeliveryFilter{Status: "pending", Limit: n})
	if err != nil || len(rest) > 0 {
		t.Errorf("%d pending, %v", len(rest), err)
	}
}

// A job that runs twice, as after a crash, makes a second attempt only if the
// first was not finished; the log shows both.
func TestJobThatRunsAgain(t *testing.T) {
	t.Parallel()
	b := setup(t)
	sub := b.Subscribe(b.receiver.URL, webhooks.Create{})
	b.Emit(events.Event{})
	job := b.Jobs()[0]
	b.run(job)
	if r, err := b.Attempt(t.Context(), job.Args); err != nil || r.Made {
		t.Errorf("a finished delivery was attempted again: %+v %v", r, err)
	}
	if _, err := b.Pool.Exec(t.Context(), `UPDATE webhook_attempts SET outcome = NULL; UPDATE webhook_deliveries SET status = 'pending', generation = 0`); err != nil {
		t.Fatal(err)
	}
	b.run(job)
	d := b.only(sub.ID)
	if len(d.AttemptLog) != 2 || d.AttemptLog[1].Outcome != "interrupted" || d.AttemptLog[0].Outcome != "succeeded" {
		t.Errorf("%+v", d.AttemptLog)
	}
}

func TestDeletedSubscriptionLeavesNothingToDo(t *testing.T) {
	t.Parallel()
	b := setup(t)
	sub := b.Subscribe(b.receiver.URL, webhooks.Create{})
	b.Emit(events.Event{})
	if err := b.Service.Delete(t.Context(), webhooktest.Account, sub.ID); err != nil {
		t.Fatal(err)
	}
	if _, r := b.next(); r.Made || r.Wait != 0 {
		t.Errorf("%+v", r)
	}
}
