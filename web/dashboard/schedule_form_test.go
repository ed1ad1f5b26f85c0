package dashboard

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/controlplane/accounts"
	"sluice.dev/sluice/platform/http/paging"
	"sluice.dev/sluice/workers/schedules"
	"sluice.dev/sluice/workers/schedules/definition"
)

// The five next runs are shown before a schedule is created, by the clock of its zone,
// over a change to summer time too.
func TestPreviewOfRuns(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.Now = func() time.Time { return time.Date(2027, 3, 26, 12, 0, 0, 0, time.UTC) }
	b.serve()
	v, page := b.person(t, "", "o@example.com", accounts.Owner), Root+"/schedules/new"
	got := v.send(t, page, page, "do", "preview", "name", "kept", "type", "custom", "when", "recurring", "cron", "30 9 * * *", "timezone", "Europe/Berlin")
	for _, want := range []string{"Sat 2027-03-27 09:30:00 CET", "2027-03-27 08:30:00 UTC", "Sun 2027-03-28 09:30:00 CEST", "2027-03-28 07:30:00 UTC", "Wed 2027-03-31", "Nothing is saved yet", `value="kept"`} {
		if !strings.Contains(got.body, want) {
			t.Errorf("no %s in %s", want, got.body)
		}
	}
	if strings.Contains(got.body, "2027-04-01") {
		t.Error("there are more than five")
	}
	got = v.send(t, page, page, "do", "preview", "type", "custom", "when", "recurring", "cron", "61 9 * * *", "timezone", "Mars")
	if !strings.Contains(got.body, "<code>schedule.cron</code>") || !strings.Contains(got.body, "<code>schedule.timezone</code>") || strings.Contains(got.body, "The next runs</h2>") {
		t.Error(got.body)
	}
	if list := v.get(Root + "/schedules").body; strings.Contains(list, "kept") {
		t.Error("a preview has created a schedule")
	}
}

// A schedule is created with everything that the form has, and what the form does not
// show of it survives an edit.
func TestCreatingSchedules(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v, page := b.operator(t), Root+"/schedules/new"
	typed := []string{"name", "nightly", "type", "webhook", "when", "recurring", "cron", "0 3 * * *", "timezone", "Asia/Tokyo", "url", "http://127.0.0.1:9/x",
		"headers", "Authorization: Bearer secret-of-headers\r\nX-One: 1", "payload", `{"eventName":"go","customData":{"big":12345678901234567890,"gone":1}}`,
		"late", "all", "overlapping", "allow", "tags", "a, b", "description", "each night", "action", "start"}
	made := v.send(t, page, page, typed...)
	if made.Code != 303 {
		t.Fatal(made.Code, made.body)
	}
	list, _, err := paging.Rows(b.Config.Schedules.Page(t.Context(), b.seeded.Account, schedules.Filter{}, paging.Page{Limit: 5}))
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	one := list[0]
	edit := Root + "/schedules/" + one.ID + "/edit"
	shown := v.get(edit).body
	if strings.Contains(shown, "secret-of-headers") || !strings.Contains(shown, "Authorization: "+definition.Mask+"\nX-One: "+definition.Mask) || !strings.Contains(shown, "12345678901234567890") {
		t.Error(shown)
	}
	changed := append([]string{}, typed...)
	for i, text := range changed {
		switch {
		case text == "0 3 * * *":
			changed[i] = "0 4 * * *"
		case strings.HasPrefix(text, "Authorization"):
			changed[i] = "Authorization: " + definition.Mask
		case strings.HasPrefix(text, "{"):
			changed[i] = `{"eventName":"go","customData":{"big":12345678901234567891}}`
		}
	}
	if got := v.send(t, edit, edit, append(changed, "version", "1")...); got.Code != 303 {
		t.Fatal(got.Code, got.body)
	}
	now, err := b.Config.Schedules.Get(t.Context(), b.seeded.Account, one.ID)
	if err != nil || now.Version != 2 || now.Definition.Schedule.Cron != "0 4 * * *" || len(now.Definition.Webhook.Headers) != 1 {
		t.Errorf("%+v %v", now, err)
	}
	var payload struct {
		CustomData map[string]json.Number `json:"customData"`
	}
	if err := json.Unmarshal(now.Definition.Webhook.Payload, &payload); err != nil || len(payload.CustomData) != 1 || payload.CustomData["big"] != "12345678901234567891" {
		t.Errorf("%s %v", now.Definition.Webhook.Payload, err)
	}
	if e := b.audited(t, one.ID); e.Action != "schedule.update" || !strings.HasPrefix(e.Actor, "sess_") {
		t.Errorf("%+v", e)
	}
	if got := v.send(t, page, page, typed...); got.Code != 200 || !strings.Contains(got.body, "exists already") || !strings.Contains(got.body, `value="nightly"`) {
		t.Error(got.Code, got.body)
	}
	got := v.send(t, page, page, "name", "x", "type", "webhook", "when", "one_time", "at", "2199-01-01T00:00:00", "cron", "* * * * *", "timezone", "UTC", "headers", "no colon", "payload", "{", "action", "start")
	for _, want := range []string{"has a line without a colon", "is not JSON"} {
		if !strings.Contains(got.body, want) {
			t.Errorf("no %q in %s", want, got.body)
		}
	}
	got = v.send(t, page, page, "name", "x", "type", "webhook", "when", "one_time", "at", "2199-01-01T00:00:00", "cron", "* * * * *", "timezone", "UTC", "action", "start", "late", "skip", "overlapping", "skip")
	for _, want := range []string{"does not belong to a one_time schedule", "<code>webhook.url</code> is missing"} {
		if !strings.Contains(got.body, want) {
			t.Errorf("no %q in %s", want, got.body)
		}
	}
}
