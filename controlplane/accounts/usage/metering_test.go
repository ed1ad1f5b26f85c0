package usage

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"sluice.dev/sluice/controlplane/accounts/apikeys"
	"sluice.dev/sluice/filters/credentials/apikey"
	"sluice.dev/sluice/filters/credentials/keytable"
	"sluice.dev/sluice/filters/edgeapi"
	"sluice.dev/sluice/filters/limits/meter"
	"sluice.dev/sluice/platform/http/paging"
	"sluice.dev/sluice/platform/storage/postgres/pgtest"
)

const (
	number  = 1 // of the account below
	account = "acct_0000000000001"
)

var noon = time.Date(2026, 11, 21, 12, 0, 30, 0, time.UTC)

// bundle is a store over a database with one account, and a clock that stands.
type bundle struct {
	Store
	pool *pgxpool.Pool
	now  time.Time
}

func setup(t *testing.T) *bundle {
	t.Helper()
	b := &bundle{pool: pgtest.Pool(t), now: noon}
	b.Store = Store{DB: b.pool, Now: func() time.Time { return b.now }}
	b.exec(t, `INSERT INTO accounts (id, name, plan) VALUES ($1, 'a', 'free')`, account)
	b.exec(t, `UPDATE usage_progress SET hours = $1, days = $1`, noon.AddDate(0, 0, -3).Truncate(24*time.Hour))
	return b
}

