package jobs

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivertype"
	"sluice.dev/sluice/platform/events"
	"sluice.dev/sluice/workers/schedules"
	"sluice.dev/sluice/workers/schedules/definition"
	"sluice.dev/sluice/workers/schedules/run"
	"sluice.dev/sluice/workers/webhooks"
	"sluice.dev/sluice/workers/webhooks/concurrency"
	"sluice.dev/sluice/workers/webhooks/delivery"
	"sluice.dev/sluice/workers/webhooks/webhooktest"
)

func TestJobsOverTheShareComeBackInTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newShare(8)
		var leaves []func()
		for range 2 {
			leave, wait := s.enter(t.Context(), "a")
			if wait != 0 {
				t.Fatal(wait)
			}
			leaves = append(leaves, leave)
		}
		var last time.Duration
		for i := range 100 {
			began := time.Now()
			_, wait := s.enter(t.Context(), "a")
			at := time.Since(began) + wait
			if parked := time.Since(began); parked != parkFor || wait < minTurn {
				t.Fatalf("job %d parked for %v, then put off %v", i, parked, wait)
			}
			last = max(last, at)
		}
		if leave, wait := s.enter(t.Context(), "b"); wait != 0 {
			t.Error("another account waits")
		} else {
			leave()
		}
		if leave, wait := s.enter(t.Context(), ""); wait != 0 || leave == nil {
			t.Error("a job of a release of before waits")
		}
		for _, leave := range leaves {
			leave()
		}
	})
}

// The line of an account is as long as its jobs take, and nobody comes back sooner
// than half of the longest wait when it is longer than that.
func TestTheLineGoesByTheAccountsSpeed(t *testing.T) {
	t.Parallel()
	s, now := newShare(1000), time.Now()
	if first, second := s.turn("a", now), s.turn("a", now); first < minTurn || second-first != firstGuess/250 {
		t.Errorf("%v, then %v", first, second)
	}
	if first, second := s.turn("a", now.Add(100*time.Millisecond)), s.turn("a", now.Add(100*time.Millisecond)); second-first != firstGuess/250 {
		t.Errorf("%v, then %v", first, second)
	}
	late := now.Add(minTurn / 2)
	s.lines["a"].ended = late.Add(-10 * time.Second) // those under way hang
	if first, second := s.turn("a", late), s.turn("a", late); second-first != 10*time.Second/250 {
		t.Errorf("while none ends: %v, then %v", first, second)
	}
	for range 100 {
		s.learn("a", 5*time.Second)
	}
	for range 20_000 {
		if wait := s.turn("a", now); wait < minTurn || wait > maxTurn+time.Second {
			t.Fatal(wait)
		}
	}
	if wait := s.turn("a", now); wait < maxTurn/2 {
		t.Errorf("at the end of a long line: %v", wait)
	}
	s.turn("b", now.Add(3*maxTurn))
	if len(s.lines) != 1 {
		t.Errorf("%d lines are kept", len(s.lines))
	}
}

// New executions of an account with a long line take their turn in it; others, and
// those of an account with a short one, find out themselves.
func TestNewExecutionsTakeTheirTurn(t *testing.T) {
	t.Parallel()
	s := newShare(1000)
	if got := s.Behind(); len(got) != 0 || s.Turn("a") != 0 {
		t.Errorf("%v are behind", got)
	}
	s.turn("a", time.Now())
	if got := s.Behind(); len(got) != 1 || got[0] != "a" || s.Turn("a") != 0 {
		t.Errorf("a short line: %v", got)
	}
	for range 100 {
		s.learn("a", 10*time.Second)
	}
	for range 200 {
		s.turn("a", time.Now())
	}
	first, second := s.Turn("a"), s.Turn("a")
	if first < worthScheduling || second <= first || s.Turn("b") != 0 {
		t.Errorf("a long line: %v, then %v", first, second)
	}
}

// An account has many runs at a server that says nothing: it has its share of them
// there, and another's run is carried out meanwhile.
func TestRunsThatHangLeavePlacesToOthers(t *testing.T) {
	t.Parallel()
	b := webhooktest.New(t, nil)
	silent, good := newReceiver(t, true), newReceiver(t, false)
	service := schedules.New(schedules.Config{DB: b.Pool, Jobs: b.Service.Jobs, Events: b.Service, CheckURL: b.Client.CheckURL, Log: quiet})
	trigger := func(account, url string, n int) {
		made, err := service.Create(t.Context(), account, definition.Definition{Name: fmt.Sprint(account, n), Type: definition.TypeWebhook,
			Schedule: definition.Timing{Type: definition.Recurring, Cron: "0 0 1 1 *"}, Webhook: &definition.Webhook{URL: url}})
		if err != nil {
			t.Fatal(err)
		}
		for range n {
			if _, err := service.Trigger(t.Context(), account, made.ID); err != nil {
				t.Fatal(err)
			}
		}
	}
	trigger(webhooktest.Account, silent.URL, 20)
	registry := river.NewWorkers()
	river.AddWorker(registry, &scheduleWorker{runner: run.Runner{Store: service, Webhook: b.Client, Log: quiet}, share: newShare(8)})
	work(t, b, registry, schedules.Queue)
	<-silent.called
	<-silent.called
	trigger(webhooktest.Other, good.URL, 1)
	<-good.called
	if n := silent.most.Load(); n != 2 {
		t.Errorf("%d calls hang at once, want the share of 2", n)
	}
}

