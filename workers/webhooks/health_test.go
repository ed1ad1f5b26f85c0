package webhooks_test

import (
	"strconv"
	"testing"
	"time"

	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/events"
	"sluice.dev/sluice/workers/webhooks"
	"sluice.dev/sluice/workers/webhooks/webhooktest"
)

// How a receiver did is told by the hour, and of its last attempt; another account learns
// nothing of it.
func TestHealthOfReceivers(t *testing.T) {
	t.Parallel()
	a := setup(t)
	r := webhooktest.NewReceiver(t)
	good, bad := a.Subscribe(r.URL, webhooks.Create{}), a.Subscribe("http://127.0.0.1:9/", webhooks.Create{})
	silent := a.Subscribe(r.URL, webhooks.Create{Events: []string{"recording.*"}})
	a.Emit(events.Event{ID: "evt_1"})
	a.deliver()
	if _, err := a.Pool.Exec(t.Context(), `INSERT INTO webhook_attempts (delivery_id, number, url, started_at, outcome)
		SELECT delivery_id, n, url, started_at - make_interval(hours => n), 'failed' FROM webhook_attempts, unnest(ARRAY[2, 30]) n`); err != nil {
		t.Fatal(err)
	}
	ids := []string{good.ID, bad.ID, silent.ID}
	all, err := a.Service.Health(t.Context(), webhooktest.Account, ids)
	if err != nil || len(all) != 2 {
		t.Fatalf("%+v %v", all, err)
	}
	last, before := webhooks.HealthHours-1, webhooks.HealthHours-3
	if h := all[good.ID]; h.Succeeded != 1 || h.Attempted != 2 || h.LastStatus != 204 || h.LastError != "" || h.LastAt.IsZero() || h.Hours[last].Succeeded != 1 || h.Hours[before].Failed != 1 {
		t.Errorf("%+v", h)
	}
	if h := all[bad.ID]; h.Succeeded != 0 || h.Attempted != 2 || h.LastStatus != 0 || h.LastError == "" || h.Hours[last].Failed != 1 {
		t.Errorf("%+v", h)
	}
	if all, err := a.Service.Health(t.Context(), webhooktest.Other, ids); err != nil || len(all) != 0 {
		t.Errorf("%+v %v", all, err)
	}
}

// What a signer makes is what a receiver is sent, and nobody else's subscription signs.
func TestSignerSignsAsDeliveriesDo(t *testing.T) {
	t.Parallel()
	a := setup(t)
	r := webhooktest.NewReceiver(t)
	sub := a.Subscribe(r.URL, webhooks.Create{})
	a.Emit(events.Event{ID: "evt_1"})
	a.deliver()
	sent := <-r.Got
	sign, err := a.Service.Signer(t.Context(), webhooktest.Account, sub.ID)
	if err != nil {
		t.Fatal(err)
	}
	seconds, err := strconv.ParseInt(sent.Header.Get("Webhook-Timestamp"), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	h := sign("evt_1", sent.Body, time.Unix(seconds, 0))
	if len(h) < 5 {
		t.Fatal(h)
	}
	for name := range h {
		if got, want := h.Get(name), sent.Header.Get(name); got != want || want == "" {
			t.Errorf("%s: %s, but it was sent %s", name, got, want)
		}
	}
	if _, err := a.Service.Signer(t.Context(), webhooktest.Other, sub.ID); apierror.Code(err) != decision.NotFound {
		t.Error(err)
	}
}

// A subscription is found by its id, its address or its description, by its own account only.
func TestSubscriptionsAreFound(t *testing.T) {
	t.Parallel()
	a := setup(t)
	sub := a.Subscribe("http://127.0.0.1:9/Hook", webhooks.Create{Description: "Newsroom"})
	for _, c := range []struct {
		whose, account, text string
		want                 int
	}{
		{"", webhooktest.Other, sub.ID, 1}, {webhooktest.Other, webhooktest.Other, sub.ID, 0}, {webhooktest.Account, webhooktest.Account, sub.ID, 1},
		{"", webhooktest.Account, "/hook", 1}, {"", webhooktest.Account, "newsROOM", 1}, {"", webhooktest.Account, "%", 0}, {"", webhooktest.Other, "newsroom", 0},
	} {
		list, err := a.Service.Search(t.Context(), c.whose, c.account, c.text)
		if err != nil || len(list) != c.want || c.want > 0 && list[0].ID != sub.ID {
			t.Errorf("%+v: %v %v", c, list, err)
		}
	}
}
