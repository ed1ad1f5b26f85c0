package delivery_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/events"
	"sluice.dev/sluice/workers/webhooks"
	"sluice.dev/sluice/workers/webhooks/webhooktest"
)

// The schedule of contract 7.5 on a fake clock, to the second.
func TestFailingDeliveryFollowsTheScheduleToTheSecond(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.receiver.Answer(500)
	sub := b.Subscribe(b.receiver.URL, webhooks.Create{Events: []string{"stream.*"}})
	b.Emit(events.Event{ID: "evt_1"})
	var at []time.Duration
	for len(b.Jobs()) > 0 {
		due, r := b.next()
		if !r.Made {
			t.Fatalf("no attempt was made: %+v", r)
		}
		at = append(at, due.Sub(start))
	}
	want := []time.Duration{0, 5 * time.Second, 35 * time.Second, 335 * time.Second, 2135 * time.Second, 9335 * time.Second}
	if d := cmp.Diff(want, at); d != "" {
		t.Errorf("attempts (-want +got):\n%s", d)
	}
	d := b.only(sub.ID)
	if d.Status != "failed" || d.ErrorCode != decision.Webhook001 || d.Attempts != 6 || len(d.AttemptLog) != 6 {
		t.Errorf("%+v", d)
	}
	if diff := cmp.Diff([]string{"stream.started", "webhook.delivery_failed"}, b.Events(webhooktest.Account)); diff != "" {
		t.Error(diff)
	}
}

func TestEveryAttemptCarriesTheSameIDAndBytes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.receiver.Answer(503)
	b.Subscribe(b.receiver.URL, webhooks.Create{Events: []string{"stream.*"}})
	b.Emit(events.Event{ID: "evt_same", Data: map[string]any{"title": "<&>"}})
	for len(b.Jobs()) > 0 {
		b.next()
	}
	first := <-b.receiver.Got
	for range 5 {
		again := <-b.receiver.Got
		if string(again.Body) != string(first.Body) || again.Header.Get("X-Service-Event-Id") != "evt_same" {
			t.Errorf("%s %v", again.Body, again.Header)
		}
		if again.Header.Get("X-Service-Timestamp") == first.Header.Get("X-Service-Timestamp") {
			t.Error("a later attempt has the timestamp of the first")
		}
	}
}

func TestLongerScheduleOfASubscription(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.receiver.Answer(500)
	sub := b.Subscribe(b.receiver.URL, webhooks.Create{Events: []string{"stream.*"}, RetrySchedule: []int{10, 60, 600, 3600, 7200, 86400}})
	b.Emit(events.Event{})
	var last time.Time
	for len(b.Jobs()) > 0 {
		last, _ = b.next()
	}
	if want := start.Add((10 + 60 + 600 + 3600 + 7200 + 86400) * time.Second); !last.Equal(want) {
		t.Errorf("last attempt at %v, want %v", last, want)
	}
	if d := b.only(sub.ID); d.Attempts != 7 || d.Status != "failed" {
		t.Errorf("%+v", d.Delivery)
	}
}

func TestRetryAfterOfTheReceiver(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.receiver.Answer(429, "Retry-After", "120")
	b.Subscribe(b.receiver.URL, webhooks.Create{})
	b.Emit(events.Event{})
	b.next()
	if at := b.Jobs()[0].At; !at.Equal(start.Add(2 * time.Minute)) {
		t.Errorf("next attempt at %v", at)
	}
}

func TestSuccessAfterARetryEndsIt(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.receiver.Answer(500)
	sub := b.Subscribe(b.receiver.URL, webhooks.Create{})
	b.Emit(events.Event{})
	b.next()
	b.receiver.Answer(200)
	b.next()
	d := b.only(sub.ID)
	if d.Status != "succeeded" || d.Attempts != 2 || len(b.Jobs()) != 0 {
		t.Fatalf("%+v", d.Delivery)
	}
	newest, oldest := d.AttemptLog[0], d.AttemptLog[1]
	if newest.Outcome != "succeeded" || oldest.Outcome != "failed" || oldest.Response.StatusCode != 500 {
		t.Errorf("%+v %+v", newest, oldest)
	}
	if want := start.Add(5 * time.Second); !oldest.NextAttemptAt.Equal(want) || !newest.NextAttemptAt.IsZero() {
		t.Errorf("next attempts: %v, %v", oldest.NextAttemptAt, newest.NextAttemptAt)
	}
	sub, _ = b.Service.Get(t.Context(), webhooktest.Account, sub.ID)
	if !sub.FailingSince.IsZero() {
		t.Error("the subscription still counts as failing")
	}
}

// The queue and the worker may disagree about the time: the later clock counts.
func TestRetryIsNotMadeEarlyWhenTheQueueIsAhead(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.receiver.Answer(500)
	b.Subscribe(b.receiver.URL, webhooks.Create{})
	b.Emit(events.Event{})
	b.next()
	retry := b.Jobs()[0].Args
	b.clock.Set(start.Add(4900 * time.Millisecond))
	if r, err := b.Attempt(t.Context(), retry); err != nil || r.Made || r.Wait != 100*time.Millisecond {
		t.Errorf("%+v %v", r, err)
	}
	b.clock.Set(start.Add(5 * time.Second))
	if r, err := b.Attempt(t.Context(), retry); err != nil || !r.Made {
		t.Errorf("%+v %v", r, err)
	}
}
