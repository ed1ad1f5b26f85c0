package schedules_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/workers/schedules"
)

var (
	notFound = apierror.Errorf(decision.NotFound, "There is no such stream.")
	away     = apierror.Errorf(decision.BadGateway, "The product did not answer.")
)

// receiver is a customer's endpoint that answers with the given statuses in
// turn, the last one for ever.
func receiver(t *testing.T, seen func(*http.Request, string), statuses ...int) *httptest.Server {
	t.Helper()
	var calls atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		seen(r, string(body))
		w.WriteHeader(statuses[min(int(calls.Add(1)), len(statuses))-1])
	}))
	t.Cleanup(s.Close)
	return s
}

// createWith makes a schedule of a type with the given parts, due in a minute,
// and fires it.
func (b *bundle) createWith(kind, parts string) string {
	b.t.Helper()
	id := b.do("POST", "/v1/events/schedules", `{"name":"x","type":"`+kind+`","schedule":{"type":"recurring","cron":"1 12 * * *"},`+parts+`}`).
		want(201).text("id")
	b.clock.Advance(time.Minute)
	b.fire()
	return id
}

func logsOf(record map[string]any) string {
	var lines []string
	for _, line := range record["logs"].([]any) {
		lines = append(lines, line.(string))
	}
	return strings.Join(lines, "\n")
}

func TestStreamActions(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.createWith("stream_start", `"action":{"streamId":"strm_1","action":"start","settings":{"quality":"720p"}}`)
	b.work(id)
	if len(b.streams.acts) != 1 || b.streams.acts[0] != owner+" pro strm_1 start 720p" {
		t.Errorf("the product was asked %q", b.streams.acts)
	}
	record := b.records(id)[0]
	result := record["result"].(map[string]any)
	if record["status"] != "success" || result["streamId"] != "strm_1" || result["action"] != "started" || result["message"] != "Stream started" || record["webhook"] != nil {
		t.Errorf("%v", record)
	}
}

func TestWhatTheProductRefusesIsNotTriedAgain(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.streams.errs = []error{notFound}
	id := b.createWith("stream_start", `"action":{"streamId":"strm_1","action":"stop"}`)
	if again := b.work(id); again != 0 {
		t.Errorf("tried again in %v", again)
	}
	record := b.records(id)[0]
	if record["status"] != "failed" || record["result"].(map[string]any)["message"] != "There is no such stream." || record["attempts"] != 1.0 {
		t.Errorf("%v", record)
	}
	if got := b.do("GET", "/v1/events/schedules/"+id, ""); got.text("lastExecutionStatus") != "failed" || got.at("executionCount") != 1.0 {
		t.Error(got.raw)
	}
}

func TestRetriesFollowThePolicy(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.streams.errs = []error{away, away, away, away}
	id := b.createWith("stream_start", `"action":{"streamId":"strm_1","action":"start"},
		"retryPolicy":{"maxRetries":3,"backoffMultiplier":3,"initialDelaySeconds":10}`)
	for i, want := range []time.Duration{10 * time.Second, 30 * time.Second, 90 * time.Second, 0} {
		again := b.work(id)
		if again != want {
			t.Fatalf("after attempt %d: again in %v, want %v", i+1, again, want)
		}
		if early := b.work(id); again > 0 && early != again {
			t.Fatalf("a job that comes early waits %v, want %v", early, again)
		}
		b.clock.Advance(again)
	}
	record := b.records(id)[0]
	if record["status"] != "failed" || record["attempts"] != 4.0 || record["duration"] != 130_000.0 || len(b.streams.acts) != 4 {
		t.Errorf("%v, %d calls", record, len(b.streams.acts))
	}
	for _, line := range []string{"2026-01-01T12:01:00.000Z attempt 1 started", "12:01:10.000Z attempt 2", "attempt 4 started", "failed after 4"} {
		if !strings.Contains(logsOf(record), line) {
			t.Errorf("%q is missing in\n%s", line, logsOf(record))
		}
	}
}

