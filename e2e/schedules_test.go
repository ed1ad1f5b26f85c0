package e2e

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

type schedule struct {
	ID, Name, Type, Status string
	Schedule               struct{ NextExecution *time.Time }
	ExecutionCount         int
	LastExecutionStatus    *string
}

type execution struct {
	ExecutionID, Status string
	Result              struct{ StreamID, Action, Message string }
	Logs                []string
}

// events is an address of the Events API.
func (s *stack) events(path string) string { return s.url("/v1/events" + path) }

// awaitExecution returns the schedule's first execution that has ended. The
// worker is another process: the API is asked again and again.
func (s *stack) awaitExecution(t testing.TB, key, id string) execution {
	t.Helper()
	deadline := time.After(patience)
	for {
		r := call(t, http.MethodGet, s.events("/schedules/"+id+"/executions"), key, nil)
		wantStatus(t, r, http.StatusOK)
		if list := into[struct{ Data []execution }](t, r).Data; len(list) > 0 {
			return list[0]
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-deadline:
			t.Fatalf("schedule %s is not executed", id)
		}
	}
}

// soon is when a schedule is due once: late enough for a busy machine to store it
// before, since a time in the past is refused.
func soon() map[string]any {
	return map[string]any{"type": "one_time", "executeAt": time.Now().Add(4 * time.Second).UTC().Format(time.RFC3339Nano)}
}

func (s *stack) createSchedule(t testing.TB, key, name, stream, action string, timing map[string]any) schedule {
	t.Helper()
	r := call(t, http.MethodPost, s.events("/schedules"), key, map[string]any{
		"name": name, "type": "stream_start", "schedule": timing, "action": map[string]any{"streamId": stream, "action": action},
	})
	wantStatus(t, r, http.StatusCreated)
	wantHeaders(t, r)
	return into[schedule](t, r)
}

// A schedule starts a stream at its time, and a trigger of another one stops it.
func TestASchedulesStreamGoesLiveAndEnds(t *testing.T) {
	t.Parallel()
	s := theStack(t)
	key := s.dev["SLUICE_API_KEY"]
	stream := s.createStream(t, key, "scheduled")
	start := s.createSchedule(t, key, t.Name()+" start", stream.ID, "start", soon())
	if !strings.HasPrefix(start.ID, "schedule_") || start.Status != "active" || start.Schedule.NextExecution == nil || start.ExecutionCount != 0 {
		t.Fatalf("%+v", start)
	}
	done := s.awaitExecution(t, key, start.ID)
	if done.Status != "success" || done.Result.StreamID != stream.ID || done.Result.Action != "started" || len(done.Logs) == 0 {
		t.Fatalf("%+v", done)
	}
	s.wantStream(t, key, stream.ID, "live")
	r := call(t, http.MethodGet, s.events("/schedules/"+start.ID), key, nil)
	if got := into[schedule](t, r); got.Status != "completed" || got.ExecutionCount != 1 || *got.LastExecutionStatus != "success" {
		t.Fatalf("%s", r.body)
	}
	stop := s.createSchedule(t, key, t.Name()+" stop", stream.ID, "stop", map[string]any{
		"type": "recurring", "cron": "0 0 1 1 *", "timezone": "Europe/Berlin"})
	r = call(t, http.MethodPost, s.events("/schedules/"+stop.ID+"/trigger"), key, nil)
	wantStatus(t, r, http.StatusAccepted)
	triggered := into[struct{ ID, Status, ExecutionID, Message string }](t, r)
	if triggered.ID != stop.ID || triggered.Status != "executing" || s.awaitExecution(t, key, stop.ID).ExecutionID != triggered.ExecutionID {
		t.Fatalf("%+v", triggered)
	}
	s.wantStream(t, key, stream.ID, "ended", "idle")
	wantStatus(t, call(t, http.MethodDelete, s.events("/schedules/"+stop.ID), key, nil), http.StatusNoContent)
	wantError(t, call(t, http.MethodGet, s.events("/schedules/"+stop.ID), key, nil), 404, "not_found")
}

