package webhooks_test

import (
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sluice.dev/sluice/platform/events"
	"sluice.dev/sluice/workers/webhooks"
	"sluice.dev/sluice/workers/webhooks/webhooktest"
)

// Each change touches the fields that it names and no other.
func TestChangesOneByOne(t *testing.T) {
	t.Parallel()
	a := setup(t)
	made := a.must(201, "POST", "/v1/webhooks", object{
		"url": "https://example.com/", "events": []string{"stream.*"}, "secret": webhooktest.Secret, "description": "first",
		"retry_schedule": []int{5, 30, 300, 1800, 7200}, "rate_per_second": 10, "max_concurrency": 4, "ordered": true,
	})
	path := "/v1/webhooks/" + made["id"].(string)
	now := a.must(200, "GET", path, nil)
	for _, c := range []struct {
		field string
		to    any
		shown any
	}{
		{"description", "second", "second"},
		{"description", "", ""},
		{"url", "https://example.org/hook", "https://example.org/hook"},
		{"events", []string{"vod.ready", "clip.*"}, []any{"vod.ready", "clip.*"}},
		{"rate_per_second", 20, 20.0},
		{"rate_per_second", 0, nil},
		{"max_concurrency", 256, 256.0},
		{"retry_schedule", []int{60, 60, 600, 3600, 7200}, []any{60.0, 60.0, 600.0, 3600.0, 7200.0}},
		{"retry_schedule", []int{}, nil},
		{"ordered", false, false},
		{"status", "paused", "paused"},
		{"status", "active", "active"},
	} {
		got := a.must(200, "PATCH", path, object{c.field: c.to})
		now[c.field], now["updated_at"] = c.shown, got["updated_at"]
		if d := cmp.Diff(now, got); d != "" {
			t.Errorf("%s to %v: %s", c.field, c.to, d)
		}
	}
	if d := cmp.Diff(now, a.must(200, "PATCH", path, object{}), cmp.FilterPath(isUpdatedAt, cmp.Ignore())); d != "" {
		t.Errorf("a change of nothing: %s", d)
	}
}

func isUpdatedAt(p cmp.Path) bool { return strings.Contains(p.GoString(), "updated_at") }

func TestActivatingADisabledSubscriptionGivesItACleanRecord(t *testing.T) {
	t.Parallel()
	a := setup(t)
	id := a.Subscribe(nowhere, webhooks.Create{}).ID
	_, err := a.Pool.Exec(t.Context(), `UPDATE webhook_subscriptions SET status = 'disabled', disabled_reason = 'failing', failing_since = now() - interval '9 days'`)
	if err != nil {
		t.Fatal(err)
	}
	if v := a.must(200, "GET", "/v1/webhooks/"+id, nil); v["disabled_reason"] != "failing" || v["failing_since"] == nil {
		t.Errorf("%v", v)
	}
	v := a.must(200, "PATCH", "/v1/webhooks/"+id, object{"status": "active"})
	if v["status"] != "active" || v["disabled_reason"] != nil || v["failing_since"] != nil {
		t.Errorf("%v", v)
	}
}

func TestNewURLIsUsedForWhatIsStillToBeSent(t *testing.T) {
	t.Parallel()
	a := setup(t)
	r := webhooktest.NewReceiver(t)
	id := a.Subscribe(nowhere, webhooks.Create{}).ID
	a.Emit(events.Event{ID: "evt_1"})
	a.must(200, "PATCH", "/v1/webhooks/"+id, object{"url": r.URL})
	a.deliver()
	if got := <-r.Got; got.Header.Get("X-Service-Event-Id") != "evt_1" {
		t.Errorf("%v", got.Header)
	}
}

func TestRotationWithoutOverlapEndsTheOldSecretAtOnce(t *testing.T) {
	t.Parallel()
	a := setup(t)
	r := webhooktest.NewReceiver(t)
	id := a.Subscribe(r.URL, webhooks.Create{}).ID
	a.must(200, "POST", "/v1/webhooks/"+id+"/rotate-secret", object{"secret": "another secret, long enough", "overlap_seconds": 0})
	a.Emit(events.Event{})
	a.deliver()
	h := (<-r.Got).Header
	if strings.Contains(h.Get("Webhook-Signature"), " ") || h.Get("X-Service-Signature-Previous") != "" {
		t.Errorf("two secrets have signed: %v", h)
	}
}