func (b *bundle) exec(t *testing.T, sql string, args ...any) {
	t.Helper()
	if _, err := b.pool.Exec(t.Context(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

// counted is a batch of n requests to one route at a time, one of them refused
// when there are several.
func counted(account uint64, at time.Time, n int, route string) meter.Batch {
	c := meter.Counts{Requests: uint64(n), In: uint64(10 * n), Out: uint64(100 * n)}
	if n > 1 {
		c.Refused = 1
	}
	c.Latency[2] = uint32(n)
	return meter.Batch{At: at.Unix(), Counts: []meter.Count{{Account: account, Route: meter.Route{Name: route, Product: "media"}, Class: 2, Counts: c}}}
}

// take counts batches under a sequence number, and reports whether it was new.
func (b *bundle) take(t *testing.T, sequence uint64, batches ...meter.Batch) bool {
	t.Helper()
	taken, err := b.Take(t.Context(), meter.Parcel{Edge: "edge-1", Boot: "b", Sequence: sequence}, batches)
	if err != nil {
		t.Fatal(err)
	}
	return taken.New
}

// series reads the account's usage of three days.
func (b *bundle) series(t *testing.T, g Grain, by ...Dimension) []Usage {
	t.Helper()
	list, total, err := b.Series(t.Context(), Query{Account: account, From: Day.Start(noon.AddDate(0, 0, -3)), To: noon.AddDate(0, 0, 1), Grain: g, By: by, Page: paging.Page{Limit: 100}})
	if err != nil || total != len(list) {
		t.Fatal(total, err)
	}
	return list
}

func sum(list []Usage) (requests int64) {
	for _, u := range list {
		requests += u.Requests
	}
	return requests
}

func TestAParcelCountsOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	batch := counted(number, noon, 5, "streams.list")
	for sequence, want := range []struct {
		sequence uint64
		fresh    bool
	}{{1, true}, {1, false}, {2, true}, {1, false}, {5, true}, {4, false}} {
		if got := b.take(t, want.sequence, batch); got != want.fresh {
			t.Errorf("%d: parcel %d is new: %v", sequence, want.sequence, got)
		}
	}
	other, err := b.Take(t.Context(), meter.Parcel{Edge: "edge-1", Boot: "another", Sequence: 1}, []meter.Batch{batch})
	if err != nil || !other.New {
		t.Fatalf("the first parcel of another start: %+v %v", other, err)
	}
	if got := sum(b.series(t, Minute)); got != 20 {
		t.Errorf("%d requests, want 20", got)
	}
}

// TestParallelParcels has several edges send the same parcels several times at
// once, of the same rows in different orders.
func TestParallelParcels(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var all sync.WaitGroup
	for edge := range 4 {
		for range 3 {
			all.Go(func() {
				for sequence := range uint64(10) {
					batches := []meter.Batch{counted(number, noon, 2, "a"), counted(number, noon, 2, "b"), counted(0, noon, 1, "c")}
					rand.Shuffle(len(batches), func(i, j int) { batches[i], batches[j] = batches[j], batches[i] })
					p := meter.Parcel{Edge: fmt.Sprint("edge-", edge), Boot: "b", Sequence: sequence + 1}
					if _, err := b.Take(context.WithoutCancel(t.Context()), p, batches); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	all.Wait()
	if got := sum(b.series(t, Minute)); got != 4*10*4 {
		t.Errorf("%d requests, want 160", got)
	}
	if m, err := b.Month(t.Context(), account); err != nil || m.Requests != 4*10*2 {
		t.Errorf("%+v %v: refused requests do not count towards a quota", m, err)
	}
}

// TestSumsStayExact counts at random times, sums up in between, and finds every
// request in each grain, whatever came late.
func TestSumsStayExact(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := rand.New(rand.NewPCG(5, 6))
	want, sequence := map[Grain]map[time.Time]int64{Minute: {}, Hour: {}, Day: {}}, uint64(0)
	b.now = noon.AddDate(0, 0, -2)
	for b.now.Before(noon.AddDate(0, 0, -1).Add(6 * time.Hour)) {
		b.now = b.now.Add(time.Duration(r.IntN(200)) * time.Minute)
		for range 1 + r.IntN(3) {
			at, n := b.now.Add(-time.Duration(r.IntN(int(MaxLate/time.Second)))*time.Second), 1+r.IntN(5)
			sequence++
			b.take(t, sequence, counted(number, at, n, fmt.Sprint("route", r.IntN(2))))
			for g := range want {
				want[g][g.Start(at)] += int64(n)
			}
		}
		if _, err := b.RollUp(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for g, starts := range want {
		got := map[time.Time]int64{}
		for _, u := range b.series(t, g) {
			got[*u.Start] = u.Requests
		}
		if diff := cmp.Diff(starts, got); diff != "" {
			t.Errorf("%v: %s", g, diff)
		}
	}
	if n, err := b.RollUp(t.Context()); n != 0 || err != nil {
		t.Errorf("a second time: %d sums, %v", n, err)
	}
	// What has been dropped from the shorter grains is still in the days.
	days := b.series(t, Day)
	b.now = b.now.AddDate(0, 0, 100)
	if _, err := b.RollUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n, err := b.Prune(t.Context()); n == 0 || err != nil {
		t.Fatal(n, err)
	}
	if diff := cmp.Diff(days, b.series(t, Day)); diff != "" || len(b.series(t, Minute))+len(b.series(t, Hour)) > 0 {
		t.Errorf("after pruning: %s", diff)
	}
}

// figures compares what callers see: the histogram is what they are read off.
var figures = cmpopts.IgnoreFields(Amounts{}, "Histogram")

// Parts of what was counted sum up to what is counted together.
func TestPartsAddUp(t *testing.T) {
	t.Parallel()
	b := setup(t)
	one := counted(number, noon, 3, "streams.list")
	one.Counts = append(one.Counts, counted(number, noon, 2, "streams.get").Counts...)
	one.Counts[1].Class, one.Counts[1].Latency[9] = 0, 40
	b.take(t, 1, one)
	var sum Amounts
	parts := b.series(t, Hour, Status, Route)
	for _, u := range parts {
		sum.Add(u.Amounts)
	}
	if diff := cmp.Diff(b.series(t, Hour)[0].Amounts, sum); diff != "" || len(parts) != 2 || parts[0].Latency == sum.Latency {
		t.Error(diff, parts)
	}
}

func TestDimensions(t *testing.T) {
	t.Parallel()
	b := setup(t)
	one := counted(number, noon, 3, "streams.list")
	one.Counts = append(one.Counts, counted(number, noon, 2, "streams.get").Counts...)
	one.Counts[1].Class, one.Counts[1].Key = 0, 9
	b.take(t, 1, one)
	ptr := func(s string) *string { return &s }
	start := noon.Truncate(time.Hour)
	key := keytable.FormatID(keytable.KeyPrefix, 9)
	want := []Usage{
		{Start: &start, Product: ptr("media"), Route: ptr("streams.get"), Key: &key, Status: ptr("none"), Amounts: Amounts{2, 1, 20, 200, &Latency{3, 4, 4}, 0, nil}},
		{Start: &start, Product: ptr("media"), Route: ptr("streams.list"), Key: ptr(""), Status: ptr("2xx"), Amounts: Amounts{3, 1, 30, 300, &Latency{3.33, 4, 4}, 0, nil}},
	}
	if diff := cmp.Diff(want, b.series(t, Hour, Status, Route, Key, Product), figures); diff != "" {
		t.Error(diff)
	}
	want = []Usage{{Start: &start, Amounts: Amounts{5, 2, 50, 500, &Latency{3.2, 4, 4}, 0, nil}}}
	if diff := cmp.Diff(want, b.series(t, Hour), figures); diff != "" {
		t.Error(diff)
	}
	all, err := b.Sum(t.Context(), account, noon.AddDate(0, 0, -1), noon.AddDate(0, 0, 1))
	if diff := cmp.Diff(want[0].Amounts, all, figures); diff != "" || err != nil {
		t.Error(diff, err)
	}
}

func TestTimesOfEdges(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ at, want time.Time }{
		"now": {noon, noon}, "a clock ahead": {noon.Add(time.Hour), noon}, "late": {noon.Add(-time.Hour), noon.Add(-time.Hour)},
		"a clock that was never set": {time.Unix(0, 0), noon.Add(-MaxLate)},
	} {
		if got := within(c.at.Unix(), noon); !got.Equal(c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestQuotas(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.exec(t, `INSERT INTO request_quotas (plan, monthly) VALUES ('free', 10)`)
	c, err := apikeys.Store{DB: b.pool}.Create(t.Context(), apikeys.Spec{Account: account, Name: "k", Scopes: []string{"streams:read"}, Creator: []string{"*"}})
	if err != nil {
		t.Fatal(err)
	}
	marked := func(want bool) {
		t.Helper()
		for _, tag := range []keytable.Tag{keytable.TagOfKey(apikey.Hash(c.Text)), keytable.TagOfAccount(number)} {
			var raw []byte
			err := b.pool.QueryRow(t.Context(), `SELECT record FROM edge_records WHERE tag = $1`, tag[:]).Scan(&raw)
			r, _ := keytable.Decode(raw)
			if err != nil || (r.Flags&keytable.FlagQuotaUsed != 0) != want {
				t.Fatalf("%+v %v, want marked: %v", r, err, want)
			}
		}
	}
	change := func(what string, want int) {
		t.Helper()
		if n, err := b.Reconcile(t.Context()); n != want || err != nil {
			t.Fatalf("%s: %d accounts changed, %v", what, n, err)
		}
	}
	b.take(t, 1, counted(number, noon, 10, "a")) // one of them was refused
	if n, err := b.Enforce(t.Context(), []string{account}); n != 0 || err != nil {
		t.Fatal(n, err)
	}
	b.take(t, 2, counted(number, noon, 1, "a"))
	if n, err := b.Enforce(t.Context(), []string{account}); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	marked(true)
	change("nothing is new", 0)
	b.now = time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	change("a new month", 1)
	marked(false)
	b.now = noon
	change("back again", 1)
	b.exec(t, `UPDATE request_quotas SET monthly = 12`)
	change("a quota is raised", 1)
	marked(false)
	if m, err := b.Month(t.Context(), account); err != nil || m.Requests != 10 || *m.Limit != 12 || m.Start != "2026-11-01" {
		t.Fatalf("%+v %v", m, err)
	}
}

func TestAKeysLastUse(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s := apikeys.Store{DB: b.pool}
	c, err := s.Create(t.Context(), apikeys.Spec{Account: account, Name: "k", Scopes: []string{"streams:read"}, Creator: []string{"*"}})
	if err != nil {
		t.Fatal(err)
	}
	id, _ := keytable.ParseID(keytable.KeyPrefix, c.ID)
	for i, step := range []struct {
		at            time.Time
		address, want string
	}{
		{noon, "192.0.2.1:5000", "192.0.2.1"},
		{noon.Add(20 * time.Second), "192.0.2.2:1", "192.0.2.1"}, // the same minute
		{noon.Add(time.Minute), "[::ffff:192.0.2.3]:1", "192.0.2.3"},
		{noon, "192.0.2.9:1", "192.0.2.3"}, // comes late
		{noon.Add(2 * time.Minute), "[2001:db8::1]:1", "2001:db8::1"},
	} {
		b.now = noon.Add(time.Hour)
		b.take(t, uint64(i+1), meter.Batch{At: step.at.Unix(), Uses: []meter.Use{{Key: id, At: step.at.Unix(), Address: step.address}}})
		if k, err := s.Get(t.Context(), account, c.ID); err != nil || k.LastUsedIP == nil || k.LastUsedIP.String() != step.want {
			t.Errorf("%d: %v %v, want %s", i, k.LastUsedIP, err, step.want)
		}
	}
	b.take(t, 9, meter.Batch{At: noon.Unix(), Uses: []meter.Use{{Key: id, At: noon.Add(3 * time.Minute).Unix(), Address: "pipe"}}})
	if k, err := s.Get(t.Context(), account, c.ID); err != nil || k.LastUsedIP != nil || !k.LastUsedAt.Equal(noon.Add(3*time.Minute)) {
		t.Errorf("an address that is none: %+v %v", k, err)
	}
}

func TestReceiver(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := NewReceiver(Receiver{Store: b.Store}, prometheus.NewRegistry())
	table := meter.NewTable()
	table.Add(meter.Key{Account: number, Class: 2}, meter.Request{Took: time.Millisecond})
	batch := meter.Append(nil, table, &meter.Names{}, &meter.Uses{}, noon.Unix())
	good := meter.Parcel{Edge: "e", Boot: "b", Sequence: 1, Batches: [][]byte{batch}}.Append(nil)
	for i, c := range []struct {
		body   []byte
		status int
	}{
		{good, 204}, {good, 204}, {nil, 400}, {good[1:], 400}, {append(bytes.Clone(good), 0), 400}, {make([]byte, meter.MaxParcel+1), 413},
	} {
		req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, edgeapi.UsagePath, bytes.NewReader(c.body))
		w := httptest.NewRecorder()
		r.ServeHTTP(w, req)
		if w.Code != c.status {
			t.Errorf("%d: status %d, want %d: %s", i, w.Code, c.status, w.Body)
		}
	}
	if got := sum(b.series(t, Minute)); got != 1 {
		t.Errorf("%d requests, want 1", got)
	}
}

func TestQuantiles(t *testing.T) {
	t.Parallel()
	buckets := make([]int64, meter.Buckets)
	if latencyFrom(buckets) != nil {
		t.Error("nothing was measured")
	}
	buckets[0], buckets[4], buckets[meter.Buckets-1] = 50, 45, 5
	if got, want := *latencyFrom(buckets), (Latency{P50: 1, P90: 15.11, P99: 471859.2}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// A sum over all times has one entry for each of its dimensions, whatever has been summed up
// already, and how long all of it took.
func TestTheWholeOfATime(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.take(t, 1, counted(number, noon.Add(-3*time.Hour), 5, "a"), counted(number, noon, 7, "a"), counted(number, noon, 2, "b"))
	if _, err := b.RollUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, g := range []Grain{Minute, Hour} {
		list, total, err := b.Series(t.Context(), Query{Account: account, From: Hour.Start(noon.Add(-4 * time.Hour)), To: noon.Add(time.Hour), Grain: g, By: []Dimension{Route}, Whole: true, Page: paging.Page{Limit: 10}})
		if err != nil || total != 2 || len(list) != 2 || list[0].Start != nil || *list[0].Route != "a" || list[0].Requests != 12 || list[1].Requests != 2 || list[0].Latency == nil {
			t.Errorf("%s: %+v %v", g, list, err)
		}
	}
}
