package webhooks_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/events"
	"sluice.dev/sluice/platform/http/identity"
	"sluice.dev/sluice/workers/webhooks"
	"sluice.dev/sluice/workers/webhooks/webhooktest"
)

const nowhere = "http://127.0.0.1:1/"

func TestEventReachesThoseWhoAskedForIt(t *testing.T) {
	t.Parallel()
	b := webhooktest.New(t, nil)
	paused, disabled := webhooks.Paused, "disabled"
	want := map[string]bool{}
	for name, c := range map[string]struct {
		events  []string
		reached bool
	}{
		"by name": {[]string{"vod.ready", "stream.started"}, true}, "by group": {[]string{"stream.*"}, true}, "by everything": {[]string{"*"}, true},
		"another": {[]string{"stream.ended"}, false}, "another group": {[]string{"recording.*"}, false},
		"paused": {[]string{"*"}, true}, "disabled": {[]string{"*"}, false},
	} {
		s := b.Subscribe(nowhere, webhooks.Create{Events: c.events, Description: name})
		want[s.ID] = c.reached
		switch name {
		case "paused":
			if _, err := b.Service.Update(t.Context(), webhooktest.Account, s.ID, webhooks.Update{Status: &paused}); err != nil {
				t.Fatal(err)
			}
		case disabled:
			if _, err := b.Pool.Exec(t.Context(), `UPDATE webhook_subscriptions SET status = 'disabled' WHERE id = $1`, s.ID); err != nil {
				t.Fatal(err)
			}
		}
	}
	b.Emit(events.Event{Type: "stream.started"})
	b.Emit(events.Event{Type: "stream.started", Account: webhooktest.Other})
	got := map[string]bool{}
	for id := range want {
		got[id] = false
	}
	for _, j := range b.Jobs() {
		if got[j.Args.Subscription] {
			t.Errorf("%s has two deliveries", j.Args.Subscription)
		}
		got[j.Args.Subscription] = true
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestEventAndDeliveriesCommitWithTheCaller(t *testing.T) {
	t.Parallel()
	b := webhooktest.New(t, nil)
	b.Subscribe(nowhere, webhooks.Create{})
	undone := errors.New("undone")
	err := pgx.BeginFunc(t.Context(), b.Pool, func(tx pgx.Tx) error {
		if err := b.Service.EmitTx(t.Context(), tx, events.Event{Account: webhooktest.Account, Type: "vod.ready"}); err != nil {
			t.Error(err)
		}
		return undone
	})
	if !errors.Is(err, undone) || len(b.Events(webhooktest.Account)) != 0 || len(b.Jobs()) != 0 {
		t.Errorf("%v: %v, %d jobs", err, b.Events(webhooktest.Account), len(b.Jobs()))
	}
}

func TestSameIDIsStoredOncePerAccount(t *testing.T) {
	t.Parallel()
	b := webhooktest.New(t, nil)
	b.Subscribe(nowhere, webhooks.Create{})
	for range 3 {
		b.Emit(events.Event{ID: "evt_once"})
	}
	b.Emit(events.Event{ID: "evt_once", Account: webhooktest.Other})
	if n := len(b.Jobs()); n != 1 {
		t.Errorf("%d deliveries, want 1", n)
	}
	if got := b.Events(webhooktest.Other); len(got) != 1 {
		t.Errorf("the other account's event of that id: %v", got)
	}
}

func TestEventThatIsTooLargeIsRefused(t *testing.T) {
	t.Parallel()
	b := webhooktest.New(t, nil)
	_, err := b.Service.Publish(t.Context(), events.Event{Account: webhooktest.Account, Type: "stream.deleted",
		Data: map[string]any{"title": strings.Repeat("x", webhooks.MaxBody)}})
	if apierror.Code(err) != "request_too_large" {
		t.Error(err)
	}
}

func TestPublishOverHTTP(t *testing.T) {
	t.Parallel()
	a := setup(t)
	a.Subscribe(nowhere, webhooks.Create{})
	event := object{"id": "evt_p", "event": "stream.error", "stream_id": "strm_1", "data": object{"error_code": "STREAM_001", "error_message": "m"}}
	first := a.must(201, "POST", "/internal/v1/events", event)
	if d := cmp.Diff(object{"id": "evt_p", "duplicate": false, "deliveries": 1.0}, first); d != "" {
		t.Error(d)
	}
	if v := a.must(200, "POST", "/internal/v1/events", event); v["duplicate"] != true {
		t.Errorf("%v", v)
	}
	var code string
	if err := a.Pool.QueryRow(t.Context(), `SELECT error_code FROM account_events WHERE id = 'evt_p'`).Scan(&code); err != nil || code != "STREAM_001" {
		t.Errorf("%s %v", code, err)
	}
}

func TestPublishRefuses(t *testing.T) {
	t.Parallel()
	a := setup(t)
	for field, event := range map[string]object{
		"event":           {"event": "no.such"},
		"data.threshold":  {"event": "viewer.threshold_reached", "data": object{"threshold": "many", "current_viewers": 1, "threshold_type": "x"}},
		"data.error_code": {"event": "stream.error", "data": object{"error_message": "m"}},
		"id":              {"event": "stream.deleted", "id": strings.Repeat("x", 101), "data": object{}},
		"timestamp":       {"event": "stream.deleted", "timestamp": "yesterday"},
	} {
		status, v := a.call("POST", "/internal/v1/events", event)
		if _, named := problems(v)[field]; status != 400 || !named {
			t.Errorf("%s: %d %v", field, status, v)
		}
	}
	a.must(400, "POST", "/internal/v1/events", object{"event": "test.webhook", "data": object{}})
	if status, _ := call(t, serve(a.Service, identity.Caller{}), "POST", "/internal/v1/events", object{}); status != 401 {
		t.Errorf("without identity: %d", status)
	}
}

// An event for many subscriptions leaves the first places in the queue to others.
func TestFanOutGoesFirstUpToANumber(t *testing.T) {
	t.Parallel()
	b := webhooktest.New(t, nil)
	sub := b.Subscribe("http://127.0.0.1:1/", webhooks.Create{})
	_, err := b.Pool.Exec(t.Context(), `INSERT INTO webhook_subscriptions (id, account_id, url, events, secret, max_concurrency, created_at, updated_at)
		SELECT id || n, account_id, url, events, secret, max_concurrency, created_at, updated_at FROM webhook_subscriptions, generate_series(1, 149) n WHERE id = $1`, sub.ID)
	if err != nil {
		t.Fatal(err)
	}
	b.Emit(events.Event{})
	var first, second int
	err = b.Pool.QueryRow(t.Context(), `SELECT count(*) FILTER (WHERE priority = 1), count(*) FILTER (WHERE priority = 2) FROM river_job
		WHERE args->>'a' = $1`, webhooktest.Account).Scan(&first, &second)
	if err != nil || first != 100 || second != 50 {
		t.Errorf("%d and %d, %v", first, second, err)
	}
}