func TestDeliveriesAreFilteredByEventAndStatus(t *testing.T) {
	t.Parallel()
	a := setup(t)
	path := "/v1/webhooks/" + a.Subscribe(nowhere, webhooks.Create{}).ID + "/deliveries"
	a.Emit(events.Event{ID: "a", Type: "vod.ready"})
	a.Emit(events.Event{ID: "b", Type: "stream.ended"})
	if _, err := a.Pool.Exec(t.Context(), `UPDATE webhook_deliveries SET status = 'succeeded', finished_at = now()
		FROM account_events e WHERE e.seq = event_seq AND e.id = 'a'`); err != nil {
		t.Fatal(err)
	}
	for query, want := range map[string]string{
		"":                                     "b a",
		"?event=vod.ready":                     "a",
		"?status=pending":                      "b",
		"?status=succeeded&event=vod.ready":    "a",
		"?status=succeeded&event=stream.ended": "",
		"?event=' OR true":                     "",
	} {
		var got []string
		for _, d := range a.must(200, "GET", path+strings.ReplaceAll(query, " ", "%20"), nil)["data"].([]any) {
			got = append(got, d.(object)["event_id"].(string))
		}
		if s := strings.Join(got, " "); s != want {
			t.Errorf("%s: %q, want %q", query, s, want)
		}
	}
}

// Deliveries come in at the front of the list while it is read: a page by
// cursor neither repeats nor skips one.
func TestPagesStayWholeWhileNewDeliveriesComeIn(t *testing.T) {
	t.Parallel()
	a := setup(t)
	path := "/v1/webhooks/" + a.Subscribe(nowhere, webhooks.Create{}).ID + "/deliveries?limit=1"
	for _, id := range []string{"a", "b", "c"} {
		a.Emit(events.Event{ID: id})
	}
	var seen string
	for cursor, more := "", true; more; {
		v := a.must(200, "GET", path+"&cursor="+cursor, nil)
		seen += v["data"].([]any)[0].(object)["event_id"].(string)
		cursor, more = v["pagination"].(object)["next_cursor"].(string)
		a.Emit(events.Event{})
	}
	if seen != "cba" {
		t.Error(seen)
	}
}

// Two requests that race for the last place do not both get it.
func TestLimitHoldsForCreationsAtTheSameTime(t *testing.T) {
	t.Parallel()
	a := setup(t)
	a.Service.MaxSubscriptions = 3
	var made [8]bool
	var wg sync.WaitGroup
	for i := range made {
		wg.Go(func() {
			_, err := a.Service.Create(t.Context(), webhooktest.Account, webhooks.Create{
				URL: "https://example.com/", Events: []string{"*"}, Secret: webhooktest.Secret})
			made[i] = err == nil
		})
	}
	wg.Wait()
	n := 0
	for _, m := range made {
		if m {
			n++
		}
	}
	if n != 3 {
		t.Errorf("%d were made, want 3", n)
	}
}

func TestBodiesThatAreNotTaken(t *testing.T) {
	t.Parallel()
	a := setup(t)
	for want, c := range map[int]struct{ kind, body string }{
		413: {"application/json", `{"description":"` + strings.Repeat("x", 70_000) + `"}`},
		415: {"text/plain", `{}`},
		400: {"application/json", `[]`},
	} {
		r := httptest.NewRequest("POST", "/v1/webhooks", strings.NewReader(c.body))
		r.Header.Set("Content-Type", c.kind)
		w := httptest.NewRecorder()
		a.handler.ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("%d, want %d: %s", w.Code, want, w.Body)
		}
	}
}

func TestAnswersWithASecretAreNotKept(t *testing.T) {
	t.Parallel()
	a := setup(t)
	r := httptest.NewRequest("POST", "/v1/webhooks", strings.NewReader(
		`{"url":"https://example.com/","events":["*"],"secret":"`+webhooktest.Secret+`"}`))
	w := httptest.NewRecorder()
	a.handler.ServeHTTP(w, r)
	if w.Code != 201 || w.Header().Get("Cache-Control") != "no-store" {
		t.Errorf("%d %v", w.Code, w.Header())
	}
}
