package dashboard

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/controlplane/accounts"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/paging"
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
	list, total, err := paging.Rows(s.Schedules.Page(r.Context(), a.ID, schedules.Filter{}, page))
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

// executionsPart are the executions of a schedule, the latest first.
type executionsPart struct {
	Now        time.Time
	Schedule   schedules.Schedule
	Live       string             // where the part is kept up to date; empty: it is not
	Open       []schedules.Record // that have not ended: they run, wait, or are tried again
	Executions []schedules.Record
	Pager      pager
	Next       []time.Time
	MayWrite   bool
}

// State is how an execution is, in a word: one that has failed and is tried again is
// retrying.
func (executionsPart) State(e schedules.Record) string {
	if e.Status == schedules.Executing && (e.Attempts > 1 || e.Result != nil) {
		return "retrying"
	}
	return e.Status
}

// executions reads the part for whoever looks; the query names the schedule.
func (s *site) executions(ctx context.Context, l look) (any, error) {
	one, err := s.Schedules.Get(ctx, l.Account.ID, cut(l.Query.Get("id")))
	if err != nil {
		return nil, err
	}
	page := pageIn(l.Query)
	p := executionsPart{Now: s.Now().UTC(), Schedule: one, MayWrite: l.Has("schedules:write")}
	list, total, err := paging.Rows(s.Schedules.HistoryPage(ctx, l.Account.ID, one.ID, schedules.HistoryFilter{}, page))
	if err != nil {
		return nil, err
	}
	p.Executions = list
	p.Next = nextRuns(one, p.Now, p.Now.AddDate(1, 0, 0), 5)
	q := url.Values{"account": l.Query["account"]}
	p.Pager = pagerIn(q, "/schedules/"+one.ID, page, len(list), total)
	if page.Offset > 0 {
		return p, nil
	}
	p.Live = Root + "/live/executions?" + url.Values{"id": {one.ID}}.Encode()
	for _, status := range []string{schedules.Executing, schedules.Waiting} {
		list, _, err := paging.Rows(s.Schedules.HistoryPage(ctx, l.Account.ID, one.ID, schedules.HistoryFilter{Status: status}, page))
		if err != nil {
			return nil, err
		}
		p.Open = append(p.Open, list...)
	}
	return p, nil
}

// schedulePage is one schedule with what came of it.
type schedulePage struct {
	Now      time.Time
	Schedule schedules.Schedule
	Next     []time.Time
	Part     any // executionsPart
	MayWrite bool
}

// showSchedule shows one schedule and its executions.
func (s *site) showSchedule(w http.ResponseWriter, r *http.Request, v viewer) error {
	a, err := s.chosen(r, v)
	if err != nil {
		return err
	}
	q := r.URL.Query()
	q.Set("id", chi.URLParam(r, "id"))
	read, err := s.executions(r.Context(), look{viewer: v, Account: a, Query: q})
	if err != nil {
		return err
	}
	part := read.(executionsPart)
	p := schedulePage{Now: part.Now, Schedule: part.Schedule, Next: part.Next, Part: part, MayWrite: part.MayWrite}
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
