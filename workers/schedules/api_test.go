package schedules_test

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/platform/http/idempotency"
	"sluice.dev/sluice/workers/schedules"
)

const (
	daily   = `{"type":"recurring","cron":"0 9 * * *","timezone":"America/New_York"}`
	onceDay = `{"type":"one_time","executeAt":"2026-01-02T12:00:00Z"}`
)

func TestCreateAnswersWithTheWholeSchedule(t *testing.T) {
	t.Parallel()
	b := setup(t)
	got := b.do("POST", "/v1/events/schedules", `{"name":"Morning show","description":"d","type":"stream_start","tags":["show"],
		"schedule":`+daily+`,"action":{"streamId":"strm_1","action":"start","settings":{"quality":"1080p","bitrate":"5000k"}},
		"retryPolicy":{"maxRetries":2,"backoffMultiplier":1.5,"initialDelaySeconds":30}}`).want(201)
	for path, want := range map[string]any{
		"name": "Morning show", "description": "d", "type": "stream_start", "status": "active", "executionCount": 0.0,
		"lastExecution": nil, "lastExecutionStatus": nil, "schedule.type": "recurring", "schedule.cron": "0 9 * * *",
		"schedule.timezone": "America/New_York", "schedule.nextExecution": "2026-01-01T14:00:00Z", "action.streamId": "strm_1",
		"action.settings.quality": "1080p", "retryPolicy.maxRetries": 2.0, "retryPolicy.initialDelaySeconds": 30.0,
		"createdAt": "2026-01-01T12:00:00Z", "updatedAt": "2026-01-01T12:00:00Z", "overlapPolicy": "skip", "catchUpPolicy": "last",
	} {
		if got.at(path) != want {
			t.Errorf("%s is %v, want %v", path, got.at(path), want)
		}
	}
	id := got.text("id")
	if !strings.HasPrefix(id, "schedule_") || got.header.Get("Location") != "/v1/events/schedules/"+id {
		t.Errorf("id %q, location %q", id, got.header.Get("Location"))
	}
	if again := b.do("GET", "/v1/events/schedules/"+id, "").want(200); again.raw != got.raw {
		t.Errorf("GET answers\n%s, POST answered\n%s", again.raw, got.raw)
	}
}

func TestAnExistingNameConflicts(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.create("a", daily, "")
	body := `{"name":"a","type":"custom","schedule":` + daily + `}`
	if got := b.do("POST", "/v1/events/schedules", body).want(409); got.text("error.code") != "conflict" {
		t.Error(got.raw)
	}
	b.call(stranger, "POST", "/v1/events/schedules", body).want(201)
	other := b.create("b", daily, "")
	b.do("PATCH", "/v1/events/schedules/"+other, `{"name":"a"}`).want(409)
	b.do("DELETE", "/v1/events/schedules/"+id, "").want(204)
	b.do("PATCH", "/v1/events/schedules/"+other, `{"name":"a"}`).want(200)
}

func TestBadRequestsNameEveryField(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.create("a", daily, "")
	for _, c := range []struct{ method, path, body, fields string }{
		{"POST", "/schedules", `{}`, "name type schedule.type"},
		{"POST", "/schedules", `{"name":"n","type":"webhook","schedule":{"type":"recurring","cron":"0 0 30 2 *","timezone":"X"},"webhook":{"url":"http://10.0.0.1"}}`,
			"schedule.timezone schedule.cron webhook.url"},
		{"POST", "/schedules", `{"name":"n","type":"custom","schedule":{"type":"one_time","executeAt":"2026-01-01T12:00:00Z"}}`, "schedule.executeAt"},
		{"POST", "/schedules", `{"name":"n","type":"custom","schedule":{"type":"recurring","cron":"@daily","endDate":"2025-12-31"}}`, "schedule.endDate"},
		{"POST", "/schedules", `{"name":1,"nope":2}`, "name nope"},
		{"PATCH", "/schedules/" + id, `{"status":"completed"}`, "status"},
		{"PATCH", "/schedules/" + id, `{"cron":"* * *"}`, "schedule.cron"},
		{"PATCH", "/schedules/" + id, `{"endDate":"2026-01-01T12:00:00Z"}`, "schedule.endDate"},
		{"GET", "/schedules?limit=101&offset=-1&status=gone&type=x", "", "limit offset status type"},
		{"GET", "/schedules/" + id + "/executions?limit=0&status=x&startDate=y&endDate=z", "", "limit status startDate endDate"},
		{"GET", "/?limit=x&type=%25&since=y", "", "limit type since"},
		{"POST", "/schedules/preview", `{"cron":"x","timezone":"y"}`, "schedule.timezone schedule.cron"},
		{"POST", "/schedules/preview", `{"cron":"@daily","count":101}`, "count"},
	} {
		got := b.do(c.method, strings.TrimSuffix("/v1/events"+c.path, "?"), c.body).want(400)
		var fields []string
		details, _ := got.at("error.details").([]any)
		for _, d := range details {
			fields = append(fields, d.(map[string]any)["field"].(string))
		}
		want := strings.Fields(c.fields)
		slices.Sort(fields)
		slices.Sort(want)
		if !slices.Equal(fields, want) {
			t.Errorf("%s %s %s: named %v, want %v", c.method, c.path, c.body, fields, want)
		}
	}
}

