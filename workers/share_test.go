package workers

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
	"sluice.dev/sluice/controlplane/schedules"
	"sluice.dev/sluice/controlplane/schedules/definition"
	"sluice.dev/sluice/controlplane/schedules/run"
	"sluice.dev/sluice/controlplane/webhooks/webhooktest"
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
	s.turn("b", now.Add(10*time.Minute))
	if len(s.lines) != 1 {
		t.Errorf("%d lines are kept", len(s.lines))
	}
}

// An account has many runs at a server that says nothing: it has its share of them
// there, and another's run is carried out meanwhile.
func TestRunsThatHangLeavePlacesToOthers(t *testing.T) {
	t.Parallel()
	b := webhooktest.New(t, nil)
	quiet := slog.New(slog.DiscardHandler)
	var hanging, most atomic.Int32
	full, leave := make(chan struct{}, 100), make(chan struct{})
	silent := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		if n := hanging.Add(1); n > most.Load() {
			most.Store(n)
		}
		full <- struct{}{}
		<-leave
		hanging.Add(-1)
	}))
	t.Cleanup(silent.Close)
	t.Cleanup(func() { close(leave) })
	called := make(chan struct{}, 1)
	good := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { called <- struct{}{} }))
	t.Cleanup(good.Close)

	service := schedules.New(schedules.Config{DB: b.Pool, Jobs: b.Service.Jobs, Events: b.Service, CheckURL: b.Client.CheckURL, Log: quiet})
	trigger := func(account, url string, n int) {
		made, err := service.Create(t.Context(), account, definition.Definition{Name: fmt.Sprint(account, n), Type: definition.TypeWebhook,
			Schedule: definition.Timing{Type: definition.Recurring, Cron: "0 0 1 1 *"}, Webhook: &definition.Webhook{URL: url}}, "")
		if err != nil {
			t.Fatal(err)
		}
		for range n {
			if _, err := service.Trigger(t.Context(), account, made.ID, ""); err != nil {
				t.Fatal(err)
			}
		}
	}
	trigger(webhooktest.Account, silent.URL, 20)
	registry := river.NewWorkers()
	river.AddWorker(registry, &scheduleWorker{runner: run.Runner{Store: service, Webhook: b.Client, Log: quiet}, share: newShare(8)})
	client, err := river.NewClient(riverpgxv5.New(b.Pool), &river.Config{Workers: registry, Logger: quiet,
		Queues: map[string]river.QueueConfig{schedules.Queue: {MaxWorkers: 12, FetchCooldown: time.Millisecond, FetchPollInterval: 10 * time.Millisecond}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { <-client.Stopped() })
	<-full
	<-full
	trigger(webhooktest.Other, good.URL, 1)
	<-called
	if n := most.Load(); n != 2 {
		t.Errorf("%d calls hang at once, want the share of 2", n)
	}
}
