package dashboard

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/controlplane/accounts"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/workers/cron"
	"sluice.dev/sluice/workers/schedules"
	"sluice.dev/sluice/workers/schedules/definition"
	"sluice.dev/sluice/workers/schedules/plan"
)

// What can be chosen in the form of a schedule.
var (
	scheduleTypes = []choice{{definition.TypeCustom, "emit the event schedule.custom"}, {definition.TypeWebhook, "call an address"}, {definition.TypeStream, "act on a stream"}}
	timingTypes   = []choice{{definition.Recurring, "again and again, by a cron expression"}, {definition.OneTime, "once"}}
	catchUps      = []choice{{plan.CatchUpSkip, "skip them"}, {plan.CatchUpLast, "run the latest one"}, {plan.CatchUpAll, "run all of them"}}
	overlapping   = []choice{{plan.OverlapSkip, "skip the run"}, {plan.OverlapQueue, "wait for it to end"}, {plan.OverlapAllow, "run both at the same time"}}
	streamActions = []choice{{"start", "start"}, {"stop", "stop"}, {"pause", "pause"}, {"resume", "resume"}}
	// zones are proposed; any other that the IANA names can be typed.
	zones = choices("UTC", "Africa/Cairo", "Africa/Johannesburg", "Africa/Lagos", "America/Bogota", "America/Chicago", "America/Denver", "America/Los_Angeles",
		"America/Mexico_City", "America/New_York", "America/Sao_Paulo", "America/Toronto", "Asia/Dubai", "Asia/Hong_Kong", "Asia/Jakarta", "Asia/Kolkata", "Asia/Seoul",
		"Asia/Shanghai", "Asia/Singapore", "Asia/Tokyo", "Australia/Sydney", "Europe/Berlin", "Europe/Istanbul", "Europe/London", "Europe/Madrid", "Europe/Paris",
		"Europe/Warsaw", "Pacific/Auckland")
)

// scheduleForm is the form of a schedule, filled in with what it is. The values of
// headers are not shown: whoever leaves the mask keeps them.
func scheduleForm(d definition.Definition) *form {
	action, hook := definition.Action{Action: "start"}, definition.Webhook{}
	if d.Action != nil {
		action = *d.Action
	}
	if d.Webhook != nil {
		hook = *d.Webhook.Masked()
	}
	var headers []string
	for _, name := range slices.Sorted(maps.Keys(hook.Headers)) {
		headers = append(headers, name+": "+hook.Headers[name])
	}
	payload := ""
	if hook.Payload != nil {
		payload = pretty(hook.Payload)
	}
	return &form{Back: "/schedules", Name: "All schedules", Also: []choice{{"preview", "Preview the next runs"}}, Fields: []field{
		{Name: "name", Label: "Name", Value: d.Name, Required: true, Max: 200},
		{Name: "type", Label: "What it does", Kind: "select", Value: cmp.Or(d.Type, definition.TypeCustom), Choices: scheduleTypes},
		{Name: "when", Label: "It runs", Kind: "select", Value: cmp.Or(d.Schedule.Type, definition.Recurring), Choices: timingTypes, Of: []string{"schedule.type"}},
		{Name: "cron", Label: "Cron expression", Hint: "Minute, hour, day of month, month, day of week: 30 9 * * MON-FRI. Not for one that runs once.",
			Value: d.Schedule.Cron, Max: 200, Depends: true, Of: []string{"schedule.cron"}},
		{Name: "at", Label: "Time", Hint: "Of a schedule that runs once, such as 2030-03-01T09:00:00.", Value: d.Schedule.ExecuteAt, Max: 64, Depends: true, Of: []string{"schedule.executeAt"}},
		{Name: "timezone", Label: "Time zone", Value: cmp.Or(d.Schedule.Timezone, "UTC"), Required: true, Max: 64, Choices: zones, Of: []string{"schedule.timezone"}},
		{Name: "start", Label: "Start date", Hint: "Such as 2030-03-01; empty: at once.", Value: d.Schedule.StartDate, Max: 64, Of: []string{"schedule.startDate"}},
		{Name: "end", Label: "End date", Hint: "Empty: none.", Value: d.Schedule.EndDate, Max: 64, Of: []string{"schedule.endDate"}},
		{Name: "url", Label: "Address to call", Hint: "An https:// URL, which gets a POST request.", Value: hook.URL, Max: 2048, Depends: true, Of: []string{"webhook"}},
		{Name: "headers", Label: "Headers of the call", Kind: "area",
			Hint:  "A line each, such as Authorization: Bearer TOKEN. Values are stored encrypted and shown as " + definition.Mask + ".",
			Value: strings.Join(headers, "\n"), Max: 9 << 10, Of: []string{"webhook.headers"}},
		{Name: "payload", Label: "Body of the call, or data of the event", Kind: "code", Hint: "A JSON object.", Value: payload, Max: 64 << 10, Of: []string{"webhook.payload"}},
		{Name: "stream", Label: "Stream to act on", Hint: "Its id, such as strm_….", Value: action.StreamID, Max: 64, Depends: true, Of: []string{"action"}},
		{Name: "action", Label: "Action on the stream", Kind: "select", Value: action.Action, Choices: streamActions, Of: []string{"action.action"}},
		{Name: "late", Label: "Missed runs", Kind: "select", Value: cmp.Or(d.CatchUpPolicy, plan.CatchUpLast), Choices: catchUps, Of: []string{"catchUpPolicy"}},
		{Name: "overlapping", Label: "If the previous run is still going", Kind: "select", Value: cmp.Or(d.OverlapPolicy, plan.OverlapSkip), Choices: overlapping, Of: []string{"overlapPolicy"}},
		{Name: "description", Label: "Description", Kind: "area", Value: d.Description, Max: 2000},
		{Name: "tags", Label: "Tags", Hint: "Separated by commas.", Value: strings.Join(d.Tags, ", "), Max: 2000},
	}}
}