func TestWhatIsAbsentOrBelongsToOthersIsNotFound(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.create("a", daily, "")
	for _, path := range []string{"/v1/events/schedules/schedule_nope", "/v1/events/schedules/" + id} {
		who := owner
		if strings.HasSuffix(path, id) {
			who = stranger
		}
		b.call(who, "GET", path, "").want(404)
		b.call(who, "PATCH", path, `{"name":"x"}`).want(404)
		b.call(who, "DELETE", path, "").want(404)
		b.call(who, "POST", path+"/trigger", "").want(404)
		b.call(who, "GET", path+"/executions", "").want(404)
	}
	b.call("", "GET", "/v1/events/schedules", "").want(401)
	if list := b.call(stranger, "GET", "/v1/events/schedules", "").want(200); len(list.items()) != 0 {
		t.Error(list.raw)
	}
}

func TestListsArePagedAndFiltered(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for i := range 60 {
		b.clock.Advance(time.Millisecond)
		id := b.create(fmt.Sprint("s", i), daily, fmt.Sprintf(`,"tags":["t%d"]`, i%2))
		if i%10 == 0 {
			b.do("PATCH", "/v1/events/schedules/"+id, `{"status":"paused"}`).want(200)
		}
	}
	first := b.do("GET", "/v1/events/schedules", "").want(200)
	if n := len(first.items()); n != 50 || first.at("pagination.total") != 60.0 || first.at("pagination.limit") != 50.0 || first.at("pagination.hasMore") != true {
		t.Errorf("%d items, %v", n, first.at("pagination"))
	}
	keys := []string{"createdAt", "executionCount", "id", "lastExecution", "lastExecutionStatus", "name", "nextExecution", "status", "type"}
	var got []string
	for key := range first.items()[0] {
		got = append(got, key)
	}
	slices.Sort(got)
	if !slices.Equal(got, keys) {
		t.Errorf("a summary has %v, want %v", got, keys)
	}
	if first.items()[0]["name"] != "s59" {
		t.Errorf("the first item is %v, want the newest", first.items()[0]["name"])
	}
	rest := b.do("GET", "/v1/events/schedules?limit=100&offset=50", "").want(200)
	if n := len(rest.items()); n != 10 || rest.at("pagination.offset") != 50.0 || rest.at("pagination.hasMore") != false {
		t.Errorf("%d items, %v", n, rest.at("pagination"))
	}
	for query, want := range map[string]int{"status=paused": 6, "status=active": 54, "status=completed": 0, "tag=t1": 30,
		"tag=none": 0, "type=custom": 60, "type=webhook": 0, "tag=t0&status=paused": 6} {
		if n := b.do("GET", "/v1/events/schedules?"+query, "").want(200).at("pagination.total"); n != float64(want) {
			t.Errorf("%s: %v, want %d", query, n, want)
		}
	}
}

