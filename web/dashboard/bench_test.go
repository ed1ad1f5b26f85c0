package dashboard

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/controlplane/accounts"
	"sluice.dev/sluice/controlplane/gateway/requestlog"
	"sluice.dev/sluice/filters/edgeapi"
	"sluice.dev/sluice/workers/schedules/definition"
	"sluice.dev/sluice/workers/webhooks"
)

// How much there is when pages are measured; half of the requests, and all else but the
// accounts, are of one account.
const (
	crowdAccounts   = 200
	crowdRequests   = 10_000
	crowdDeliveries = 2_000
	crowdKeys       = 100
	crowdSchedules  = 100
	crowdChanges    = 5_000
)

// BenchmarkPages loads every page as an operator who looks at a large account, and reports
// the median and the slowest in twenty. `make bench-dashboard` prints it.
func BenchmarkPages(b *testing.B) {
	d := setup(b)
	f := d.fill(b)
	d.crowd(b, f)
	v, whose := d.operator(b), "?account="+f.account.ID
	for _, page := range append(f.pages(), "/usage?span=month&account="+f.account.ID, "/?span=month", "/search?q=Account+1") {
		path := Root + page
		if !strings.Contains(path, "?") {
			path += whose
		}
		b.Run(f.shown(page), func(b *testing.B) {
			var took []time.Duration
			for b.Loop() {
				d.serve() // nothing is remembered from the load before
				v.handler = d.handler
				began := time.Now()
				got := v.get(path)
				took = append(took, time.Since(began))
				if got.Code != http.StatusOK && page != "/nothing" {
					b.Fatal(path, got.Code, got.body)
				}
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "median-ms")
			b.ReportMetric(float64(took[len(took)*19/20].Microseconds())/1000, "p95-ms")
		})
	}
}

// shown is the path of a page without what identifies this account's things.
func (f filled) shown(page string) string {
	if page == "" {
		return "overview"
	}
	return strings.NewReplacer(f.account.ID, "ID", f.key, "ID", f.webhook, "ID", f.schedule, "ID", f.request, "ID", fmt.Sprint(f.delivery), "N").Replace(strings.TrimPrefix(page, "/"))
}

// crowd adds what a platform has that is in use.
func (b *bundle) crowd(t testing.TB, f filled) {
	t.Helper()
	for i := range crowdAccounts - 2 {
		if _, err := (accounts.Store{DB: b.db}).Create(t.Context(), fmt.Sprintf("Account %d", i), "pro"); err != nil {
			t.Fatal(err)
		}
	}
	for range crowdKeys {
		b.key(t, f.account.ID, "streams:read", "clips:write")
	}
	for i := range crowdSchedules {
		d := definition.Definition{Name: fmt.Sprintf("Schedule %d", i), Type: definition.TypeCustom, Schedule: definition.Timing{Type: definition.Recurring, Cron: "*/15 * * * *", Timezone: "Europe/Berlin"}}
		if _, err := b.Config.Schedules.Create(t.Context(), f.account.ID, d); err != nil {
			t.Fatal(err)
		}
	}
	b.exec(t, `INSERT INTO schedule_executions (id, schedule_id, scheduled_for, status, run_at, executed_at, lease_until, finished_at, attempts, duration_ms, logs)
		SELECT 'exec_c' || lpad(i::text, 25, '0'), $1, now() - make_interval(mins => 15 * i), 'success', now(), now() - make_interval(mins => 15 * i), now(), now(), 1, 20, ARRAY['done']
		FROM generate_series(1, 2000) i`, f.schedule)
	b.crowdRequests(t, f)
	b.crowdDeliveries(t, f)
	b.exec(t, `INSERT INTO audit_log (at, actor, address, request_id, account_id, action, target, after)
		SELECT now() - make_interval(mins => i), $2, '192.0.2.7', 'r' || i, $1, 'key.change', $2, '{"name": "ci"}' FROM generate_series(1, $3) i`, f.account.ID, f.key, crowdChanges)
	b.exec(t, `VACUUM ANALYZE`)
}