// readSchedule is what the form makes of a schedule that was old: fields that are not in
// the form stay as they are.
func readSchedule(f *form, old definition.Definition) (definition.Definition, error) {
	d := old
	d.Name, d.Description, d.Type = f.text("name"), f.text("description"), f.text("type")
	d.Schedule = definition.Timing{Type: f.text("when"), Cron: f.text("cron"), Timezone: f.text("timezone"), StartDate: f.text("start"), EndDate: f.text("end"), ExecuteAt: f.text("at")}
	d.CatchUpPolicy, d.OverlapPolicy = f.text("late"), f.text("overlapping")
	d.Tags = []string{}
	for tag := range strings.SplitSeq(f.text("tags"), ",") {
		if tag = strings.TrimSpace(tag); tag != "" {
			d.Tags = append(d.Tags, tag)
		}
	}
	d.Action = nil
	if f.text("stream") != "" || d.Type == definition.TypeStream {
		d.Action = &definition.Action{StreamID: f.text("stream"), Action: f.text("action")}
		if old.Action != nil {
			d.Action.Settings = old.Action.Settings
		}
	}
	var err error
	d.Webhook, err = readCall(f, old.Webhook)
	return d, err
}

// readCall is the call that the form asks for; nil: none.
func readCall(f *form, old *definition.Webhook) (*definition.Webhook, error) {
	if f.text("url")+f.text("headers")+f.text("payload") == "" && f.text("type") != definition.TypeWebhook {
		return nil, nil
	}
	hook := &definition.Webhook{URL: f.text("url")}
	if old != nil {
		hook.RetryPolicy = old.RetryPolicy
	}
	var details []decision.Detail
	for line := range strings.Lines(f.text("headers")) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), ":")
		if strings.TrimSpace(line) == "" {
			continue
		}
		if !ok {
			details = append(details, decision.Detail{Field: "webhook.headers", Issue: "has a line without a colon", Expected: "Name: value"})
			continue
		}
		if hook.Headers == nil {
			hook.Headers = map[string]string{}
		}
		hook.Headers[strings.TrimSpace(name)] = strings.TrimSpace(value)
	}
	if text := f.text("payload"); text != "" {
		if hook.Payload = json.RawMessage(text); !json.Valid(hook.Payload) {
			details = append(details, decision.Detail{Field: "webhook.payload", Issue: "is not JSON", Expected: `an object, such as {"eventName": "nightly"}`})
		}
	}
	return hook, apierror.Invalid(details)
}

// run is one of a schedule's next runs.
type run struct{ Local, UTC string }

// mostRuns is how many runs are foretold.
const mostRuns = 5

// foretold are the next runs of a timing, by the clock of its zone too.
func foretold(t definition.Timing, now time.Time) (list []run, err error) {
	p, err := t.Plan()
	if err != nil {
		return nil, err
	}
	zone, err := cron.LoadZone(t.Timezone)
	if err != nil {
		return nil, err
	}
	next, err := t.Future(p, now)
	if err != nil {
		return nil, err
	}
	for ok := true; ok && len(list) < mostRuns; next, ok = p.Next(next) {
		list = append(list, run{next.In(zone).Format("Mon 2006-01-02 15:04:05 MST"), instant(next)})
	}
	return list, nil
}

