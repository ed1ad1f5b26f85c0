package trafficmetrics

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"sluice.dev/sluice/filters/limits/meter"
	"sluice.dev/sluice/filters/limits/traffic"
)

// bed is a Totals with a clock and routes that tests set.
type bed struct {
	*Totals
	at       time.Time
	routes   map[meter.Route]string
	sequence uint64
}

func newBed() *bed {
	b := &bed{at: time.Unix(1_000_000, 0)}
	b.Totals = New(func() time.Time { return b.at }, func() map[meter.Route]string { return b.routes })
	return b
}

// parcel is one with one request of each route.
func parcel(boot string, sequence uint64, key traffic.Key, routes ...meter.Route) []byte {
	table, names, reasons := traffic.NewTable(), &meter.Names{}, &traffic.Reasons{}
	if key.Reason > 0 && key.Passed {
		key.Reason = reasons.Number(traffic.Would("AUTH_002"))
	} else if key.Reason > 0 {
		key.Reason = reasons.Number("rate_limit_exceeded")
	}
	for _, r := range routes {
		key.Route = names.Number(r)
		table.Add(key, traffic.Request{In: 1, Out: 10, Took: 40 * time.Millisecond, Upstream: 30 * time.Millisecond})
	}
	return traffic.Parcel{Boot: boot, Sequence: sequence, Batches: traffic.Append(nil, table, names, reasons)}.Append(nil)
}

func (b *bed) take(t testing.TB, key traffic.Key, routes ...meter.Route) {
	t.Helper()
	b.sequence++
	if !b.Take(parcel("a", b.sequence, key, routes...)) {
		t.Fatal("the parcel is refused")
	}
}

// shows compares the lines of some metrics.
func (b *bed) shows(t testing.TB, names []string, lines ...string) {
	t.Helper()
	var text strings.Builder
	for _, n := range names {
		fmt.Fprintf(&text, "# TYPE %s counter\n", n)
		for _, l := range lines {
			if strings.HasPrefix(l, n+"{") {
				text.WriteString(l + "\n")
			}
		}
	}
	if err := testutil.GatherAndCompare(withoutZeros{b.registry(t)}, strings.NewReader(text.String()), names...); err != nil {
		t.Error(err)
	}
}

func (b *bed) registry(t testing.TB) *prometheus.Registry {
	t.Helper()
	r := prometheus.NewPedanticRegistry()
	if err := r.Register(b); err != nil {
		t.Fatal(err)
	}
	return r
}

var (
	item  = meter.Route{Name: "item", Product: "shop"}
	order = meter.Route{Name: "order", Product: "shop"}
	get2  = traffic.Key{Method: traffic.MethodNumber("GET"), Class: 2, Passed: true}
)

func TestRequestsAreSummedUp(t *testing.T) {
	t.Parallel()
	b := newBed()
	b.take(t, get2, item, item, order)
	b.take(t, get2, item)
	b.take(t, traffic.Key{Class: 4, Reason: 1}, item, meter.Route{})
	b.take(t, traffic.Key{Class: 2, Passed: true}, meter.Route{})
	b.shows(t, []string{"sluice_edge_requests_total", "sluice_edge_refused_total", "sluice_edge_request_bytes_total"},
		`sluice_edge_requests_total{method="",product="",route="(overflow)",status_class="2xx"} 1`,
		`sluice_edge_requests_total{method="",product="",route="(refused)",status_class="4xx"} 1`,
		`sluice_edge_requests_total{method="",product="shop",route="item",status_class="4xx"} 1`,
		`sluice_edge_requests_total{method="GET",product="shop",route="item",status_class="2xx"} 3`,
		`sluice_edge_requests_total{method="GET",product="shop",route="order",status_class="2xx"} 1`,
		`sluice_edge_refused_total{product="",reason="rate_limit_exceeded",route="(refused)"} 1`,
		`sluice_edge_refused_total{product="shop",reason="rate_limit_exceeded",route="item"} 1`,
		`sluice_edge_request_bytes_total{product="",route="(overflow)"} 1`,
		`sluice_edge_request_bytes_total{product="",route="(refused)"} 1`,
		`sluice_edge_request_bytes_total{product="shop",route="item"} 4`,
		`sluice_edge_request_bytes_total{product="shop",route="order"} 1`,
	)
}

// What passed in the shadow of a refusal counts as passed, and by what would have refused it.
func TestRequestsInTheShadowAreSummedUp(t *testing.T) {
	t.Parallel()
	b := newBed()
	b.take(t, traffic.Key{Method: traffic.MethodNumber("GET"), Class: 2, Passed: true, Reason: 1}, item, item)
	b.take(t, get2, item)
	b.shows(t, []string{"sluice_edge_requests_total", "sluice_edge_refused_total", "sluice_edge_would_refuse_total"},
		`sluice_edge_requests_total{method="GET",product="shop",route="item",status_class="2xx"} 3`,
		`sluice_edge_would_refuse_total{product="shop",route="item",would="AUTH_002"} 2`,
	)
}