// The same of deliveries: many endpoints of an account hang.
func TestDeliveriesThatHangLeavePlacesToOthers(t *testing.T) {
	t.Parallel()
	b := webhooktest.New(t, nil)
	silent, good := newReceiver(t, true), newReceiver(t, false)
	for range 20 {
		b.Subscribe(silent.URL, webhooks.Create{})
	}
	if _, err := b.Service.Create(t.Context(), webhooktest.Other, webhooks.Create{URL: good.URL, Secret: webhooktest.Secret, Events: []string{"*"}}); err != nil {
		t.Fatal(err)
	}
	b.Emit(events.Event{})
	registry := river.NewWorkers()
	d := delivery.New(delivery.Config{DB: b.Pool, Service: b.Service, Client: b.Client, Log: quiet})
	river.AddWorker(registry, &webhookDeliveryWorker{Webhooks: Webhooks{Service: b.Service, Deliverer: d, Limiter: concurrency.New(nil), JobTimeout: webhookJobTimeout, Log: quiet,
		shares: map[string]*share{webhooks.QueueFirst: newShare(8)}}})
	work(t, b, registry, webhooks.QueueFirst)
	<-silent.called
	<-silent.called
	b.Emit(events.Event{Account: webhooktest.Other})
	<-good.called
	if n := silent.most.Load(); n != 2 {
		t.Errorf("%d requests hang at once, want the share of 2", n)
	}
	var behind int
	err := b.Pool.QueryRow(t.Context(), `SELECT count(*) FROM river_job WHERE priority = $1`, webhooks.Behind).Scan(&behind)
	if err != nil || behind == 0 {
		t.Errorf("%d jobs went behind others, %v", behind, err)
	}
}

// Recoveries of an account have one of the places.
func TestRecoveriesHaveAShare(t *testing.T) {
	t.Parallel()
	w, job, b := webhookWorker(t, webhooks.QueueFirst)
	w.Log, w.shares = quiet, map[string]*share{webhooks.QueueBackground: newShare(webhookPlaces[webhooks.QueueBackground])}
	leave, wait := w.shares[webhooks.QueueBackground].enter(t.Context(), webhooktest.Account)
	if wait != 0 {
		t.Fatal(wait)
	}
	defer leave()
	made, err := b.Service.Recover(t.Context(), webhooktest.Account, job.Args.Subscription, time.Now().Add(-time.Hour), time.Time{}, false)
	if err != nil {
		t.Fatal(err)
	}
	args := webhooks.RecoveryArgs{Recovery: made.ID}
	r := webhookRecoveryWorker{Webhooks: w.Webhooks}
	for account, done := range map[string]bool{webhooktest.Account: false, webhooktest.Other: true} {
		args.Account = account
		_, snoozes := snoozed(r.Work(t.Context(), &river.Job[webhooks.RecoveryArgs]{JobRow: &rivertype.JobRow{Queue: webhooks.QueueBackground}, Args: args}))
		if snoozes == done {
			t.Errorf("%s: put off: %t", account, snoozes)
		}
	}
}

var quiet = slog.New(slog.DiscardHandler)

// receiver counts the calls that are with it at once.
type receiver struct {
	*httptest.Server
	called chan struct{}
	now    atomic.Int32
	most   atomic.Int32
}

// newReceiver starts one, which says nothing until the test ends if it hangs.
func newReceiver(t *testing.T, hangs bool) *receiver {
	t.Helper()
	r, over := &receiver{called: make(chan struct{}, 1000)}, make(chan struct{})
	r.Server = httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		if n := r.now.Add(1); n > r.most.Load() {
			r.most.Store(n)
		}
		r.called <- struct{}{}
		if hangs {
			<-over
		}
		r.now.Add(-1)
	}))
	t.Cleanup(r.Close)
	t.Cleanup(func() { close(over) })
	return r
}

// work works off a queue until the test ends.
func work(t *testing.T, b *webhooktest.Bundle, registry *river.Workers, queue string) {
	t.Helper()
	client, err := river.NewClient(riverpgxv5.New(b.Pool), &river.Config{Workers: registry, Logger: quiet,
		Queues: map[string]river.QueueConfig{queue: {MaxWorkers: 12, FetchCooldown: time.Millisecond, FetchPollInterval: 10 * time.Millisecond}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { <-client.Stopped() })
}