// sendSchedule carries a form out, or shows it again: with the runs that it would have
// when these are asked for.
func (s *site) sendSchedule(w http.ResponseWriter, r *http.Request, v viewer, a accounts.Account, title string, f *form, old definition.Definition, save func(definition.Definition) error) error {
	f.fill(r)
	d, err := readSchedule(f, old)
	if err == nil && r.PostForm.Get("do") == "preview" {
		var runs []run
		if runs, err = foretold(d.Schedule, s.Now()); err == nil {
			return s.showOf(w, r, v, a, "form", title, "/schedules", formPage{Form: f, Runs: runs})
		}
	}
	if err == nil {
		err = save(d)
	}
	return s.asked(w, r, v, a, "/schedules", title, f, err, func() error { return nil })
}

// newSchedule shows the form of a new schedule.
func (s *site) newSchedule(w http.ResponseWriter, r *http.Request, v viewer) error {
	a, err := s.allowed(r, v, "schedules:write")
	if err != nil {
		return err
	}
	f := scheduleForm(definition.Definition{})
	f.Action, f.Submit = "/schedules/new", "Create schedule"
	return s.ask(w, r, v, a, "/schedules", "New schedule", f)
}

// createSchedule is that form.
func (s *site) createSchedule(w http.ResponseWriter, r *http.Request, v viewer) error {
	a, err := s.allowed(r, v, "schedules:write")
	if err != nil {
		return err
	}
	f := scheduleForm(definition.Definition{})
	f.Action, f.Submit = "/schedules/new", "Create schedule"
	return s.sendSchedule(w, r, v, a, "New schedule", f, definition.Definition{}, func(d definition.Definition) error {
		made, err := s.Schedules.Create(r.Context(), a.ID, d)
		if err != nil {
			return err
		}
		return seeOther(w, r, linkOf("/schedules/"+made.ID, v, a, "done", "schedule-created"))
	})
}

// editedSchedule is the schedule that a page changes, and its form.
func (s *site) editedSchedule(r *http.Request, v viewer) (a accounts.Account, one schedules.Schedule, f *form, err error) {
	if a, err = s.allowed(r, v, "schedules:write"); err != nil {
		return a, one, nil, err
	}
	if one, err = s.Schedules.Get(r.Context(), a.ID, chi.URLParam(r, "id")); err != nil {
		return a, one, nil, err
	}
	one.Definition.Webhook = one.Definition.Webhook.Masked()
	f = scheduleForm(one.Definition)
	f.Action, f.Submit = "/schedules/"+one.ID+"/edit", "Save"
	f.Back, f.Name = "/schedules/"+one.ID, one.Definition.Name
	f.Hidden = []choice{{"version", strconv.FormatInt(one.Version, 10)}}
	return a, one, f, nil
}

// editSchedulePage shows the form of a schedule.
func (s *site) editSchedulePage(w http.ResponseWriter, r *http.Request, v viewer) error {
	a, one, f, err := s.editedSchedule(r, v)
	if err != nil {
		return err
	}
	return s.ask(w, r, v, a, "/schedules", "Edit "+one.Definition.Name, f)
}

// editSchedule is that form. It names the version that it was filled in from: what
// others have changed since is not lost.
func (s *site) editSchedule(w http.ResponseWriter, r *http.Request, v viewer) error {
	a, one, f, err := s.editedSchedule(r, v)
	if err != nil {
		return err
	}
	if r.PostForm.Get("version") != strconv.FormatInt(one.Version, 10) {
		return apierror.Errorf(decision.Conflict, "The schedule has changed since this page was loaded. Reload it, and make your change again.")
	}
	return s.sendSchedule(w, r, v, a, "Edit "+one.Definition.Name, f, one.Definition, func(d definition.Definition) error {
		patch, err := patchBetween(one.Definition, d)
		if err != nil {
			return err
		}
		if _, err := s.Schedules.Update(r.Context(), a.ID, one.ID, patch); err != nil {
			return err
		}
		return seeOther(w, r, linkOf("/schedules/"+one.ID, v, a, "done", "saved"))
	})
}

// deleteSchedule removes a schedule with its history, once that is confirmed.
func (s *site) deleteSchedule(w http.ResponseWriter, r *http.Request, v viewer) error {
	a, one, _, err := s.editedSchedule(r, v)
	if err != nil {
		return err
	}
	at, name := "/schedules/"+one.ID, one.Definition.Name
	return s.confirm(w, r, v, a, danger{
		At: at + "/delete", Here: "/schedules", Back: at, Place: name, Title: "Delete " + name, Do: "Delete schedule", Name: name,
		Intro: "The schedule and its executions are deleted. To stop it for a while, pause it instead.",
		Done:  "/schedules", Said: "deleted",
	}, func(*form) error { return s.Schedules.Delete(r.Context(), a.ID, one.ID) })
}
