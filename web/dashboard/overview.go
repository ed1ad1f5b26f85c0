package dashboard

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"sluice.dev/sluice/controlplane/accounts/usage"
	"sluice.dev/sluice/controlplane/gateway/edgestatus"
	"sluice.dev/sluice/controlplane/gateway/requestlog"
	"sluice.dev/sluice/platform/http/paging"
	"sluice.dev/sluice/web/dashboard/chart"
)

// overviewPage is what the overview says.
type overviewPage struct {
	At       time.Time
	Everyone bool // of all accounts
	Span     period
	Spans    []period
	Rate     float64 // requests a second, over the last one to two minutes
	Sum      traffic // of the span
	Chart    chart.Chart
	Latency  chart.Chart
	Products []busy
	Routes   []busy // the busiest
	Failures []requestlog.Request
	Fleet    *fleetSummary // for operators
}

// What the overview shows of each.
const (
	overviewRoutes   = 10
	overviewFailures = 8
)

// Day reports whether the request log, which is kept for a day, covers the span.
func (p overviewPage) Day() bool { return p.Span.covered() }

// traffic counts requests.
type traffic struct {
	Requests int64
	OK       int64 // 2xx and 3xx
	Client   int64 // 4xx
	Server   int64 // 5xx, and without an answer
	Refused  int64 // by the edge itself
}

// add counts one row of usage.
func (t *traffic) add(u usage.Usage) {
	t.Requests += u.Requests
	t.Refused += u.Refused
	switch class := deref(u.Status); class {
	case "2xx", "3xx", "1xx":
		t.OK += u.Requests
	case "4xx":
		t.Client += u.Requests
	default:
		t.Server += u.Requests
	}
}

// busy is the traffic of a product, or of a route.
type busy struct {
	Name    string // empty: answered by the edge, or no route
	Traffic traffic
	Out     int64
	Latency *usage.Latency
}

// fleetSummary is how the edges do.
type fleetSummary struct {
	Version             int64
	Edges, Live, Behind int
	Lag                 float64 // of the edge that lags most, in seconds
}

// deref is what p points at, "" for nil.
func deref(p *string) string {
	if p == nil {
		return ""
	}
	return *p
}

// showOverview shows the overview.
func (s *site) showOverview(w http.ResponseWriter, r *http.Request, v viewer) error {
	page, err := s.overview(r.Context(), look{viewer: v, Query: r.URL.Query()})
	if err != nil {
		return err
	}
	return s.show(w, r, v, "overview", "Overview", "/", page)
}

// overview reads what the overview says to whoever looks.
func (s *site) overview(ctx context.Context, l look) (any, error) {
	of, span := l.viewer.Account.ID, spanOf(l.Query)
	if l.Operator {
		of = "everyone"
	}
	return s.recent.get(ctx, "overview "+of+" "+span.Name, s.Now(), s.Every/2, func(ctx context.Context) (any, error) { return s.readOverview(ctx, l.viewer, span) })
}

// readOverview reads it from the database.
func (s *site) readOverview(ctx context.Context, v viewer, span period) (any, error) {
	now := s.Now().UTC()
	p := overviewPage{At: now, Everyone: v.Operator, Span: span, Spans: spans}
	times := span.times(now)
	q := usage.Query{Account: v.Account.ID, All: v.Operator, From: times[0], To: now.Add(time.Minute), Grain: span.grain, Page: paging.Page{Limit: maxRows}}
	rows, err := s.byTime(ctx, q)
	if err != nil {
		return nil, err
	}
	p.Chart, p.Sum = stacked(rows, times, span.step)
	p.Latency = latencies(together(rows), times, span.step)
	if rows, err = s.whole(ctx, q, usage.Product, usage.Route, usage.Status); err != nil {
		return nil, err
	}
	p.Products, p.Routes = busiest(rows, func(u usage.Usage) string { return deref(u.Product) }), busiest(rows, func(u usage.Usage) string { return deref(u.Route) })
	p.Routes = p.Routes[:min(len(p.Routes), overviewRoutes)]
	if p.Rate, err = s.rate(ctx, q, now); err != nil {
		return nil, err
	}
	f := requestlog.Filter{Account: v.Account.ID, Failed: true, Limit: overviewFailures}
	if v.Operator {
		f.Account = ""
	}
	list, err := s.Requests.List(ctx, f)
	if err != nil {
		return nil, err
	}
	p.Failures = list.Data
	if v.Operator {
		f, err := s.fleet.View(ctx)
		if err != nil {
			return nil, err
		}
		p.Fleet = summary(f)
	}
	return p, nil
}

// byTime reads what was counted, by time and by status. A page asks for that and for the whole,
// and puts together what it shows of both: every question reads all the rows there are.
func (s *site) byTime(ctx context.Context, q usage.Query) ([]usage.Usage, error) {
	q.By = []usage.Dimension{usage.Status}
	rows, _, err := s.usage.Series(ctx, q)
	return rows, err
}

// whole reads what was counted in all of q's time.
func (s *site) whole(ctx context.Context, q usage.Query, by ...usage.Dimension) ([]usage.Usage, error) {
	q.Whole, q.By = true, by
	rows, _, err := s.usage.Series(ctx, q)
	return rows, err
}

