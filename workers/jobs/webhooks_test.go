package jobs_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"sluice.dev/sluice/platform/events"
	"sluice.dev/sluice/workers/webhooks"
	"sluice.dev/sluice/workers/webhooks/webhooktest"
)

// live is the service with a worker in this process.
func live(t *testing.T, schedule ...time.Duration) (*webhooktest.Bundle, *webhooktest.Receiver) {
	t.Helper()
	b := webhooktest.New(t, nil)
	if _, err := startWorker(t.Context(), b.Pool, schedule); err != nil {
		t.Fatal(err)
	}
	return b, webhooktest.NewReceiver(t)
}

// next returns the next request, and fails the test if there is none.
func next(t *testing.T, r *webhooktest.Receiver) webhooktest.Received {
	t.Helper()
	select {
	case got := <-r.Got:
		return got
	case <-time.After(limit):
		t.Fatal("no request arrives")
		return webhooktest.Received{}
	}
}

func TestEventReachesItsReceiver(t *testing.T) {
	t.Parallel()
	b, r := live(t)
	b.Subscribe(r.URL, webhooks.Create{})
	b.Emit(events.Event{ID: "evt_1"})
	if got := next(t, r); got.Header.Get("X-Service-Event-Id") != "evt_1" {
		t.Errorf("%v", got.Header)
	}
}

// A retry never goes out before its delay has passed since the answer.
func TestRetriesThroughTheQueueAreNeverEarly(t *testing.T) {
	t.Parallel()
	delays := []time.Duration{300 * time.Millisecond, 200 * time.Millisecond, 100 * time.Millisecond, 0, 0}
	b, r := live(t, delays...)
	answered := make(chan time.Time, 10)
	arrived := make(chan time.Time, 10)
	r.AnswerWith(func(w http.ResponseWriter, _ *http.Request) {
		arrived <- time.Now()
		w.WriteHeader(http.StatusInternalServerError)
		answered <- time.Now()
	})
	b.Subscribe(r.URL, webhooks.Create{Events: []string{"stream.*"}})
	b.Emit(events.Event{})
	next(t, r)
	<-arrived
	for i, delay := range delays {
		next(t, r)
		if waited := (<-arrived).Sub(<-answered); waited < delay {
			t.Errorf("retry %d after %v, want at least %v", i+1, waited, delay)
		}
	}
}

func TestResumeReleasesThroughTheQueue(t *testing.T) {
	t.Parallel()
	b, r := live(t)
	sub := b.Subscribe(r.URL, webhooks.Create{})
	set := func(s webhooks.Status) {
		t.Helper()
		if _, err := b.Service.Update(t.Context(), webhooktest.Account, sub.ID, webhooks.Update{Status: &s}); err != nil {
			t.Fatal(err)
		}
	}
	set(webhooks.Paused)
	for i := range 3 {
		b.Emit(events.Event{ID: fmt.Sprint("evt_", i)})
	}
	set(webhooks.Active)
	for range 3 {
		next(t, r)
	}
}

// Endpoints that hang do not keep the worker from serving the others.
func TestHangingEndpointsDoNotStopTheOthers(t *testing.T) {
	t.Parallel()
	b, r := live(t)
	hanging := webhooktest.NewReceiver(t)
	end := make(chan struct{})
	t.Cleanup(func() { close(end) })
	hanging.AnswerWith(func(http.ResponseWriter, *http.Request) { <-end })
	for i := range 5 {
		b.Subscribe(fmt.Sprintf("%s/%d", hanging.URL, i), webhooks.Create{Events: []string{"stream.ended"}})
	}
	b.Subscribe(r.URL, webhooks.Create{Events: []string{"stream.started"}})
	for range 20 {
		b.Emit(events.Event{Type: "stream.ended"})
	}
	next(t, hanging)
	for i := range 20 {
		b.Emit(events.Event{ID: fmt.Sprint("evt_", i)})
		next(t, r)
	}
	if r.Pending() != 0 {
		t.Errorf("%d requests too many", r.Pending())
	}
}

// A job whose worker died while running it is run again.
func TestJobOfADeadWorkerIsRevived(t *testing.T) {
	t.Parallel()
	b := webhooktest.New(t, nil)
	r := webhooktest.NewReceiver(t)
	b.Subscribe(r.URL, webhooks.Create{})
	b.Emit(events.Event{})
	_, err := b.Pool.Exec(t.Context(), `UPDATE river_job SET state = 'running', attempt = 1, attempted_at = now() - interval '1 hour', attempted_by = '{dead}'`)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := startWorker(t.Context(), b.Pool, nil); err != nil {
		t.Fatal(err)
	}
	next(t, r)
}
