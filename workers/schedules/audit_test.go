package schedules_test

import (
	"slices"
	"strings"
	"testing"

	"sluice.dev/sluice/platform/http/paging"
	"sluice.dev/sluice/platform/storage/audit"
)

const withToken = `"type":"webhook","webhook":{"url":"https://8.8.8.8/hook","headers":{"Authorization":"Bearer hush-hush","X-Kind":"a"},"payload":{"eventName":"e","customData":{"k":"in the payload"}}}`

// The headers of a webhook are often tokens: they are shown to nobody, and what was
// shown can be sent back.
func TestHeadersAreNotShown(t *testing.T) {
	t.Parallel()
	b := setup(t)
	made := b.do("POST", "/v1/events/schedules", `{"name":"a","schedule":`+daily+`,`+withToken+`}`).want(201)
	path := "/v1/events/schedules/" + made.text("id")
	stored := func(want string) {
		t.Helper()
		execution := b.do("POST", path+"/trigger", "").want(202).text("executionId")
		attempt, _, err := b.service.Begin(t.Context(), execution)
		if err != nil || attempt.Unreadable || attempt.Definition.Webhook.Headers["Authorization"] != want {
			t.Errorf("stored %+v, want %q: %v", attempt, want, err)
		}
	}
	for _, c := range []struct{ method, body, stored string }{
		{"GET", "", "Bearer hush-hush"},
		{"PATCH", `{"description":"d"}`, "Bearer hush-hush"},
		{"PATCH", `{"webhook":{"headers":{"Authorization":"***","X-Kind":"***"}}}`, "Bearer hush-hush"},
		{"PATCH", `{"webhook":{"headers":{"Authorization":"Bearer hush-hush-2"}}}`, "Bearer hush-hush-2"},
		{"PATCH", `{"webhook":{"headers":{"Authorization":null}}}`, ""},
	} {
		got := b.do(c.method, path, c.body).want(200)
		if strings.Contains(got.raw, "hush") || got.at("webhook.headers.X-Kind") != "***" {
			t.Errorf("%s %s: %s", c.method, c.body, got.raw)
		}
		stored(c.stored)
	}
	if strings.Contains(made.raw, "hush") {
		t.Error(made.raw)
	}
}

// Every change of a schedule is in the audit log, without what is secret in it.
func TestChangesOfSchedulesAreAudited(t *testing.T) {
	t.Parallel()
	b := setup(t)
	id := b.do("POST", "/v1/events/schedules", `{"name":"a","schedule":`+daily+`,`+withToken+`}`, "Idempotency-Key", "k").want(201).text("id")
	path := "/v1/events/schedules/" + id
	b.do("POST", "/v1/events/schedules", `{"name":"a","schedule":`+daily+`,`+withToken+`}`, "Idempotency-Key", "k").want(201)
	b.do("POST", "/v1/events/schedules", `{"name":"a","schedule":`+daily+`,`+withToken+`}`).want(409)
	b.do("PATCH", path, `{"webhook":{"headers":{"Authorization":"Bearer hush-hush-2"}}}`).want(200)
	b.do("PATCH", path, `{"status":"paused"}`).want(200)
	for range 2 {
		b.do("POST", path+"/trigger", "", "Idempotency-Key", "t").want(202)
	}
	b.do("DELETE", path, "").want(204)
	b.do("DELETE", path, "").want(404)
	list, _, err := paging.Rows(audit.Read(t.Context(), b.pool, audit.Filter{Target: id}, paging.Page{Limit: 100}))
	if err != nil {
		t.Fatal(err)
	}
	var actions []string
	for _, e := range list {
		actions = append(actions, e.Action)
		if e.Account == nil || e.Actor == audit.System || strings.Contains(string(e.Before)+string(e.After), "hush") || strings.Contains(string(e.After), "in the payload") {
			t.Errorf("%+v %s %s", e, e.Before, e.After)
		}
	}
	if want := []string{"schedule.delete", "schedule.trigger", "schedule.update", "schedule.update", "schedule.create"}; !slices.Equal(actions, want) {
		t.Errorf("%q, want %q", actions, want)
	}
}