// together sums rows up that are of one time and follow each other.
func together(rows []usage.Usage) (list []usage.Usage) {
	for _, u := range rows {
		if n := len(list); n > 0 && list[n-1].Start.Equal(*u.Start) {
			list[n-1].Add(u.Amounts)
			continue
		}
		list = append(list, usage.Usage{Start: u.Start, Amounts: u.Amounts})
	}
	return list
}

// stacked draws requests by what came of them, and sums them up.
func stacked(rows []usage.Usage, times []time.Time, step time.Duration) (chart.Chart, traffic) {
	ok, client, server := make([]int64, len(times)), make([]int64, len(times)), make([]int64, len(times))
	var sum traffic
	for _, u := range rows {
		i := int(u.Start.Sub(times[0]) / step)
		if i < 0 || i >= len(times) {
			continue
		}
		var t traffic
		t.add(u)
		ok[i], client[i], server[i] = ok[i]+t.OK, client[i]+t.Client, server[i]+t.Server
		sum.add(u)
	}
	c := chart.Stack(times, []chart.Series{{Name: "OK (2xx, 3xx)", Class: "ok", Values: ok}, {Name: "Client error (4xx)", Class: "warn", Values: client},
		{Name: "Failed (5xx, no response)", Class: "fail", Values: server}}, 0)
	c.Say(counts(c.Series))
	return c, sum
}

// counts says of a time how many there were of each series.
func counts(series []chart.Series) func(chart.Row) string {
	return func(row chart.Row) string {
		parts := make([]string, len(series))
		for i, one := range series {
			parts[i] = one.Name + ": " + number(row.Values[i])
		}
		return strings.Join(parts, ", ")
	}
}

// latencies draws how long requests took, in microseconds: half of them up to the first
// part of a bar, nine tenths up to the second, all but one in a hundred up to the third.
func latencies(rows []usage.Usage, times []time.Time, step time.Duration) chart.Chart {
	p50, p90, p99 := make([]int64, len(times)), make([]int64, len(times)), make([]int64, len(times))
	for _, u := range rows {
		i := int(u.Start.Sub(times[0]) / step)
		if l := u.Latency; l != nil && i >= 0 && i < len(times) {
			p50[i], p90[i], p99[i] = int64(1e3*l.P50), int64(1e3*(l.P90-l.P50)), int64(1e3*(l.P99-l.P90))
		}
	}
	c := chart.Stack(times, []chart.Series{{Name: "p50", Class: "p50", Values: p50}, {Name: "p90", Class: "p90", Values: p90}, {Name: "p99", Class: "p99", Values: p99}}, 0)
	c.Say(func(row chart.Row) string {
		a, b, d := row.Values[0], row.Values[0]+row.Values[1], row.Values[0]+row.Values[1]+row.Values[2]
		if d == 0 {
			return "no requests"
		}
		return fmt.Sprintf("p50 %s, p90 %s, p99 %s", micros(a), micros(b), micros(d))
	})
	return c
}

// busiest puts the traffic of products or routes together, by their names, and how long it
// took, the busiest first.
func busiest(rows []usage.Usage, name func(usage.Usage) string) []busy {
	var list []busy
	sums, at := []usage.Amounts{}, map[string]int{}
	for _, u := range rows {
		i, ok := at[name(u)]
		if !ok {
			i = len(list)
			at[name(u)] = i
			list, sums = append(list, busy{Name: name(u)}), append(sums, usage.Amounts{})
		}
		list[i].Traffic.add(u)
		sums[i].Add(u.Amounts)
	}
	for i, sum := range sums {
		list[i].Out, list[i].Latency = sum.Out, sum.Latency
	}
	slices.SortFunc(list, func(a, b busy) int {
		return cmp.Or(cmp.Compare(b.Traffic.Requests, a.Traffic.Requests), cmp.Compare(a.Name, b.Name))
	})
	return list
}

// rate is how many requests a second there were in the last one to two minutes.
func (s *site) rate(ctx context.Context, q usage.Query, now time.Time) (float64, error) {
	q.Grain, q.From, q.Whole, q.By = usage.Minute, usage.Minute.Start(now).Add(-time.Minute), true, nil
	rows, _, err := s.usage.Series(ctx, q)
	if err != nil || len(rows) == 0 {
		return 0, err
	}
	return float64(rows[0].Requests) / now.Sub(q.From).Seconds(), nil
}

// summary counts the edges of a fleet.
func summary(f edgestatus.View) *fleetSummary {
	sum := &fleetSummary{Version: f.Version, Edges: len(f.Data)}
	for _, e := range f.Data {
		if !e.Live {
			continue
		}
		sum.Live++
		if !e.Current {
			sum.Behind++
			sum.Lag = max(sum.Lag, e.Lag)
		}
	}
	return sum
}

// spanOf is the time that is asked for; the first of spans unless another is.
func spanOf(q url.Values) period {
	for _, one := range spans {
		if one.Name == q.Get("span") {
			return one
		}
	}
	return spans[0]
}