func TestWebhookCalls(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var got *http.Request
	var body string
	s := receiver(t, func(r *http.Request, payload string) { got, body = r, payload }, 202)
	id := b.createWith("webhook", `"webhook":{"url":"`+s.URL+`/hook","headers":{"Authorization":"Bearer secret"},
		"payload":{"eventName":"go","customData":{"b":1,"a":[2]}}}`)
	b.work(id)
	record := b.records(id)[0]
	if body != `{"eventName":"go","customData":{"b":1,"a":[2]}}` || got.Header.Get("Authorization") != "Bearer secret" ||
		got.Header.Get("Content-Type") != "application/json" || got.Header.Get("Idempotency-Key") != record["executionId"] || got.URL.Path != "/hook" {
		t.Errorf("the receiver got %s %v", body, got.Header)
	}
	hook := record["webhook"].(map[string]any)
	if record["status"] != "success" || hook["status"] != 202.0 || hook["responseTime"] == nil || hook["payload"].(map[string]any)["eventName"] != "go" {
		t.Errorf("%v", record)
	}
	if strings.Contains(logsOf(record), "secret") || strings.Contains(logsOf(record), s.URL) {
		t.Errorf("the logs tell too much:\n%s", logsOf(record))
	}
}

func TestAFailedCallIsRepeatedWithoutTheAction(t *testing.T) {
	t.Parallel()
	b := setup(t)
	calls := 0
	s := receiver(t, func(*http.Request, string) { calls++ }, 500, 307, 200)
	id := b.createWith("stream_start", `"action":{"streamId":"strm_1","action":"start"},"webhook":{"url":"`+s.URL+`","retryPolicy":{"maxRetries":2}}`)
	for range 3 {
		b.clock.Advance(b.work(id))
	}
	record := b.records(id)[0]
	if record["status"] != "success" || calls != 3 || len(b.streams.acts) != 1 || record["result"].(map[string]any)["action"] != "started" {
		t.Errorf("%v, %d calls, %d actions", record, calls, len(b.streams.acts))
	}
}

func TestAGoneReceiverIsNotAskedAgain(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s := receiver(t, func(*http.Request, string) {}, 410)
	id := b.createWith("webhook", `"webhook":{"url":"`+s.URL+`"}`)
	if again := b.work(id); again != 0 || b.records(id)[0]["status"] != "failed" {
		t.Errorf("again in %v, %v", again, b.records(id))
	}
	failed := b.do("GET", "/v1/events?type=error", "").want(200).items()
	if len(failed) != 1 || failed[0]["type"] != "schedule.failed" || failed[0]["error_code"] != "WEBHOOK_001" {
		t.Errorf("%v", failed)
	}
}

func TestCustomSchedulesEmitAnEvent(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.createWith("custom", `"webhook":{"payload":{"eventName":"nightly","customData":{"a":1}}}`)
	b.work(id)
	events := b.do("GET", "/v1/events?type=schedule.custom", "").want(200).items()
	if len(events) != 1 {
		t.Fatalf("%d events", len(events))
	}
	data := events[0]["data"].(map[string]any)
	if data["schedule_id"] != id || data["event_name"] != "nightly" || data["custom_data"].(map[string]any)["a"] != 1.0 {
		t.Errorf("%v", data)
	}
}

func TestALostWorkerIsReplaced(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.createWith("stream_start", `"action":{"streamId":"strm_1","action":"start"},"retryPolicy":{"maxRetries":0}`)
	execution := b.executions(id, schedules.Executing)[0]
	lost, _, err := b.service.Begin(t.Context(), execution)
	if err != nil || lost == nil {
		t.Fatal(lost, err)
	}
	if other, due, err := b.service.Begin(t.Context(), execution); other != nil || !due.IsZero() || err != nil {
		t.Errorf("somebody else got it too: %v %v %v", other, due, err)
	}
	b.clock.Advance(schedules.Lease)
	if n, err := b.service.TakeOver(t.Context()); n != 0 || err != nil {
		t.Errorf("%d taken over within the lease, %v", n, err)
	}
	b.clock.Advance(time.Millisecond)
	if n, err := b.service.TakeOver(t.Context()); n != 1 || err != nil {
		t.Errorf("%d taken over, %v", n, err)
	}
	if err := b.service.Finish(t.Context(), *lost, schedules.Outcome{Status: schedules.Failed}); err != nil {
		t.Fatal(err)
	}
	b.work(id)
	if err := b.service.Finish(t.Context(), *lost, schedules.Outcome{Status: schedules.Failed}); err != nil {
		t.Fatal(err)
	}
	records := b.records(id)
	if len(records) != 1 || records[0]["status"] != "success" || records[0]["attempts"] != 2.0 ||
		!strings.Contains(logsOf(records[0]), "the worker was lost") || !strings.Contains(logsOf(records[0]), "cut short") {
		t.Errorf("%v", records)
	}
	if count := b.do("GET", "/v1/events/schedules/"+id, "").at("executionCount"); count != 1.0 {
		t.Errorf("executionCount %v", count)
	}
}