// wantStream fails unless the stream has one of the statuses.
func (s *stack) wantStream(t testing.TB, key, id string, statuses ...string) {
	t.Helper()
	r := call(t, http.MethodGet, s.url("/v1/streams/"+id), key, nil)
	wantStatus(t, r, http.StatusOK)
	got := into[stream](t, r).Status
	for _, want := range statuses {
		if got == want {
			return
		}
	}
	t.Fatalf("the stream is %s, want %v", got, statuses)
}

// A run that fails is among the account's errors.
func TestAFailedRunIsAnEvent(t *testing.T) {
	t.Parallel()
	s := theStack(t)
	key := s.dev["SLUICE_API_KEY"]
	made := s.createSchedule(t, key, t.Name(), "strm_00000000000000000000", "start", map[string]any{"type": "recurring", "cron": "@yearly"})
	wantStatus(t, call(t, http.MethodPost, s.events("/schedules/"+made.ID+"/trigger"), key, nil), http.StatusAccepted)
	if done := s.awaitExecution(t, key, made.ID); done.Status != "failed" || done.Result.Message == "" {
		t.Fatalf("%+v", done)
	}
	r := call(t, http.MethodGet, s.events("?type=error&limit=100"), key, nil)
	wantStatus(t, r, http.StatusOK)
	for _, e := range into[struct {
		Data []struct {
			Type string
			Code string         `json:"error_code"`
			Data map[string]any `json:"data"`
		}
	}](t, r).Data {
		if e.Type == "schedule.failed" && e.Code == "not_found" && e.Data["schedule_id"] == made.ID {
			return
		}
	}
	t.Fatalf("no schedule.failed of %s: %s", made.ID, r.body)
}

// What the edge and the service refuse, with the platform's codes.
func TestRefusalsOfTheEventsAPI(t *testing.T) {
	t.Parallel()
	s := theStack(t)
	key := s.dev["SLUICE_API_KEY"]
	reader, _ := s.newKey(t, "schedules:read")
	wantError(t, call(t, http.MethodGet, s.events("/schedules"), "", nil), 401, "authentication_required")
	wantError(t, call(t, http.MethodPost, s.events("/schedules"), reader, map[string]any{}), 403, "AUTH_002")
	wantStatus(t, call(t, http.MethodGet, s.events("/schedules"), reader, nil), http.StatusOK)
	bad := call(t, http.MethodPost, s.events("/schedules"), key, map[string]any{"name": "n", "type": "webhook",
		"schedule": map[string]any{"type": "recurring", "cron": "0 0 30 2 *", "timezone": "Mars"}, "webhook": map[string]any{"url": "https://127.0.0.1/"}})
	wantError(t, bad, 400, "invalid_request")
	fields := map[string]bool{}
	for _, d := range into[envelope](t, bad).Error.Details {
		fields[d.Field] = true
	}
	if !fields["schedule.cron"] || !fields["schedule.timezone"] || !fields["webhook.url"] {
		t.Errorf("%v: %s", fields, bad.body)
	}
	timing := map[string]any{"type": "recurring", "cron": "@yearly"}
	s.createSchedule(t, key, t.Name(), "strm_1", "start", timing)
	twice := call(t, http.MethodPost, s.events("/schedules"), key, map[string]any{"name": t.Name(), "type": "custom", "schedule": timing})
	wantError(t, twice, 409, "conflict")
	preview := call(t, http.MethodPost, s.events("/schedules/preview"), reader, map[string]any{"cron": "0 12 * * *", "from": "2026-01-01T00:00:00Z", "count": 1})
	wantStatus(t, preview, http.StatusOK)
	if !strings.Contains(preview.body, `"2026-01-01T12:00:00Z"`) {
		t.Error(preview.body)
	}
	if limit := number(t, preview, "X-RateLimit-Limit"); limit != 5000 {
		t.Errorf("the Events API allows %d requests a minute", limit)
	}
}
