package dashboard

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"slices"
	"time"

	"sluice.dev/sluice/controlplane/accounts/usage"
	"sluice.dev/sluice/controlplane/gateway/edgestatus"
	"sluice.dev/sluice/platform/http/paging"
	"sluice.dev/sluice/web/dashboard/chart"
)

// window is how far back the overview looks, a minute each.
const window = 60

// overviewPage is what the overview says.
type overviewPage struct {
	At       time.Time
	Everyone bool    // of all accounts
	Rate     float64 // requests a second, over the last one to two minutes
	Hour     traffic // of the last 60 minutes
	Recent   traffic // of the last five
	Chart    chart.Chart
	Products []productTraffic
	Fleet    *fleetSummary // for operators
}

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

// productTraffic is the traffic of one product.
type productTraffic struct {
	Name    string // empty: answered by the edge
	Minute  int64  // requests in the last whole minute
	Hour    traffic
	Latency *usage.Latency // of this hour
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
	page, err := s.overview(r.Context(), v)
	if err != nil {
		return err
	}
	return s.show(w, r, v, "overview", "Overview", "/", page)
}

// overview reads what the overview says to v.
func (s *site) overview(ctx context.Context, v viewer) (any, error) {
	name := "overview " + v.Account.ID
	if v.Operator {
		name = "overview"
	}
	return s.recent.get(ctx, name, s.Now(), s.Every/2, func(ctx context.Context) (any, error) { return s.readOverview(ctx, v) })
}

// readOverview reads it from the database.
func (s *site) readOverview(ctx context.Context, v viewer) (any, error) {
	now := s.Now().UTC()
	p := overviewPage{At: now, Everyone: v.Operator}
	q := usage.Query{Account: v.Account.ID, All: v.Operator, From: usage.Minute.Start(now).Add(-(window - 1) * time.Minute), To: now.Add(time.Minute),
		By: []usage.Dimension{usage.Product, usage.Status}, Page: paging.Page{Limit: 10_000}}
	rows, _, err := s.usage.Series(ctx, q)
	if err != nil {
		return nil, err
	}
	q.Grain, q.From, q.By = usage.Hour, usage.Hour.Start(now), []usage.Dimension{usage.Product}
	hour, _, err := s.usage.Series(ctx, q)
	if err != nil {
		return nil, err
	}
	p.count(rows, hour)
	if v.Operator {
		f, err := s.fleet.View(ctx)
		if err != nil {
			return nil, err
		}
		p.Fleet = summary(f)
	}
	return p, nil
}

// count fills the page from usage by minute, product and status, and from that of
// this hour by product.
func (p *overviewPage) count(rows, hour []usage.Usage) {
	minute := usage.Minute.Start(p.At)
	start := minute.Add(-(window - 1) * time.Minute)
	times, ok, client, server := make([]time.Time, window), make([]int64, window), make([]int64, window), make([]int64, window)
	for i := range times {
		times[i] = start.Add(time.Duration(i) * time.Minute)
	}
	products := map[string]*productTraffic{}
	var latest int64
	for _, u := range rows {
		i := int(u.Start.Sub(start) / time.Minute)
		if i < 0 || i >= window {
			continue
		}
		one := products[deref(u.Product)]
		if one == nil {
			one = &productTraffic{Name: deref(u.Product)}
			products[one.Name] = one
		}
		var t traffic
		t.add(u)
		ok[i], client[i], server[i] = ok[i]+t.OK, client[i]+t.Client, server[i]+t.Server
		one.Hour.add(u)
		p.Hour.add(u)
		if i >= window-5 {
			p.Recent.add(u)
		}
		if i >= window-2 {
			latest += u.Requests
		}
		if i == window-2 {
			one.Minute += u.Requests
		}
	}
	for _, u := range hour {
		if one := products[deref(u.Product)]; one != nil {
			one.Latency = u.Latency
		}
	}
	p.Rate = float64(latest) / p.At.Sub(minute.Add(-time.Minute)).Seconds()
	p.Chart = chart.Stack(times, []chart.Series{{Name: "OK (2xx, 3xx)", Class: "ok", Values: ok}, {Name: "Client error (4xx)", Class: "warn", Values: client},
		{Name: "Failed (5xx, no response)", Class: "fail", Values: server}}, 0)
	for _, name := range slices.Sorted(maps.Keys(products)) {
		p.Products = append(p.Products, *products[name])
	}
	slices.SortStableFunc(p.Products, func(a, b productTraffic) int { return cmp.Compare(b.Hour.Requests, a.Hour.Requests) })
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