func TestCallsCanBeRepeatedWithAKey(t *testing.T) {
	t.Parallel()
	b := setup(t)
	body := `{"name":"a","type":"custom","schedule":` + daily + `}`
	first := b.do("POST", "/v1/events/schedules", body, "Idempotency-Key", "k1").want(201).text("id")
	if again := b.do("POST", "/v1/events/schedules", body, "Idempotency-Key", "k1").want(201); again.text("id") != first || again.header.Get(idempotency.ReplayedHeader) != "true" {
		t.Errorf("a second schedule %s", again.raw)
	}
	other := `{"name":"b","type":"custom","schedule":` + daily + `}`
	if reused := b.do("POST", "/v1/events/schedules", other, "Idempotency-Key", "k1").want(422).text("error.code"); reused != "idempotency_key_reused" {
		t.Errorf("another body with the key: %s", reused)
	}
	path := "/v1/events/schedules/" + first + "/trigger"
	run := b.do("POST", path, "", "Idempotency-Key", "k2").want(202).text("executionId")
	if again := b.do("POST", path, "", "Idempotency-Key", "k2").want(202).text("executionId"); again != run {
		t.Errorf("a second execution %s", again)
	}
	if other := b.do("POST", path, "", "Idempotency-Key", "k3").want(202).text("executionId"); other == run {
		t.Error("another key is the same execution")
	}
	b.do("POST", path, "{}", "Idempotency-Key", "k2").want(422)
	b.do("POST", path, "", "Idempotency-Key", strings.Repeat("k", 256)).want(400)
	if n := len(b.executions(first, schedules.Executing)); n != 2 {
		t.Errorf("%d executions, want one for each key", n)
	}
}

func TestAnEditChecksOnlyANewAddress(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.service.CheckURL = func(context.Context, string) error { return nil }
	id := b.do("POST", "/v1/events/schedules", `{"name":"a","type":"webhook","schedule":`+daily+`,"webhook":{"url":"https://example.com/a"}}`).
		want(201).text("id")
	var asked []string
	b.service.CheckURL = func(_ context.Context, url string) error { asked = append(asked, url); return nil }
	b.do("PATCH", "/v1/events/schedules/"+id, `{"name":"b"}`).want(200)
	b.do("PATCH", "/v1/events/schedules/"+id, `{"webhook":{"url":"https://example.com/b"}}`).want(200)
	if !slices.Equal(asked, []string{"https://example.com/b"}) {
		t.Errorf("checked %v", asked)
	}
}

func TestPreview(t *testing.T) {
	t.Parallel()
	b := setup(t)
	got := b.do("POST", "/v1/events/schedules/preview", `{"schedule":{"type":"recurring","cron":"30 2 * * *","timezone":"America/New_York"},
		"from":"2016-03-13T00:00:00-05:00","count":2}`).want(200)
	if want := `{"nextExecutions":["2016-03-13T07:00:00Z","2016-03-14T06:30:00Z"],"timezone":"America/New_York"}`; strings.TrimSpace(got.raw) != want {
		t.Errorf("%s, want %s", got.raw, want)
	}
	short := b.do("POST", "/v1/events/schedules/preview", `{"cron":"@daily"}`).want(200)
	if runs, _ := short.at("nextExecutions").([]any); len(runs) != 5 || runs[0] != "2026-01-02T00:00:00Z" {
		t.Error(short.raw)
	}
	once := b.do("POST", "/v1/events/schedules/preview", `{"schedule":`+onceDay+`,"count":3}`).want(200)
	if runs, _ := once.at("nextExecutions").([]any); len(runs) != 1 {
		t.Error(once.raw)
	}
}

// What was read can be sent back: nothing changes, and its own retryPolicy is shown
// whatever its webhook's says.
func TestAScheduleThatWasReadCanBeSentBack(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.service.CheckURL = func(context.Context, string) error { return nil }
	path := "/v1/events/schedules/" + b.do("POST", "/v1/events/schedules", `{"name":"a","type":"webhook","schedule":`+daily+`,"retryPolicy":{"maxRetries":7},
		"webhook":{"url":"https://example.com/a","headers":{"X-Token":"t"},"retryPolicy":{"maxRetries":2,"initialDelaySeconds":1}}}`).want(201).text("id")
	read := b.do("GET", path, "").want(200)
	if own, hooks := read.at("retryPolicy.maxRetries"), read.at("webhook.retryPolicy.maxRetries"); own != 7.0 || hooks != 2.0 {
		t.Errorf("retryPolicy %v, webhook.retryPolicy %v", own, hooks)
	}
	sent := b.do("PATCH", path, read.raw).want(200)
	delete(read.body, "updatedAt")
	delete(sent.body, "updatedAt")
	if !reflect.DeepEqual(read.body, sent.body) {
		t.Errorf("%s became %s", read.raw, sent.raw)
	}
	b.exec(`UPDATE schedules SET status = 'completed', next_fire_at = NULL`)
	b.do("PATCH", path, b.do("GET", path, "").want(200).raw).want(200)
}