func TestAnExecutionThatNobodyPickedUpGetsAnotherJob(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.createWith("custom", `"tags":[]`)
	jobs := func() (n int) {
		if err := b.pool.QueryRow(t.Context(), `SELECT count(*) FROM river_job WHERE kind = 'schedule_execution' AND queue = 'schedules'`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	for want := 1; want < 4; want++ {
		if jobs() != want {
			t.Errorf("%d jobs, want %d", jobs(), want)
		}
		b.clock.Advance(11 * time.Second)
		if n, err := b.service.TakeOver(t.Context()); n != 1 || err != nil {
			t.Errorf("%d taken over, %v", n, err)
		}
	}
}

// TestABusyQueueGetsNoSecondJobs holds that a backlog does not feed itself; an
// execution that was begun is taken over all the same.
func TestABusyQueueGetsNoSecondJobs(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.createWith("custom", `"tags":[]`)
	b.exec(`UPDATE river_job SET scheduled_at = now() - interval '1 minute'`)
	b.clock.Advance(time.Minute)
	if n, err := b.service.TakeOver(t.Context()); n != 0 || err != nil {
		t.Errorf("%d taken over, %v", n, err)
	}
	if held, _, err := b.service.Begin(t.Context(), b.executions(id, schedules.Executing)[0]); held == nil || err != nil {
		t.Fatal(held, err)
	}
	b.clock.Advance(time.Minute)
	if n, err := b.service.TakeOver(t.Context()); n != 1 || err != nil {
		t.Errorf("%d taken over, %v", n, err)
	}
}

func TestADeletedScheduleEndsQuietly(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.createWith("custom", `"tags":[]`)
	execution := b.executions(id, schedules.Executing)[0]
	held, _, err := b.service.Begin(t.Context(), execution)
	if err != nil || held == nil {
		t.Fatal(held, err)
	}
	b.do("DELETE", "/v1/events/schedules/"+id, "").want(204)
	if err := b.service.Finish(t.Context(), *held, schedules.Outcome{Status: schedules.Success}); err != nil {
		t.Error(err)
	}
	if again, err := b.runner.Run(t.Context(), execution); again != 0 || err != nil {
		t.Error(again, err)
	}
	b.do("GET", "/v1/events/schedules/"+id+"/executions", "").want(404)
}

// deadlockedDB breaks the first deletions as a deadlock does.
type deadlockedDB struct {
	*pgxpool.Pool
	broken int
}

func (d *deadlockedDB) Begin(ctx context.Context) (pgx.Tx, error) {
	if d.broken > 0 {
		d.broken--
		return nil, &pgconn.PgError{Code: "40P01"}
	}
	return d.Pool.Begin(ctx)
}

func TestADeletionOutlivesDeadlocks(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.create("a", daily, "")
	b.service.DB = &deadlockedDB{b.pool, 2}
	b.do("DELETE", "/v1/events/schedules/"+id, "").want(204)
	b.service.DB = &deadlockedDB{b.pool, 3}
	b.do("DELETE", "/v1/events/schedules/"+id, "").want(500)
}

// TestARunIsMadeOnlyOnce holds the last guard: a schedule that is set back to a
// time it has had makes no second execution.
func TestARunIsMadeOnlyOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.createWith("custom", `"tags":[]`)
	b.work(id)
	b.exec(`UPDATE schedules SET next_fire_at = '2026-01-01T12:01:00Z' WHERE id = $1`, id)
	if n := b.fire(); n != 0 || len(b.records(id)) != 1 {
		t.Errorf("%d started, %d records", n, len(b.records(id)))
	}
}

// TestOneBadScheduleDoesNotStopTheOthers plants a definition that no version
// could have stored.
func TestOneBadScheduleDoesNotStopTheOthers(t *testing.T) {
	t.Parallel()
	b := setup(t)
	bad := b.create("bad", `{"type":"recurring","cron":"1 12 * * *"}`, "")
	b.exec(`UPDATE schedules SET definition = '{"name":"bad","type":"custom","catchUpPolicy":"last","overlapPolicy":"skip","schedule":{"type":"recurring","cron":"gone","timezone":"Mars"}}' WHERE id = $1`, bad)
	good := b.createWith("custom", `"tags":[]`)
	if done := b.executions(good, schedules.Executing); len(done) != 1 || b.status(bad) != schedules.Active {
		t.Errorf("the good one has %v, the bad one is %s", done, b.status(bad))
	}
}
