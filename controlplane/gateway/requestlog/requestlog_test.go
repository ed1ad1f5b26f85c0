package requestlog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/filters/edgeapi"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/platform/limits/growth"
	"sluice.dev/sluice/platform/storage/postgres/pgtest"
)

// bundle is a request log in a database of its own, and its clock.
type bundle struct {
	Store
	now *time.Time
}

func setup(t testing.TB) bundle {
	now := time.Date(2026, 3, 4, 12, 0, 1, 0, time.UTC)
	b := bundle{now: &now}
	b.Store = Store{DB: pgtest.Pool(t), DocsBase: "http://gw", Now: func() time.Time { return *b.now }}
	return b
}

// request is one that ended just now.
func (b bundle) request(id, account string, status int) Request {
	return Request{Request: edgeapi.Request{ID: id, Time: *b.now, Method: "GET", Path: "/v1/x", Status: status, Route: "r", Account: account, Key: "key_of_" + account}}
}

func (b bundle) add(t testing.TB, list ...Request) Taken {
	t.Helper()
	taken, err := b.Add(t.Context(), "edge-1", list, nil)
	if err != nil {
		t.Fatal(err)
	}
	return taken
}

// list returns the ids that a query finds.
func (b bundle) list(t testing.TB, account, query string) string {
	t.Helper()
	q, _ := url.ParseQuery(query)
	f, err := ParseFilter(q)
	if err != nil {
		t.Fatal(err)
	}
	f.Account = account
	p, err := b.List(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, r := range p.Data {
		ids = append(ids, r.ID)
	}
	return strings.Join(ids, " ")
}

func TestRequestsAreFoundByWhatOneLooksFor(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for i, status := range []int{200, 404, 429, 500, 503} {
		*b.now = b.now.Add(time.Second)
		r := b.request(fmt.Sprint(status), []string{"acct_a", "acct_b", ""}[i%3], status)
		r.Route, r.Product = fmt.Sprint("route", i%2), "p"
		b.add(t, r)
	}
	for query, want := range map[string]string{
		"": "503 500 429 404 200", "status=5xx": "503 500", "status=429": "429", "status=failed": "503 500 429 404", "status=2xx": "200", "status=4xx&route=route1": "404",
		"key=key_of_acct_a": "500 200", "method=get&limit=2": "503 500", "method=post": "", "product=p&limit=1": "503", "since=2026-03-04T12:00:04Z": "503 500",
	} {
		if got := b.list(t, "", query); got != want {
			t.Errorf("%q: %s, want %s", query, got, want)
		}
	}
	if got := b.list(t, "acct_b", ""); got != "503 404" {
		t.Errorf("an account's: %s", got)
	}
	if _, err := b.Get(t.Context(), "acct_a", "503"); apierror.Code(err) != decision.NotFound {
		t.Errorf("another account's: %v", err)
	}
	if r, err := b.Get(t.Context(), "acct_b", "503"); err != nil || r.Edge != "edge-1" || r.EndedAt.IsZero() || r.Explanation == "" {
		t.Errorf("%+v %v", r, err)
	}
}

// Pages follow each other whole, whatever comes in front meanwhile.
func TestPages(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for i := range 7 {
		*b.now = b.now.Add(time.Second)
		b.add(t, b.request(fmt.Sprint(i), "a", 500))
	}
	f, got := Filter{Limit: 3}, ""
	for {
		p, err := b.List(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range p.Data {
			got += r.ID
		}
		if p.Next == nil {
			break
		}
		cursor, ok := parseCursor(p.Next.String())
		if !ok {
			t.Fatal(p.Next)
		}
		f.Before = cursor
		*b.now = b.now.Add(time.Second)
		b.add(t, b.request("new"+got, "a", 500))
	}
	if got != "6543210" {
		t.Error(got)
	}
}

// A batch that is sent twice is stored once.
func TestABatchTwice(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, want := range []int64{1, 0} {
		if got := b.add(t, b.request("1", "a", 500)); got.Stored != want {
			t.Errorf("%+v, want %d stored", got, want)
		}
	}
}

// What is a day old is not shown, and what is older than the slots go round is gone,
// whether or not anything arrives.
func TestADayLater(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.add(t, b.request("1", "a", 500))
	began := *b.now
	*b.now = began.Add(Kept - time.Second)
	if got := b.list(t, "", ""); got != "1" {
		t.Errorf("after nearly a day: %q", got)
	}
	*b.now = began.Add(Kept + time.Second)
	if got := b.list(t, "", ""); got != "" {
		t.Errorf("after a day: %q", got)
	}
	if _, err := b.Get(t.Context(), "", "1"); apierror.Code(err) != decision.NotFound {
		t.Error(err)
	}
	rows := func() (n int) {
		if err := b.DB.QueryRow(t.Context(), `SELECT count(*) FROM request_log`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	*b.now = began.Add(slots * slotLength)
	if err := b.Sweep(t.Context()); err != nil || rows() != 0 {
		t.Errorf("%d rows are left: %v", rows(), err)
	}
	b.add(t, b.request("2", "a", 500))
	*b.now = b.now.Add(slots * slotLength)
	if b.add(t, b.request("3", "a", 500)); rows() != 1 {
		t.Errorf("%d rows after the slot was used again", rows())
	}
}

// Room is given out over time, an account has a share of it, and failures have more
// than the others; what does not fit is counted.
func TestRoomIsBoundedAndShared(t *testing.T) {
	t.Parallel()
	b := setup(t)
	list := func(account string, status, n int) (list []Request) {
		for range n {
			list = append(list, b.request("x", account, status))
		}
		return list
	}
	for _, c := range []struct {
		name  string
		list  []Request
		taken int
		part  float64
		want  int
	}{
		{"one account at the beginning", list("a", 500, 10_000), 0, 0, slotBurst / shareOf},
		{"one account, successes", list("a", 200, 10_000), 0, 0, slotBurst / successOf / shareOf},
		{"one account in the middle", list("a", 500, 80_000), 0, 0.5, (slotBurst + (slotRows-slotBurst)/2) / shareOf},
		{"a full slot", list("a", 500, 10), slotRows, 1, 0},
		{"an almost full slot", list("a", 500, 10), slotRows - 3, 1, 3},
		{"a slot that is full for successes", list("a", 200, 10), slotRows / 2, 1, 0},
	} {
		fit, out := within(c.list, c.taken, map[string]int{}, c.part)
		if len(fit) != c.want || out["a"] != int64(len(c.list)-c.want) {
			t.Errorf("%s: %d fit, want %d; %v", c.name, len(fit), c.want, out)
		}
	}
	if _, err := b.Add(t.Context(), "e", nil, map[string]int64{"a": 7}); err != nil {
		t.Fatal(err)
	}
	if p, err := b.List(t.Context(), Filter{Account: "a", Limit: 1}); err != nil || p.Dropped != 7 {
		t.Errorf("%+v %v", p, err)
	}
	if p, err := b.List(t.Context(), Filter{Account: "b", Limit: 1}); err != nil || p.Dropped != 0 {
		t.Errorf("another account: %+v %v", p, err)
	}
}

// A receiver says what routes are, names the code of what Envoy answers itself, and
// leaves out what cannot be.
func TestReceiver(t *testing.T) {
	t.Parallel()
	b := setup(t)
	d := config.Document{Classes: []config.Class{{Name: "usual"}}, Routes: []config.Route{{Name: "r", Path: "/v1/x/{id}", Product: "p"}}}
	r := NewReceiver(&Receiver{Store: b.Store, Latest: func(context.Context) (config.Version, error) { return config.Version{Number: 1, Document: d}, nil }}, nil)
	slow, late, future := b.request("slow", "a", 504), b.request("late", "a", 500), b.request("future", "a", 500)
	slow.Detail, late.Time, future.Time = "response_timeout", b.now.Add(-25*time.Hour), b.now.Add(time.Hour)
	body, _ := json.Marshal(map[string]any{"edge": "e", "new_field": 1, "requests": []any{slow.Request, late.Request, future.Request}})
	w := httptest.NewRecorder()
	r.ServeHTTP(w, httptest.NewRequest(http.MethodPost, edgeapi.RequestsPath, strings.NewReader(string(body))))
	if w.Code != http.StatusNoContent {
		t.Fatal(w.Code, w.Body)
	}
	if got := b.list(t, "", ""); got != "slow" {
		t.Errorf("stored %q", got)
	}
	got, err := b.Get(t.Context(), "", "slow")
	if err != nil || got.PathTemplate != "/v1/x/{id}" || got.Class != "usual" || got.Product != "p" || got.Code != string(decision.GatewayTimeout) || got.DocumentationURL == "" {
		t.Errorf("%+v %v", got, err)
	}
	for _, body := range []string{`{`, `{}`, `[]`, `{"edge":"e","requests":[` + strings.Repeat(`{},`, edgeapi.MaxRequestBatch) + `{}]}`} {
		w := httptest.NewRecorder()
		r.ServeHTTP(w, httptest.NewRequest(http.MethodPost, edgeapi.RequestsPath, strings.NewReader(body)))
		if w.Code != http.StatusBadRequest {
			t.Errorf("%.20s: %d", body, w.Code)
		}
	}
}

// Requests that passed in the shadow of a refusal are found by what it would have been.
func TestRequestsInTheShadowAreFound(t *testing.T) {
	t.Parallel()
	b := setup(t)
	list := []Request{b.request("good", "a", 200), b.request("scope", "a", 200), b.request("limit", "b", 201)}
	list[1].WouldRefuse, list[2].WouldRefuse = "AUTH_002", "rate_limit_exceeded"
	if _, err := b.Add(t.Context(), "e", list, nil); err != nil {
		t.Fatal(err)
	}
	for query, want := range map[string]int{"": 3, "would_refuse=any": 2, "would_refuse=AUTH_002": 1, "would_refuse=AUTH_001": 0, "would_refuse=any&status=201": 1} {
		q, _ := url.ParseQuery(query)
		f, err := ParseFilter(q)
		if err != nil {
			t.Fatal(err)
		}
		page, err := b.List(t.Context(), f)
		if err != nil || len(page.Data) != want {
			t.Errorf("%q: %d, want %d: %v", query, len(page.Data), want, err)
		}
	}
}

func TestExplain(t *testing.T) {
	t.Parallel()
	for want, r := range map[string]edgeapi.Request{
		"Refused at the edge: AUTH_002, key_1 lacks the scope streams:write.": {Status: 403, Code: "AUTH_002", Key: "key_1", Reason: "scope is not granted to this credential; expected: streams:write"},
		"Product p answered 404.": {Status: 404, Product: "p", Detail: viaUpstream},
		"The edge answered 504: product p did not answer within the route's timeout.":                            {Status: 504, Product: "p", Code: "gateway_timeout", Flags: "UT"},
		"The edge answered 503: the connection to product p failed (delayed connect error: Connection refused).": {Status: 503, Product: "p", Flags: "UF,URX", Failure: "delayed connect error: Connection refused"},
		"The client closed the connection before it had the whole response.":                                     {Flags: "DC"},
		"The edge answered 200.": {Status: 200, Detail: "direct_response"},
		"Product p answered 201. It passed because its route has that in the shadow, or the edge would have refused it: AUTH_002, key_1 lacks the scope clips:write.": {Status: 201, Product: "p", Detail: viaUpstream, Key: "key_1",
			WouldRefuse: "AUTH_002", WouldReason: "scope is not granted to this credential; expected: clips:write"},
	} {
		if got := explain(r); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestSteps(t *testing.T) {
	t.Parallel()
	at := func(n int64) *int64 { return &n }
	r := Request{}
	r.Timings = edgeapi.Timings{Received: at(5), Forwarded: at(20), FirstByte: at(80), Answered: at(90), Total: 100}
	var got []string
	for _, s := range r.Steps() {
		got = append(got, fmt.Sprintf("%s %d %.1f-%.1f", s.Name, s.Took, s.FromPart, s.ToPart))
	}
	if want := "check at the edge 20 0.0-0.2,wait for the upstream 60 0.2-0.8,receive its response 10 0.8-0.9,send it to the client 10 0.9-1.0"; strings.Join(got, ",") != want {
		t.Error(got)
	}
	r.Timings = edgeapi.Timings{Received: at(5), Total: 9}
	if steps := r.Steps(); len(steps) != 2 || steps[1].Took != 4 {
		t.Errorf("%+v", steps)
	}
	r.Timings = edgeapi.Timings{Forwarded: at(5), Total: 0}
	if steps := r.Steps(); len(steps) != 2 || steps[1].Took != 0 {
		t.Errorf("%+v", steps)
	}
}

// Every route has its operation, and answers as it says.
func TestDocumentHasTheRoutes(t *testing.T) {
	t.Parallel()
	r := chi.NewRouter()
	Store{}.Routes(r, httpapi.Adapter{})
	for _, path := range []string{"/v1/requests", "/v1/requests/{id}"} {
		if !strings.Contains(string(OpenAPI), "  "+path+":\n") || !r.Match(chi.NewRouteContext(), http.MethodGet, path) {
			t.Error(path)
		}
	}
}

func FuzzParseBatch(f *testing.F) {
	f.Add([]byte(`{"edge":"e","dropped":{"a":1},"requests":[{"id":"1","time":"2026-03-04T12:00:00Z","status":500,"scopes":["a"],"timings":{"total_us":5}}]}`))
	now := time.Date(2026, 3, 4, 12, 0, 1, 0, time.UTC)
	f.Fuzz(func(t *testing.T, raw []byte) {
		growth.Linear(t, len(raw), 512, 64<<10, func() { _, _ = ParseBatch(raw, now) })
		b, err := ParseBatch(raw, now)
		for _, r := range b.Requests {
			if err == nil && (r.ID == "" || len(r.Path) > maxText || len(r.Scopes) > maxList || strings.Contains(r.Path+r.Host, "\x00") || r.Status > 999) {
				t.Errorf("%+v", r)
			}
		}
	})
}

func FuzzParseFilter(f *testing.F) {
	f.Add("status=5xx&route=r&cursor=1700000000000000.id&since=2026-01-31T12:00:00Z&limit=3")
	f.Fuzz(func(t *testing.T, text string) {
		q, err := url.ParseQuery(text)
		if err != nil {
			return
		}
		growth.Linear(t, len(text), 64, 32<<10, func() { _, _ = ParseFilter(q) })
		got, err := ParseFilter(q)
		if e, ok := errors.AsType[*apierror.Error](err); err != nil && (!ok || e.Code != decision.InvalidRequest) {
			t.Error(err)
		}
		if err == nil && (got.Limit < 1 || got.Limit > 100 || !plain(got.Route+got.Before.ID)) {
			t.Errorf("%+v", got)
		}
	})
}
