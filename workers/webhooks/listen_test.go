package webhooks_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/platform/events"
	"sluice.dev/sluice/platform/http/identity"
	"sluice.dev/sluice/workers/webhooks"
	"sluice.dev/sluice/workers/webhooks/signature"
	"sluice.dev/sluice/workers/webhooks/webhooktest"
)

// listen asks once, without waiting, and returns the ids that came and where to go on.
func (a api) listen(query, cursor string) (ids []string, next string) {
	a.T.Helper()
	v := a.must(http.StatusOK, "GET", "/v1/webhooks/listen?wait=0&cursor="+cursor+query, nil)
	for _, e := range v["data"].([]any) {
		ids = append(ids, e.(object)["id"].(string))
	}
	return ids, v["cursor"].(string)
}

// settle waits until no transaction on the server, also in another database, is older than
// the last event: until then whoever begins to listen is shown it.
func (a api) settle() {
	a.T.Helper()
	for settled := false; !settled; {
		if err := a.Pool.QueryRow(a.T.Context(), `SELECT max(xact) < pg_snapshot_xmin(pg_current_snapshot()) FROM account_events`).Scan(&settled); err != nil {
			a.T.Fatal(err)
		}
	}
}

// listenFor asks until n events have come. It takes more than one request if anything on
// the server, also in another database, is in a transaction.
func (a api) listenFor(n int, query, cursor string) (ids []string, next string) {
	a.T.Helper()
	for a.T.Context().Err() == nil && len(ids) < n {
		v := a.must(http.StatusOK, "GET", "/v1/webhooks/listen?wait=25&cursor="+cursor+query, nil)
		for _, e := range v["data"].([]any) {
			ids = append(ids, e.(object)["id"].(string))
		}
		cursor = v["cursor"].(string)
	}
	return ids, cursor
}

