package dashboard

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/workers/schedules"
	"sluice.dev/sluice/workers/schedules/definition"
	"sluice.dev/sluice/workers/schedules/plan"
)

// scheduleForm is what the form of a schedule says, as people type it.
type scheduleForm struct {
	Name, Description, Tags             string
	Cron, StartDate, EndDate, ExecuteAt string
	Timezone, CatchUp, Overlap          string
}

// runPolicy is what a schedule may do about runs that are late or meet another.
type runPolicy struct{ Name, Label string }

// The policies, with what they mean.
var (
	catchUps    = []runPolicy{{plan.CatchUpSkip, "skip them"}, {plan.CatchUpLast, "run the latest one"}, {plan.CatchUpAll, "run all of them"}}
	overlapping = []runPolicy{{plan.OverlapSkip, "skip the run"}, {plan.OverlapQueue, "wait for it to end"}, {plan.OverlapAllow, "run both at the same time"}}
)

// formOfSchedule says what a schedule is.
func formOfSchedule(d definition.Definition) scheduleForm {
	return scheduleForm{
		Name: d.Name, Description: d.Description, Tags: strings.Join(d.Tags, ", "),
		Cron: d.Schedule.Cron, StartDate: d.Schedule.StartDate, EndDate: d.Schedule.EndDate, ExecuteAt: d.Schedule.ExecuteAt,
		Timezone: d.Schedule.Timezone, CatchUp: d.CatchUpPolicy, Overlap: d.OverlapPolicy,
	}
}

// readScheduleForm reads the form that r sends.
func readScheduleForm(r *http.Request) scheduleForm {
	field := func(name string) string { return strings.TrimSpace(r.PostForm.Get(name)) }
	return scheduleForm{
		Name: field("name"), Description: strings.ReplaceAll(field("description"), "\r\n", "\n"), Tags: field("tags"),
		Cron: field("cron"), StartDate: field("start"), EndDate: field("end"), ExecuteAt: field("at"),
		Timezone: field("timezone"), CatchUp: field("late"), Overlap: field("overlapping"),
	}
}

// patch is what the form changes of a schedule. Fields that belong to the other
// kind of timing are left out; what is empty goes back to its default.
func (f scheduleForm) patch(kind string) (definition.Patch, error) {
	orNull := func(text string) any {
		if text == "" {
			return nil
		}
		return text
	}
	timing := map[string]any{"timezone": orNull(f.Timezone), "cron": orNull(f.Cron), "startDate": orNull(f.StartDate), "endDate": orNull(f.EndDate)}
	if kind == definition.OneTime {
		timing = map[string]any{"timezone": orNull(f.Timezone), "executeAt": orNull(f.ExecuteAt)}
	}
	tags := []string{}
	for tag := range strings.SplitSeq(f.Tags, ",") {
		if tag = strings.TrimSpace(tag); tag != "" {
			tags = append(tags, tag)
		}
	}
	return patchOf(map[string]any{"name": f.Name, "description": f.Description, "tags": tags, "schedule": timing,
		"catchUpPolicy": orNull(f.CatchUp), "overlapPolicy": orNull(f.Overlap)})
}

// patchOf is a change as the API reads it.
func patchOf(members map[string]any) (definition.Patch, error) {
	raw, err := json.Marshal(members)
	if err != nil {
		return definition.Patch{}, fmt.Errorf("write the change of a schedule: %w", err)
	}
	return definition.ParsePatch(raw)
}

// editSchedule is the form that changes a schedule. It names the version that it
// was filled in from: what others have changed since is not lost.
func (s *site) editSchedule(w http.ResponseWriter, r *http.Request, v viewer) error {
	a, err := s.allowed(r, v, "schedules:write")
	if err != nil {
		return err
	}
	old, err := s.Schedules.Get(r.Context(), a.ID, chi.URLParam(r, "id"))
	if err != nil {
		return err
	}
	if r.PostForm.Get("version") != strconv.FormatInt(old.Version, 10) {
		return apierror.Errorf(decision.Conflict, "The schedule has changed since this page was loaded. Reload it, and make your change again.")
	}
	form := readScheduleForm(r)
	patch, err := form.patch(old.Definition.Schedule.Type)
	if err != nil {
		return err
	}
	_, err = s.Schedules.Update(r.Context(), a.ID, old.ID, patch)
	if details := detailsOf(err); details != nil {
		return s.scheduleWith(w, r, v, a, schedulePage{Form: &form, Problem: details})
	}
	if err != nil {
		return err
	}
	return seeOther(w, r, linkOf("/schedules/"+old.ID, v, a, "done", "saved"))
}

// holdSchedule is the form that pauses a schedule, or lets it go on.
func (s *site) holdSchedule(w http.ResponseWriter, r *http.Request, v viewer) error {
	a, err := s.allowed(r, v, "schedules:write")
	if err != nil {
		return err
	}
	status, message := schedules.Paused, "paused"
	if r.PostForm.Get("status") == schedules.Active {
		status, message = schedules.Active, "resumed"
	}
	patch, err := patchOf(map[string]any{"status": status})
	if err != nil {
		return err
	}
	one, err := s.Schedules.Update(r.Context(), a.ID, chi.URLParam(r, "id"), patch)
	if err != nil {
		return err
	}
	return seeOther(w, r, linkOf("/schedules/"+one.ID, v, a, "done", message))
}

// deleteSchedule is the form that removes a schedule with its history. Its name must be
// typed.
func (s *site) deleteSchedule(w http.ResponseWriter, r *http.Request, v viewer) error {
	a, err := s.allowed(r, v, "schedules:write")
	if err != nil {
		return err
	}
	one, err := s.Schedules.Get(r.Context(), a.ID, chi.URLParam(r, "id"))
	if err == nil {
		err = confirmed(r, one.Definition.Name)
	}
	if err == nil {
		err = s.Schedules.Delete(r.Context(), a.ID, one.ID)
	}
	if err != nil {
		return err
	}
	return seeOther(w, r, linkOf("/schedules", v, a, "done", "deleted"))
}

// confirmed fails unless the form has the name in it that the template confirm asks for.
func confirmed(r *http.Request, name string) error {
	if strings.TrimSpace(r.PostForm.Get("confirm")) == strings.TrimSpace(name) {
		return nil
	}
	return apierror.Invalid([]decision.Detail{{Field: "confirm", Issue: "is not the name", Expected: name}})
}
