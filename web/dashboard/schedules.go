package dashboard

import (
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/controlplane/accounts"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/web/dashboard/chart"
	"sluice.dev/sluice/workers/schedules"
)

// ahead is how far the timeline looks.
const ahead = 24 * time.Hour

// laneSteps is how many runs of a schedule the timeline can tell apart: those of
// one step make one mark.
const laneSteps = 240

// schedulesPage are the schedules of an account.
type schedulesPage struct {
	Now       time.Time
	Schedules []schedules.Schedule
	Pager     pager
	Lanes     []lane
	Hours     []time.Time // beneath the timeline
}

// lane is a schedule's line of the timeline.
type lane struct {
	ID, Name string
	Marks    []float64 // where its runs are, in hundredths
}

// showSchedules shows the schedules of an account and their next runs.
func (s *site) showSchedules(w http.ResponseWriter, r *http.Request, v viewer) error {
	a, err := s.chosen(r, v)
	if err != nil {
		return err
	}
	page := pageOf(r)
	list, total, err := s.Schedules.List(r.Context(), a.ID, schedules.Filter{}, page)
	if err != nil {
		return err
	}
	p := schedulesPage{Now: s.Now().UTC(), Schedules: list, Pager: pagerOf(r, "/schedules", page, len(list), total)}
	for i := range 5 {
		p.Hours = append(p.Hours, p.Now.Add(time.Duration(i)*ahead/4))
	}
	for _, one := range list {
		l := laneOf(one, p.Now)
		if len(l.Marks) > 0 {
			p.Lanes = append(p.Lanes, l)
		}
	}
	return s.showOf(w, r, v, a, "schedules", "Schedules", "/schedules", p)
}

// laneOf draws the next runs of a schedule. One that is paused, or whose plan
// cannot be read, has none.
func laneOf(one schedules.Schedule, now time.Time) lane {
	l := lane{ID: one.ID, Name: one.Definition.Name}
	timing, err := one.Definition.Schedule.Plan()
	if err != nil || one.Next == nil {
		return l
	}
	var times []time.Time
	const step = ahead / laneSteps
	for _, next := range nextRuns(one, now, now.Add(ahead), 1) {
		for ok := true; ok && next.Before(now.Add(ahead)); {
			times = append(times, next)
			end := now.Add((next.Sub(now)/step + 1) * step) // of its step
			next, ok = timing.Next(end.Add(-time.Nanosecond))
		}
	}
	l.Marks = chart.Marks(times, now, now.Add(ahead))
	return l
}

// nextRuns returns at most the given number of runs of a schedule from its next
// one on, before a time.
func nextRuns(one schedules.Schedule, now, before time.Time, most int) (list []time.Time) {
	if one.Next == nil {
		return nil
	}
	timing, err := one.Definition.Schedule.Plan()
	next, ok := *one.Next, err == nil
	if next.Before(now) { // it is being started right now
		next, ok = timing.Next(now)
	}
	for ; ok && next.Before(before) && len(list) < most; next, ok = timing.Next(next) {
		list = append(list, next)
	}
	return list
}

// schedulePage is one schedule with what came of it.
type schedulePage struct {
	Now        time.Time
	Schedule   schedules.Schedule
	Next       []time.Time
	Executions []schedules.Record
	Pager      pager
	MayWrite   bool
}

// showSchedule shows one schedule and its executions.
func (s *site) showSchedule(w http.ResponseWriter, r *http.Request, v viewer) error {
	a, err := s.chosen(r, v)
	if err != nil {
		return err
	}
	p := schedulePage{Now: s.Now().UTC(), MayWrite: v.Has("schedules:write")}
	if p.Schedule, err = s.Schedules.Get(r.Context(), a.ID, chi.URLParam(r, "id")); err != nil {
		return err
	}
	page := pageOf(r)
	var total int
	p.Executions, total, err = s.Schedules.History(r.Context(), a.ID, p.Schedule.ID, schedules.HistoryFilter{}, page)
	if err != nil {
		return err
	}
	p.Pager = pagerOf(r, "/schedules/"+p.Schedule.ID, page, len(p.Executions), total)
	p.Next = nextRuns(p.Schedule, p.Now, p.Now.AddDate(1, 0, 0), mostRuns)
	return s.showOf(w, r, v, a, "schedule", p.Schedule.Definition.Name, "/schedules", p)
}

// runSchedule is the form that runs a schedule now.
func (s *site) runSchedule(w http.ResponseWriter, r *http.Request, v viewer) error {
	a, err := s.allowed(r, v, "schedules:write")
	if err != nil {
		return err
	}
	id := chi.URLParam(r, "id")
	if _, err := s.Schedules.Trigger(r.Context(), a.ID, id); err != nil {
		return err
	}
	return seeOther(w, r, linkOf("/schedules/"+id, v, a, "done", "run"))
}

// allowed is chosen for a form that needs a scope.
func (s *site) allowed(r *http.Request, v viewer, scope string) (accounts.Account, error) {
	if !v.Has(scope) {
		return accounts.Account{}, &apierror.Error{Code: decision.ScopeMissing,
			Details: []decision.Detail{{Field: "scope", Issue: "is not granted to you", Expected: scope}}}
	}
	return s.chosen(r, v)
}