func equal(t *testing.T, got []string, want ...string) {
	t.Helper()
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestListenersHearEachEventOnce(t *testing.T) {
	t.Parallel()
	a := setup(t)
	a.Emit(events.Event{ID: "before"})
	a.settle()
	ids, cursor := a.listen("", "")
	equal(t, ids)
	a.Emit(events.Event{ID: "one"})
	a.Emit(events.Event{ID: "two", Type: "webhook.disabled"})
	a.Emit(events.Event{ID: "foreign", Account: webhooktest.Other})
	start := cursor
	ids, cursor = a.listenFor(2, "", cursor)
	equal(t, ids, "one", "two")
	ids, cursor = a.listen("", cursor)
	equal(t, ids)
	a.Emit(events.Event{ID: "three"})
	ids, cursor = a.listenFor(1, "", cursor)
	equal(t, ids, "three")
	ids, _ = a.listenFor(1, "&events=webhook.*", start) // again, from where it was
	equal(t, ids, "two")
	ids, _ = a.listenFor(1, "&events=webhook.disabled,recording.*", start)
	equal(t, ids, "two")
	a.EmitMany(120)
	ids, cursor = a.listenFor(120, "", cursor)
	slices.Sort(ids)
	if n := len(slices.Compact(ids)); n != 120 {
		t.Errorf("%d events came, want 120", n)
	}
	ids, _ = a.listen("", cursor)
	equal(t, ids)
}

// An event whose transaction ends after that of a later one is not passed over.
func TestListenersMissNothingThatCommitsLate(t *testing.T) {
	t.Parallel()
	a := setup(t)
	_, cursor := a.listen("", "")
	emit := func(tx pgx.Tx, id string) {
		t.Helper()
		if err := a.Service.EmitTx(t.Context(), tx, events.Event{ID: id, Account: webhooktest.Account, Type: "stream.started"}); err != nil {
			t.Fatal(err)
		}
	}
	late, err := a.Pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	early, err := a.Pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	emit(early, "early-1") // has its transaction before the late one
	emit(late, "late")
	emit(early, "early-2") // and a higher number than the late one
	if err := early.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	a.Emit(events.Event{ID: "after"})
	ids, cursor := a.listenFor(2, "", cursor)
	equal(t, ids, "early-1", "early-2")
	ids, cursor = a.listen("", cursor)
	equal(t, ids) // what was begun after the late one waits for it
	if err := late.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	ids, cursor = a.listenFor(2, "", cursor)
	equal(t, ids, "late", "after")
	ids, _ = a.listen("", cursor)
	equal(t, ids)
}

func TestListenersWaitForEvents(t *testing.T) {
	t.Parallel()
	a := setup(t)
	_, cursor := a.listen("", "")
	heard := make(chan object)
	go func() {
		r := httptest.NewRequestWithContext(t.Context(), "GET", "/v1/webhooks/listen?wait=25&cursor="+cursor, nil)
		w := httptest.NewRecorder()
		a.handler.ServeHTTP(w, r)
		heard <- object{"body": w.Body.String(), "status": w.Code}
	}()
	a.Emit(events.Event{ID: "awaited"})
	if got := <-heard; got["status"] != 200 || !strings.Contains(got["body"].(string), `"awaited"`) {
		t.Error(got)
	}
}

// What is listened to as a subscription has its events and its signature.
func TestListeningAsASubscription(t *testing.T) {
	t.Parallel()
	a := setup(t)
	sub := a.Subscribe("https://127.0.0.1/hook", webhooks.Create{Events: []string{"stream.*"}})
	_, cursor := a.listen("&webhook="+sub.ID, "")
	a.Emit(events.Event{ID: "mine"})
	a.Emit(events.Event{ID: "not-mine", Type: "webhook.disabled"})
	v := a.must(http.StatusOK, "GET", "/v1/webhooks/listen?wait=25&webhook="+sub.ID+"&cursor="+cursor, nil)
	data := v["data"].([]any)
	if len(data) != 1 {
		t.Fatal(v)
	}
	e := data[0].(object)
	h := http.Header{}
	for name, value := range e["headers"].(object) {
		h.Set(name, value.(string))
	}
	if err := signature.Verify([]byte(webhooktest.Secret), h, []byte(e["body"].(string)), time.Now()); err != nil || e["id"] != "mine" {
		t.Errorf("%v: %v", err, e)
	}
	if h.Get("Content-Type") != "application/json" || h.Get("X-Service-Event-Id") != "mine" {
		t.Error(h)
	}
	reader := serve(a.Service, identity.Caller{Account: webhooktest.Account, Scopes: []string{"webhooks:read"}})
	if status, _ := call(t, reader, "GET", "/v1/webhooks/listen?wait=0&webhook="+sub.ID, nil); status != 403 {
		t.Errorf("a reader may have signatures: %d", status)
	}
	if status, _ := call(t, reader, "GET", "/v1/webhooks/listen?wait=0", nil); status != 200 {
		t.Errorf("a reader may not listen: %d", status)
	}
	stranger := serve(a.Service, identity.Caller{Account: webhooktest.Other, Scopes: []string{"*"}})
	if status, _ := call(t, stranger, "GET", "/v1/webhooks/listen?wait=0&webhook="+sub.ID, nil); status != 404 {
		t.Errorf("another account's subscription: %d", status)
	}
}

func TestListeningIsBounded(t *testing.T) {
	t.Parallel()
	a := setup(t)
	for _, query := range []string{"wait=26", "wait=-1", "wait=x", "events=nope", "cursor=1", "cursor=0.0", "cursor=01.1", "cursor=1.1.1", "cursor=" + strings.Repeat("9", 60), "cursor=99999999999999.0",
		"events=" + strings.Repeat("stream.*,", 100) + "*"} {
		if status, v := a.call("GET", "/v1/webhooks/listen?"+query, nil); status != 400 {
			t.Errorf("%.60s: %d %v", query, status, v)
		}
	}
	_, cursor := a.listen("", "")
	// Eight listen, and eight wait for their places: the ones after that are refused at once, and those in time.
	refused := make(chan int)
	for range 24 {
		go func() {
			w := httptest.NewRecorder()
			a.handler.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/v1/webhooks/listen?wait=20&events=recording.*&cursor="+cursor, nil))
			refused <- w.Code
		}()
	}
	for range 16 {
		if status := <-refused; status != 429 {
			t.Errorf("%d, want 429", status)
		}
	}
	a.Emit(events.Event{Type: "recording.ready"})
	for range 8 {
		if status := <-refused; status != 200 {
			t.Errorf("%d, want 200", status)
		}
	}
}

func TestEventsAreTriggered(t *testing.T) {
	t.Parallel()
	a := setup(t)
	a.Subscribe("https://127.0.0.1/hook", webhooks.Create{Events: []string{"stream.*"}})
	_, cursor := a.listen("", "")
	v := a.must(http.StatusCreated, "POST", "/v1/webhooks/trigger", object{"event": "stream.started", "data": object{"stream_id": "strm_mine"}})
	if v["event"] != "stream.started" || v["deliveries"] != 1.0 || len(a.Jobs()) != 1 {
		t.Error(v)
	}
	heard := a.must(http.StatusOK, "GET", "/v1/webhooks/listen?wait=25&cursor="+cursor, nil)["data"].([]any)
	if len(heard) != 1 || heard[0].(object)["id"] != v["id"] || !strings.Contains(heard[0].(object)["body"].(string), `"stream_id":"strm_mine"`) {
		t.Error(heard)
	}
	for _, body := range []object{{}, {"event": "nope"}, {"event": "test.webhook"}, {"event": "webhook.disabled", "data": object{"reason": 7}}, {"event": "stream.started", "data": object{"stream_id": strings.Repeat("x", 101)}}} {
		if status, v := a.call("POST", "/v1/webhooks/trigger", body); status != 400 {
			t.Errorf("%v: %d %v", body, status, v)
		}
	}
	var n int
	if err := a.Pool.QueryRow(t.Context(), `SELECT count(*) FROM audit_log WHERE action = 'webhook.trigger' AND account_id = $1`, webhooktest.Account).Scan(&n); err != nil || n != 1 {
		t.Errorf("%d entries of the audit log, %v", n, err)
	}
	// Every event of the catalogue can be tried as it is.
	for _, e := range a.Service.Types() {
		if e.Name != "test.webhook" {
			a.must(http.StatusCreated, "POST", "/v1/webhooks/trigger", object{"event": e.Name})
		}
	}
}
