package schedules_test

import (
	"slices"
	"testing"
	"time"

	"sluice.dev/sluice/workers/schedules"
)

func (b *bundle) status(id string) string {
	b.t.Helper()
	return b.do("GET", "/v1/events/schedules/"+id, "").want(200).text("status")
}

func (b *bundle) next(id string) string {
	b.t.Helper()
	return b.do("GET", "/v1/events/schedules/"+id, "").want(200).text("schedule.nextExecution")
}

func TestADueRunHappensOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.create("a", daily, "")
	b.clock.Advance(2*time.Hour - time.Microsecond)
	if n := b.fire(); n != 0 {
		t.Fatalf("%d runs before the time", n)
	}
	b.clock.Advance(time.Microsecond)
	if n, again := b.fire(), b.fire(); n != 1 || again != 0 {
		t.Fatalf("%d and %d runs, want 1 and 0", n, again)
	}
	if next := b.next(id); next != "2026-01-02T14:00:00Z" {
		t.Errorf("next run %s", next)
	}
	b.clock.Advance(40 * time.Millisecond)
	b.work(id)
	got := b.do("GET", "/v1/events/schedules/"+id, "").want(200)
	if got.at("executionCount") != 1.0 || got.text("lastExecution") != "2026-01-01T14:00:00Z" || got.text("lastExecutionStatus") != "success" {
		t.Error(got.raw)
	}
	record := b.records(id)[0]
	for name, want := range map[string]any{"scheduleId": id, "scheduledFor": "2026-01-01T14:00:00Z",
		"executedAt": "2026-01-01T14:00:00Z", "status": "success", "duration": 40.0, "attempts": 1.0} {
		if record[name] != want {
			t.Errorf("%s is %v, want %v", name, record[name], want)
		}
	}
}

func TestAOneTimeScheduleIsCompletedByItsRun(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.create("a", onceDay, "")
	b.clock.Advance(24 * time.Hour)
	if n := b.fire(); n != 1 || b.status(id) != schedules.Completed || b.next(id) != "" {
		t.Fatalf("%d runs, status %s, next %q", n, b.status(id), b.next(id))
	}
	path := "/v1/events/schedules/" + id
	b.do("POST", path+"/trigger", "").want(409)
	b.do("PATCH", path, `{"status":"paused"}`).want(409)
	b.do("PATCH", path, `{"status":"active"}`).want(400)
	b.do("PATCH", path, `{"name":"renamed"}`).want(200)
	if got := b.do("PATCH", path, `{"executeAt":"2026-02-01T00:00:00Z"}`).want(200); got.text("status") != schedules.Active {
		t.Errorf("with a new time it is %s", got.text("status"))
	}
}

func TestTheEndDateCompletes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.create("a", `{"type":"recurring","cron":"0 * * * *","startDate":"2026-01-02","endDate":"2026-01-02"}`, "")
	if next := b.next(id); next != "2026-01-02T00:00:00Z" {
		t.Errorf("the first run is at %s", next)
	}
	runs := 0
	for range 60 {
		b.clock.Advance(time.Hour)
		runs += b.fire()
		b.work(id)
	}
	if runs != 24 || b.status(id) != schedules.Completed {
		t.Errorf("%d runs, status %s", runs, b.status(id))
	}
}

func TestPausedTimeIsNotMissedTime(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.create("a", daily, `,"catchUpPolicy":"all"`)
	path := "/v1/events/schedules/" + id
	if got := b.do("PATCH", path, `{"status":"paused"}`).want(200); got.at("schedule.nextExecution") != nil {
		t.Error(got.raw)
	}
	b.clock.Advance(72 * time.Hour)
	if n := b.fire(); n != 0 {
		t.Errorf("%d runs while paused", n)
	}
	if got := b.do("PATCH", path, `{"status":"active"}`).want(200); got.text("schedule.nextExecution") != "2026-01-04T14:00:00Z" {
		t.Error(got.raw)
	}
	if n := b.fire(); n != 0 {
		t.Errorf("%d runs caught up on after the pause", n)
	}
}

