package dashboard

import (
	"cmp"
	"net/http"
	"slices"
	"time"

	"sluice.dev/sluice/controlplane/accounts"
	"sluice.dev/sluice/controlplane/accounts/usage"
	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/controlplane/gateway/requestlog"
	"sluice.dev/sluice/platform/http/paging"
	"sluice.dev/sluice/web/dashboard/chart"
)

// Axis is how a chart of the span names its times: by the time of day, or by the day.
func (n period) Axis() string {
	if n.steps > 60 || n.grain == usage.Day {
		return "day"
	}
	return "time"
}

// usagePage is what an account has used, and what limits it.
type usagePage struct {
	Span   period
	Spans  []period
	Sum    traffic
	In     int64
	Out    int64
	Chart  chart.Chart
	Times  chart.Chart // how long requests took
	Routes []busy      // as many as a page has, the busiest first
	Pager  pager
	Limits []limitUsage
	Month  usage.Month
	Quota  float64 // of it used, in hundredths
}

// period is a time that the page can show, and how finely.
type period struct {
	Name, Label string
	grain       usage.Grain
	step        time.Duration
	steps       int
}

// spans are the times that can be chosen; the first is shown unless another is.
var spans = []period{
	{"hour", "60 minutes", usage.Minute, time.Minute, 60},
	{"day", "24 hours", usage.Hour, time.Hour, 24},
	{"week", "7 days", usage.Hour, time.Hour, 7 * 24},
	{"month", "30 days", usage.Day, 24 * time.Hour, 30},
}

// covered reports whether the request log, which is kept for a day, has what was counted in
// the span.
func (n period) covered() bool { return time.Duration(n.steps)*n.step <= requestlog.Kept }

// Day is covered, for the page.
func (p usagePage) Day() bool { return p.Span.covered() }

// limitUsage is how near an account has come to the limit of a class.
type limitUsage struct {
	Class     string
	PerMinute int64
	Own       bool  // it differs from the plan's
	Peak      int64 // of the last hour, requests in one minute
	Chart     chart.Chart
	Share     float64 // of the peak, in hundredths
}

// maxRows bounds how many rows of usage a page reads.
const maxRows = 20_000

// showUsage shows the usage of an account.
func (s *site) showUsage(w http.ResponseWriter, r *http.Request, v viewer) error {
	a, err := s.chosen(r, v)
	if err != nil {
		return err
	}
	p := usagePage{Span: spanOf(r.URL.Query()), Spans: spans}
	if err := s.fillUsage(r, &p, a); err != nil {
		return err
	}
	page, all := pageOf(r), len(p.Routes)
	p.Routes = p.Routes[min(page.Offset, all):min(page.Offset+page.Limit, all)]
	p.Pager = pagerOf(r, "/usage", page, len(p.Routes), all)
	if err := s.fillLimits(r, &p, a); err != nil {
		return err
	}
	if p.Month, err = s.usage.Month(r.Context(), a.ID); err != nil {
		return err
	}
	if p.Month.Limit != nil {
		p.Quota = chart.Share(p.Month.Requests, *p.Month.Limit)
	}
	return s.showOf(w, r, v, a, "usage", "Usage", "/usage", p)
}

// times are the steps of a span that ends now.
func (n period) times(now time.Time) []time.Time {
	list := make([]time.Time, n.steps)
	last := n.grain.Start(now)
	for i := range list {
		list[i] = last.Add(-time.Duration(n.steps-1-i) * n.step)
	}
	return list
}

// fillUsage reads the usage of the span.
func (s *site) fillUsage(r *http.Request, p *usagePage, a accounts.Account) error {
	times := p.Span.times(s.Now().UTC())
	q := usage.Query{Account: a.ID, From: times[0], To: s.Now().Add(time.Minute), Grain: p.Span.grain, Page: paging.Page{Limit: maxRows}}
	rows, err := s.byTime(r.Context(), q)
	if err != nil {
		return err
	}
	p.Chart, p.Sum = stacked(rows, times, p.Span.step)
	p.Times = latencies(together(rows), times, p.Span.step)
	for _, u := range rows {
		p.In, p.Out = p.In+u.In, p.Out+u.Out
	}
	if rows, err = s.whole(r.Context(), q, usage.Route, usage.Status); err == nil {
		p.Routes = busiest(rows, func(u usage.Usage) string { return deref(u.Route) })
	}
	return err
}

// fillLimits reads the limits of the account, and how near it came to each in the
// last hour.
func (s *site) fillLimits(r *http.Request, p *usagePage, a accounts.Account) error {
	now, err := s.Documents.Store.Latest(r.Context())
	if err != nil {
		return err
	}
	own, err := s.accounts.Limits(r.Context(), a.ID)
	if err != nil {
		return err
	}
	times := spans[0].times(s.Now().UTC())
	rows, _, err := s.usage.Series(r.Context(), usage.Query{Account: a.ID, From: times[0], To: s.Now().Add(time.Minute),
		By: []usage.Dimension{usage.Route}, Page: paging.Page{Limit: maxRows}})
	if err != nil {
		return err
	}
	p.Limits = limitsOf(now.Document, a.Plan, own, rows, times)
	return nil
}

// limitsOf joins the limits of a plan and of an account with the usage by minute
// and route.
func limitsOf(d config.Document, plan string, own []accounts.Limit, rows []usage.Usage, times []time.Time) []limitUsage {
	class := map[string]string{} // of each route
	for _, route := range d.Routes {
		class[route.Name] = cmp.Or(route.Class, d.Classes[0].Name)
	}
	used := map[string][]int64{}
	for _, u := range rows {
		name := class[deref(u.Route)]
		i := int(u.Start.Sub(times[0]) / time.Minute)
		if name == "" || i < 0 || i >= len(times) {
			continue
		}
		if used[name] == nil {
			used[name] = make([]int64, len(times))
		}
		used[name][i] += u.Requests
	}
	list := make([]limitUsage, len(d.Classes))
	for i, c := range d.Classes {
		l := limitUsage{Class: c.Name, PerMinute: int64(c.PerMinute)}
		for _, pl := range d.Plans {
			if limit, ok := pl.Limits[c.Name]; ok && pl.Name == plan {
				l.PerMinute = int64(limit.PerMinute)
			}
		}
		for _, o := range own {
			if o.Class == c.Name {
				l.PerMinute, l.Own = int64(o.PerMinute), true
			}
		}
		if used[c.Name] != nil {
			l.Peak = slices.Max(used[c.Name])
		}
		l.Chart = chart.Stack(times, []chart.Series{{Name: "Requests", Class: "ok", Values: used[c.Name]}}, l.PerMinute)
		l.Chart.Say(counts(l.Chart.Series))
		l.Share = chart.Share(l.Peak, l.PerMinute)
		list[i] = l
	}
	return list
}
