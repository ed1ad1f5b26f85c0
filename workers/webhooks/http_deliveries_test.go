package webhooks_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"sluice.dev/sluice/platform/events"
	"sluice.dev/sluice/workers/webhooks"
	"sluice.dev/sluice/workers/webhooks/delivery"
	"sluice.dev/sluice/workers/webhooks/webhooktest"
)

// deliver makes every attempt that is queued, once.
func (a api) deliver() {
	a.T.Helper()
	d := delivery.New(delivery.Config{DB: a.Pool, Service: a.Service, Client: a.Client})
	for _, j := range a.Jobs() {
		if _, err := d.Attempt(a.T.Context(), a.Take(j)); err != nil {
			a.T.Fatal(err)
		}
	}
}

func TestDeliveriesAreListedWithTheirLog(t *testing.T) {
	t.Parallel()
	a := setup(t)
	r := webhooktest.NewReceiver(t)
	r.AnswerWith(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Reason", "busy")
		w.WriteHeader(503)
		_, _ = fmt.Fprint(w, "come back")
	})
	path := "/v1/webhooks/" + a.Subscribe(r.URL, webhooks.Create{}).ID + "/deliveries"
	a.Emit(events.Event{ID: "evt_1", Data: map[string]any{"title": "x"}})
	a.deliver()
	list := a.must(200, "GET", path, nil)["data"].([]any)
	if len(list) != 1 {
		t.Fatalf("%v", list)
	}
	d := list[0].(object)
	if d["event_id"] != "evt_1" || d["event"] != "stream.started" || d["status"] != "pending" || d["attempts"] != 1.0 || d["next_attempt_at"] == nil {
		t.Errorf("%v", d)
	}
	detail := a.must(200, "GET", path+"/"+d["id"].(string), nil)
	attempt := detail["attempt_log"].([]any)[0].(object)
	request, response := attempt["request"].(object), attempt["response"].(object)
	if request["url"] != r.URL || request["headers"].(object)["X-Service-Event-Id"].([]any)[0] != "evt_1" {
		t.Errorf("request: %v", request)
	}
	if response["status_code"] != 503.0 || response["body_head"] != "come back" || response["headers"].(object)["X-Reason"] != "busy" {
		t.Errorf("response: %v", response)
	}
	if attempt["duration_ms"] == nil || attempt["started_at"] == nil || detail["body"].(object)["data"].(object)["title"] != "x" {
		t.Errorf("%v", detail)
	}
}

func TestDeliveriesArePagedByCursor(t *testing.T) {
	t.Parallel()
	a := setup(t)
	path := "/v1/webhooks/" + a.Subscribe("http://127.0.0.1:1/", webhooks.Create{}).ID + "/deliveries"
	for i := range 5 {
		a.Emit(events.Event{ID: fmt.Sprint("evt_", i)})
	}
	var got []string
	for cursor := ""; ; {
		v := a.must(200, "GET", path+"?limit=2&cursor="+cursor, nil)
		for _, d := range v["data"].([]any) {
			got = append(got, d.(object)["event_id"].(string))
		}
		next, ok := v["pagination"].(object)["next_cursor"].(string)
		if !ok {
			break
		}
		cursor = next
	}
	if fmt.Sprint(got) != "[evt_4 evt_3 evt_2 evt_1 evt_0]" {
		t.Error(got)
	}
	a.must(200, "GET", path+"?status=held", nil)
	for _, bad := range []string{"?status=lost", "?cursor=dlv_1", "?limit=0", "?event=%00"} {
		a.must(400, "GET", path+bad, nil)
	}
}

func TestResendOverHTTP(t *testing.T) {
	t.Parallel()
	a := setup(t)
	r := webhooktest.NewReceiver(t)
	sub := "/v1/webhooks/" + a.Subscribe(r.URL, webhooks.Create{}).ID
	a.Emit(events.Event{})
	a.deliver()
	id := a.must(200, "GET", sub+"/deliveries?status=succeeded", nil)["data"].([]any)[0].(object)["id"].(string)
	if d := a.must(202, "POST", sub+"/deliveries/"+id+"/resend", nil); d["status"] != "pending" {
		t.Errorf("%v", d)
	}
	a.deliver()
	if len(r.Got) != 2 {
		t.Errorf("%d requests, want 2", len(r.Got))
	}
	for _, none := range []string{"dlv_0000000zzzzzz", "dlv_x", "x"} {
		a.must(404, "POST", sub+"/deliveries/"+none+"/resend", nil)
		a.must(404, "GET", sub+"/deliveries/"+none, nil)
	}
	a.must(200, "PATCH", sub, object{"status": "paused"})
	a.must(409, "POST", sub+"/deliveries/"+id+"/resend", nil)
}

func TestRecoveryOverHTTP(t *testing.T) {
	t.Parallel()
	a := setup(t)
	sub := "/v1/webhooks/" + a.Subscribe("http://127.0.0.1:1/", webhooks.Create{}).ID
	a.must(400, "POST", sub+"/recover", object{})
	a.must(400, "POST", sub+"/recover", object{"since": time.Now().Add(time.Hour)})
	made := a.must(202, "POST", sub+"/recover", object{"since": time.Now().Add(-time.Hour)})
	if made["status"] != "running" || made["total"] != 0.0 {
		t.Errorf("%v", made)
	}
	if done, err := a.Service.RecoveryStep(t.Context(), made["id"].(string)); err != nil || !done {
		t.Fatalf("%v %v", done, err)
	}
	if v := a.must(200, "GET", sub+"/recoveries/"+made["id"].(string), nil); v["status"] != "completed" || v["finished_at"] == nil {
		t.Errorf("%v", v)
	}
	if v := a.must(200, "GET", sub+"/recoveries", nil); len(v["data"].([]any)) != 1 {
		t.Errorf("%v", v)
	}
	a.must(404, "GET", sub+"/recoveries/rec_0", nil)
	a.must(200, "PATCH", sub, object{"status": "paused"})
	a.must(409, "POST", sub+"/recover", object{"since": time.Now().Add(-time.Hour)})
}