func TestEditingNeverFiresAndRenamingKeepsTheTime(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.create("a", daily, "")
	path := "/v1/events/schedules/" + id
	b.clock.Advance(3 * time.Hour) // a run is due, and no worker was there
	if got := b.do("PATCH", path, `{"name":"b"}`).want(200); got.text("schedule.nextExecution") != "2026-01-01T14:00:00Z" {
		t.Errorf("renaming lost a due run: %s", got.raw)
	}
	if n := b.fire(); n != 1 {
		t.Errorf("%d runs", n)
	}
	b.work(id)
	if got := b.do("PATCH", path, `{"cron":"* * * * *"}`).want(200); got.text("schedule.nextExecution") != "2026-01-01T15:01:00Z" {
		t.Error(got.raw)
	}
	if n := b.fire(); n != 0 {
		t.Errorf("an edit fired %d runs", n)
	}
}

func TestTriggerLeavesTheNextRunAlone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.create("a", daily, "")
	path := "/v1/events/schedules/" + id
	before := b.next(id)
	got := b.do("POST", path+"/trigger", "").want(202)
	if got.text("id") != id || got.text("status") != "executing" || got.text("message") == "" {
		t.Error(got.raw)
	}
	if len(b.records(id)) != 0 {
		t.Error("an execution that has not ended is listed")
	}
	if open := b.do("GET", path+"/executions?status=executing", "").want(200).items(); len(open) != 1 {
		t.Errorf("%d executions under way", len(open))
	}
	b.work(id)
	record := b.records(id)[0]
	if record["executionId"] != got.text("executionId") || record["scheduledFor"] != nil || record["status"] != "success" || b.next(id) != before {
		t.Errorf("%v, next %s", record, b.next(id))
	}
	b.do("PATCH", path, `{"status":"paused"}`).want(200)
	b.do("POST", path+"/trigger", "").want(202)
	if b.work(id); len(b.records(id)) != 2 || b.status(id) != schedules.Paused {
		t.Errorf("%d records, status %s", len(b.records(id)), b.status(id))
	}
}

func TestOverlap(t *testing.T) {
	t.Parallel()
	const minutely = `{"type":"recurring","cron":"* * * * *"}`
	for policy, want := range map[string][]int{ // executing, waiting and skipped after three runs, none of which has ended
		"skip": {1, 0, 2}, "queue": {1, 2, 0}, "allow": {3, 0, 0},
	} {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			id := b.create("a", minutely, `,"overlapPolicy":"`+policy+`"`)
			for range 3 {
				b.clock.Advance(time.Minute)
				b.fire()
			}
			count := func(status string) int { return len(b.executions(id, status)) }
			if got := []int{count("executing"), count("waiting"), count("skipped")}; !slices.Equal(got, want) {
				t.Fatalf("%v, want %v", got, want)
			}
			for range 3 {
				b.work(id)
			}
			if done := count("success"); done != want[0]+want[1] {
				t.Errorf("%d runs in the end, want %d", done, want[0]+want[1])
			}
		})
	}
}

func TestAPauseDropsRunsThatWait(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.create("a", `{"type":"recurring","cron":"* * * * *"}`, `,"overlapPolicy":"queue"`)
	for range 3 {
		b.clock.Advance(time.Minute)
		b.fire()
	}
	b.do("PATCH", "/v1/events/schedules/"+id, `{"status":"paused"}`).want(200)
	b.work(id)
	if done, open, dropped := b.executions(id, "success"), b.executions(id, "executing", "waiting"), b.executions(id, "skipped"); len(done) != 1 ||
		len(open) != 0 || len(dropped) != 2 {
		t.Errorf("done %v, open %v, dropped %v", done, open, dropped)
	}
}