// crowdRequests records requests of the last hours, and a month of counts of all accounts.
func (b *bundle) crowdRequests(t testing.TB, f filled) {
	t.Helper()
	rows, err := b.db.Query(t.Context(), `SELECT id FROM accounts ORDER BY id LIMIT 50`)
	if err != nil {
		t.Fatal(err)
	}
	var whose []string
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			t.Fatal(err)
		}
		whose = append(whose, id)
	}
	statuses := []int{200, 200, 200, 201, 404, 429, 503}
	var batch []requestlog.Request
	for i := range crowdRequests {
		account, key := f.account.ID, f.key
		if i%2 == 1 {
			account, key = whose[i/2%len(whose)], ""
		}
		batch = append(batch, requestlog.Request{Request: edgeapi.Request{ID: fmt.Sprintf("0f3a4c52-7a51-4a0e-9a3b-%012d", i), Time: time.Now().Add(-time.Duration(i) * time.Second), Method: "GET",
			Path: fmt.Sprintf("/v1/streams/strm_%d", i%100), Status: statuses[i%len(statuses)], Route: "streams.get", Product: "media", Account: account, Key: key, Client: "192.0.2.7", Timings: edgeapi.Timings{Total: 12_345}}})
		if len(batch) == 500 {
			if _, err := b.Requests.Add(t.Context(), "edge-1", batch, nil); err != nil {
				t.Fatal(err)
			}
			batch = nil
		}
	}
	b.exec(t, `UPDATE usage_progress SET hours = date_trunc('hour', now(), 'UTC'), days = date_trunc('day', now(), 'UTC')`)
	latency := "{0,0,5,20,9,3,1,0,0,1" + strings.Repeat(",0", 10) + "}"
	for grain, c := range map[int]struct {
		step  string
		steps int
	}{0: {"1 minute", 120}, 1: {"1 hour", 14 * 24}, 2: {"1 day", 60}} {
		b.exec(t, `INSERT INTO usage_counts (account_id, grain, at, key_id, product, route, class, requests, refused, bytes_in, bytes_out, latency)
			SELECT a.id, $1, date_trunc(split_part($2, ' ', 2), now(), 'UTC') - i * $2::interval, 'key_0000000000001', 'media', 'route.' || r, class, 7, 1, 100, 20000, $4
			FROM (SELECT id FROM accounts ORDER BY id LIMIT 20) a, generate_series(0, $3) i, generate_series(1, 4) r, unnest(ARRAY[2, 4, 5]) class
			ON CONFLICT DO NOTHING`, grain, c.step, c.steps, latency)
	}
}

// crowdDeliveries makes endpoints that have had events, one of each ten of which they refused.
func (b *bundle) crowdDeliveries(t testing.TB, f filled) {
	t.Helper()
	for i := range 19 {
		_, err := b.Config.Webhooks.Create(t.Context(), f.account.ID, webhooks.Create{URL: fmt.Sprintf("http://127.0.0.1:9/%d", i), Events: []string{"stream.*"}, Secret: "a secret of sixteen"})
		if err != nil {
			t.Fatal(err)
		}
	}
	b.exec(t, `INSERT INTO account_events (account_id, id, type, occurred_at, created_at, body)
		SELECT $1, 'evt_crowd' || i, 'stream.started', now() - make_interval(secs => 30 * i), now() - make_interval(secs => 30 * i), '{}' FROM generate_series(1, $2) i`, f.account.ID, crowdDeliveries)
	// Half of the deliveries are to one endpoint.
	b.exec(t, `INSERT INTO webhook_deliveries (subscription_id, event_seq, status, created_at, finished_at)
		SELECT CASE WHEN e.seq % 2 = 0 THEN $2 ELSE s.ids[1 + e.seq % 19] END, e.seq, CASE WHEN e.seq % 10 = 0 THEN 'failed' ELSE 'succeeded' END, e.created_at, e.created_at
		FROM account_events e, (SELECT array_agg(id ORDER BY id) AS ids FROM webhook_subscriptions WHERE account_id = $1 AND id <> $2) s
		WHERE e.account_id = $1 AND e.id LIKE 'evt_crowd%'`, f.account.ID, f.webhook)
	b.exec(t, `INSERT INTO webhook_attempts (delivery_id, number, url, started_at, duration_ms, outcome, status_code, response_headers, response_body)
		SELECT d.id, 1, 'http://127.0.0.1:9/', d.created_at, 20, d.status, CASE WHEN d.status = 'failed' THEN 503 ELSE 204 END, '{"Server": "nginx"}', ''
		FROM webhook_deliveries d WHERE d.finished_at IS NOT NULL`)
}