// Refusals take no time worth a histogram: they would hide how slow the product is.
func TestHistogramsAreOfWhatWasPassedOn(t *testing.T) {
	t.Parallel()
	b := newBed()
	b.take(t, get2, item, item)
	b.take(t, traffic.Key{Class: 4, Reason: 1}, item)
	all, err := b.registry(t).Gather()
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, f := range all {
		if f.GetName() != "sluice_edge_request_duration_seconds" {
			continue
		}
		for _, m := range f.Metric {
			h := m.GetHistogram()
			found++
			if h.GetSampleCount() != 2 || h.GetSampleSum() != 0.08 || len(h.Bucket) != len(traffic.Bounds) {
				t.Errorf("%v", h)
			}
			for _, bucket := range h.Bucket {
				if want := uint64(2); (bucket.GetUpperBound() >= 0.05) != (bucket.GetCumulativeCount() == want) {
					t.Errorf("%v", bucket)
				}
			}
		}
	}
	if found != 1 {
		t.Errorf("%d histograms", found)
	}
}

func TestAParcelCountsOnce(t *testing.T) {
	t.Parallel()
	b := newBed()
	for _, p := range []struct {
		boot     string
		sequence uint64
	}{{"a", 1}, {"a", 1}, {"a", 2}, {"b", 1}, {"a", 2}, {"b", 1}, {"a", 1}, {"a", 4}} {
		if !b.Take(parcel(p.boot, p.sequence, get2, item)) {
			t.Fatal("refused")
		}
	}
	if b.Take([]byte("nonsense")) {
		t.Error("nonsense is taken")
	}
	b.shows(t, []string{"sluice_edge_requests_total"}, `sluice_edge_requests_total{method="GET",product="shop",route="item",status_class="2xx"} 4`)
}

// A route that is gone is shown until scrapers have seen its last requests; one that is there is
// shown however long it rests.
func TestRoutesThatAreGoneDisappear(t *testing.T) {
	t.Parallel()
	b := newBed()
	b.take(t, get2, item, order)
	lines := []string{
		`sluice_edge_requests_total{method="GET",product="shop",route="item",status_class="2xx"} 1`,
		`sluice_edge_requests_total{method="GET",product="shop",route="order",status_class="2xx"} 1`,
	}
	names := []string{"sluice_edge_requests_total"}
	b.at = b.at.Add(24 * time.Hour)
	b.shows(t, names, lines...) // which routes there are is not known
	b.take(t, get2, order)
	lines[1] = strings.Replace(lines[1], "} 1", "} 2", 1)
	b.routes = map[meter.Route]string{item: ""}
	b.shows(t, names, lines...)
	b.at = b.at.Add(keepGone + time.Second)
	b.shows(t, names, lines[:1]...)
	b.routes = map[meter.Route]string{}
	b.shows(t, names)
	if len(b.started) != 0 {
		t.Error("a product without routes is kept")
	}
}

// The counters of a route begin with zero, before its first request: of others rate() would not see
// the first error.
func TestCountersBeginWithZero(t *testing.T) {
	t.Parallel()
	b := newBed()
	b.routes = map[meter.Route]string{item: "GET", order: ""}
	const want = `
# HELP sluice_edge_requests_total Requests that have ended, by route. status_class is 2xx and so on; none: the client left before an answer.
# TYPE sluice_edge_requests_total counter
sluice_edge_requests_total{method="GET",product="shop",route="item",status_class="2xx"} 0
sluice_edge_requests_total{method="GET",product="shop",route="item",status_class="4xx"} 0
sluice_edge_requests_total{method="GET",product="shop",route="item",status_class="5xx"} 0
`
	for _, more := range []string{"", `sluice_edge_requests_total{method="PUT",product="shop",route="order",status_class="2xx"} 1
sluice_edge_requests_total{method="PUT",product="shop",route="order",status_class="4xx"} 0
sluice_edge_requests_total{method="PUT",product="shop",route="order",status_class="5xx"} 0
`} {
		if err := testutil.GatherAndCompare(b.registry(t), strings.NewReader(want+more), "sluice_edge_requests_total"); err != nil {
			t.Error(err)
		}
		b.take(t, traffic.Key{Method: traffic.MethodNumber("PUT"), Class: 2, Passed: true}, order)
	}
}

func TestRoutesAreBounded(t *testing.T) {
	t.Parallel()
	b := newBed()
	for i := 0; i < maxRoutes+500; i += 250 {
		var routes []meter.Route
		for n := range 250 {
			routes = append(routes, meter.Route{Name: fmt.Sprint("r", i+n), Product: "p"})
		}
		b.take(t, get2, routes...)
	}
	if n := len(b.Totals.routes); n > maxRoutes+1 {
		t.Errorf("%d routes are kept", n)
	}
	if over := b.Totals.routes[meter.Route{Name: Overflow}]; over == nil || over.kinds[kind{"GET", 2}].requests != 500 {
		t.Errorf("%+v", over)
	}
}

// BenchmarkScrape says what a scrape of n routes costs, each of which has answered 2xx and 4xx.
func BenchmarkScrape(b *testing.B) {
	for _, n := range []int{10, 200, 2000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			t := newBed()
			for i := range n {
				r := meter.Route{Name: fmt.Sprintf("orders.resource-%d", i), Product: fmt.Sprintf("product-%d", i%20)}
				t.take(b, get2, r)
				t.take(b, traffic.Key{Method: 1, Class: 4, Passed: true}, r)
				t.take(b, traffic.Key{Method: 1, Class: 4, Reason: 1}, r)
			}
			r := prometheus.NewRegistry()
			r.MustRegister(t)
			plain, zipped := scrape(b, r, "identity"), scrape(b, r, "gzip")
			b.ResetTimer()
			for range b.N {
				scrape(b, r, "gzip")
			}
			b.ReportMetric(float64(plain), "bytes")
			b.ReportMetric(float64(zipped), "gzipped")
		})
	}
}