func TestCatchUpAfterDowntime(t *testing.T) {
	t.Parallel()
	const hourly = `{"type":"recurring","cron":"0 * * * *"}`
	for more, want := range map[string][]int{ // successes and skips after a day without workers
		`,"catchUpPolicy":"skip"`:                 {0, 1},
		`,"catchUpPolicy":"last"`:                 {1, 0},
		`,"catchUpPolicy":"all"`:                  {10, 0},
		`,"catchUpPolicy":"all","maxCatchUp":3`:   {3, 0},
		`,"catchUpPolicy":"all","maxCatchUp":100`: {24, 0},
	} {
		b := setup(t)
		id := b.create("a", hourly, more)
		b.clock.Advance(24*time.Hour + 30*time.Minute)
		b.fire()
		for len(b.executions(id, "executing")) > 0 {
			b.work(id)
		}
		if got := []int{len(b.executions(id, "success")), len(b.executions(id, "skipped"))}; !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", more, got, want)
		}
		if next := b.next(id); next != "2026-01-02T13:00:00Z" {
			t.Errorf("%s: next run %s", more, next)
		}
	}
}

func TestHistoryIsFilteredAndPruned(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.create("a", `{"type":"recurring","cron":"0 * * * *"}`, "")
	path := "/v1/events/schedules/" + id + "/executions"
	for range 60 {
		b.clock.Advance(time.Hour)
		b.fire()
		b.work(id)
	}
	first := b.do("GET", path, "").want(200)
	if len(first.items()) != 50 || first.at("pagination.total") != 60.0 || first.at("pagination.hasMore") != true {
		t.Errorf("%d items, %v", len(first.items()), first.at("pagination"))
	}
	for query, want := range map[string]float64{
		"?status=success": 60, "?status=failed": 0, "?startDate=2026-01-02T00:00:00Z&endDate=2026-01-02T23:59:59Z": 24,
		"?startDate=2026-01-03": 25, "?endDate=2026-01-01T13:00:00%2B01:00": 0, "?endDate=2026-01-01T13:00:00Z": 1,
	} {
		if got := b.do("GET", path+query, "").want(200).at("pagination.total"); got != want {
			t.Errorf("%s: %v, want %v", query, got, want)
		}
	}
	b.clock.Advance(29 * 24 * time.Hour) // the first run is 31 days and 11 hours old, the last 29 days
	for {
		n, err := b.service.Prune(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			break
		}
	}
	if left := b.do("GET", path, "").want(200).at("pagination.total"); left != 25.0 {
		t.Errorf("%v executions are left", left)
	}
}

func TestEventsOfAnAccount(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.create("a", `{"type":"recurring","cron":"* * * * *"}`, `,"action":{"streamId":"strm_1","action":"start"}`)
	b.streams.errs = []error{notFound}
	for range 2 {
		b.clock.Advance(time.Minute)
		b.fire()
		b.work(id)
	}
	for query, want := range map[string][]string{
		"":                              {"schedule.executed", "schedule.custom", "schedule.failed"},
		"?type=error":                   {"schedule.failed"},
		"?type=schedule.executed":       {"schedule.executed"},
		"?type=schedule.*":              {"schedule.executed", "schedule.custom", "schedule.failed"},
		"?type=stream.*":                nil,
		"?type=schedule.failed&limit=1": {"schedule.failed"},
		"?since=2026-01-01T12:02:00Z":   {"schedule.executed", "schedule.custom"},
		"?type=error&since=2026-01-02":  nil,
	} {
		var got []string
		for _, item := range b.do("GET", "/v1/events"+query, "").want(200).items() {
			got = append(got, item["type"].(string))
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", query, got, want)
		}
	}
	short := b.do("GET", "/v1/events?limit=2", "").want(200)
	if len(short.items()) != 2 || short.at("pagination.has_more") != true {
		t.Error(short.raw)
	}
	failed := b.do("GET", "/v1/events?type=error&limit=1", "").want(200).items()[0]
	if failed["error_code"] != "not_found" || failed["stream_id"] != "strm_1" || failed["created_at"] == "" || failed["id"] == "" {
		t.Errorf("%v", failed)
	}
	if list := b.call(stranger, "GET", "/v1/events", "").want(200).items(); len(list) != 0 {
		t.Errorf("a stranger sees %v", list)
	}
}
