package schedules_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"sluice.dev/sluice/platform/clock/clocktest"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/platform/http/idempotency"
	"sluice.dev/sluice/platform/http/identity"
	"sluice.dev/sluice/platform/outbound"
	"sluice.dev/sluice/platform/storage/postgres/pgtest"
	"sluice.dev/sluice/platform/storage/secretbox"
	"sluice.dev/sluice/workers/schedules"
	"sluice.dev/sluice/workers/schedules/definition"
	"sluice.dev/sluice/workers/schedules/product"
	"sluice.dev/sluice/workers/schedules/run"
	"sluice.dev/sluice/workers/webhooks"
)

const owner, stranger = "acct_0000000000001", "acct_0000000000002"

// fakeStreams is the product: it records actions and fails as told.
type fakeStreams struct {
	acts []string
	errs []error // one for each coming call; none left: success
}

func (f *fakeStreams) Act(_ context.Context, by product.Caller, a definition.Action) (product.Outcome, error) {
	f.acts = append(f.acts, by.Account+" "+by.Plan+" "+a.StreamID+" "+a.Action+" "+a.Settings["quality"])
	if len(f.errs) > 0 {
		err := f.errs[0]
		f.errs = f.errs[1:]
		return product.Outcome{}, err
	}
	return product.Outcome{StreamID: a.StreamID, Action: a.Action + "ed", Message: "Stream " + a.Action + "ed"}, nil
}

// bundle is a service on a database of its own, with a clock that stands at
// noon.
type bundle struct {
	t       testing.TB
	clock   *clocktest.Clock
	pool    *pgxpool.Pool
	service *schedules.Service
	streams *fakeStreams
	runner  run.Runner
	handler http.Handler
}

func setup(t testing.TB) *bundle {
	t.Helper()
	pool := pgtest.Pool(t)
	b := &bundle{t: t, pool: pool, clock: clocktest.New(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)), streams: &fakeStreams{}}
	b.exec(`INSERT INTO accounts (id, name, plan) VALUES ($1, 'Owner', 'pro'), ($2, 'Stranger', 'free')`, owner, stranger)
	quiet := slog.New(slog.DiscardHandler)
	jobs, err := river.NewClient(riverpgxv5.New(pool), &river.Config{Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	box, err := secretbox.New(strings.Repeat("k", secretbox.MinKey))
	if err != nil {
		t.Fatal(err)
	}
	client := outbound.New(outbound.Config{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	events := webhooks.New(webhooks.Config{DB: pool, Jobs: jobs, Box: box, Client: client, Now: b.clock.Now, Log: quiet})
	b.service = schedules.New(schedules.Config{
		DB: idempotency.DB{Pool: pool}, Jobs: jobs, Events: events, Box: box, CheckURL: client.CheckURL, Now: b.clock.Now, Log: quiet, Batch: 100})
	b.runner = run.Runner{Store: b.service, Streams: b.streams, Webhook: client, Now: b.clock.Now, Jitter: func() float64 { return 0 }, Log: quiet}
	router, answers := chi.NewRouter(), httpapi.Adapter{Log: quiet}
	router.Use(idempotency.New(idempotency.Config{DB: pool, Respond: answers, Now: b.clock.Now}).Wrap)
	b.service.Routes(router, answers)
	b.handler = router
	return b
}

func (b *bundle) exec(sql string, args ...any) {
	b.t.Helper()
	if _, err := b.pool.Exec(b.t.Context(), sql, args...); err != nil {
		b.t.Fatal(err)
	}
}

// answer is a response with its JSON body.
type answer struct {
	t      testing.TB
	status int
	header http.Header
	raw    string
	body   map[string]any
}

// call makes a request as an account; an empty one is an agent without account.
func (b *bundle) call(account, method, path, body string, headers ...string) answer {
	b.t.Helper()
	r := httptest.NewRequest(method, path, bytes.NewBufferString(body))
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	r = r.WithContext(identity.With(b.t.Context(), identity.Caller{Account: account, Key: "key_1"}))
	w := httptest.NewRecorder()
	b.handler.ServeHTTP(w, r)
	checkContract(b.t, r, w)
	raw, _ := io.ReadAll(w.Body)
	a := answer{t: b.t, status: w.Code, header: w.Header(), raw: string(raw)}
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &a.body); err != nil {
			b.t.Fatalf("%s %s answered %q", method, path, raw)
		}
	}
	return a
}

func (b *bundle) do(method, path, body string, headers ...string) answer {
	b.t.Helper()
	return b.call(owner, method, path, body, headers...)
}

// want fails unless the status is the one given.
func (a answer) want(status int) answer {
	a.t.Helper()
	if a.status != status {
		a.t.Fatalf("status %d, want %d: %s", a.status, status, a.raw)
	}
	return a
}

// at returns the member at a dotted path.
func (a answer) at(path string) any {
	var v any = a.body
	for name := range strings.SplitSeq(path, ".") {
		m, _ := v.(map[string]any)
		v = m[name]
	}
	return v
}

func (a answer) text(path string) string {
	s, _ := a.at(path).(string)
	return s
}

// items returns the data of a list.
func (a answer) items() (list []map[string]any) {
	all, _ := a.body["data"].([]any)
	for _, item := range all {
		list = append(list, item.(map[string]any))
	}
	return list
}

// create makes a schedule from its timing and further members, and returns its
// id.
func (b *bundle) create(name, timing, more string) string {
	b.t.Helper()
	body := `{"name":"` + name + `","type":"custom","schedule":` + timing + more + `}`
	return b.do("POST", "/v1/events/schedules", body).want(201).text("id")
}

// fire claims until nothing is due.
func (b *bundle) fire() (started int) {
	b.t.Helper()
	for {
		fired, err := b.service.FireDue(b.t.Context(), nil, false)
		if err != nil {
			b.t.Fatal(err)
		}
		started += fired.Started
		if !fired.Full {
			return started
		}
	}
}

// executions lists a schedule's executions with one of the statuses, oldest
// first.
func (b *bundle) executions(schedule string, statuses ...string) []string {
	b.t.Helper()
	rows, err := b.pool.Query(b.t.Context(), `SELECT id FROM schedule_executions WHERE schedule_id = $1 AND status = ANY ($2)
		ORDER BY scheduled_for, id`, schedule, statuses)
	if err != nil {
		b.t.Fatal(err)
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		b.t.Fatal(err)
	}
	return ids
}

// work makes one attempt of each execution of a schedule that is under way, and
// returns the last wait asked for.
func (b *bundle) work(schedule string) (again time.Duration) {
	b.t.Helper()
	for _, id := range b.executions(schedule, schedules.Executing) {
		var err error
		if again, err = b.runner.Run(b.t.Context(), id); err != nil {
			b.t.Fatal(err)
		}
	}
	return again
}

// records returns the execution records that the API shows, latest first.
func (b *bundle) records(schedule string) []map[string]any {
	b.t.Helper()
	return b.do("GET", "/v1/events/schedules/"+schedule+"/executions", "").want(200).items()
}
