package dashboard

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/controlplane/accounts"
	"sluice.dev/sluice/controlplane/gateway/requestlog"
	"sluice.dev/sluice/filters/edgeapi"
	"sluice.dev/sluice/filters/x402"
	"sluice.dev/sluice/platform/events"
	"sluice.dev/sluice/platform/storage/postgres"
	"sluice.dev/sluice/workers/schedules"
	"sluice.dev/sluice/workers/schedules/definition"
	"sluice.dev/sluice/workers/webhooks"
)

// filled is an account with something in every list.
type filled struct {
	account                         accounts.Account
	key, webhook, schedule, request string
	delivery                        int64
}

// exec changes the database as edges and workers would.
func (b *bundle) exec(t testing.TB, sql string, args ...any) {
	t.Helper()
	if _, err := b.db.Exec(t.Context(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

// fill makes an account whose receiver fails, whose schedule is being tried again, and whose
// requests have met everything.
func (b *bundle) fill(t testing.TB) (f filled) {
	t.Helper()
	var err error
	if f.account, err = (accounts.Store{DB: b.db}).Create(t.Context(), "Acme Broadcasting", "pro"); err != nil {
		t.Fatal(err)
	}
	f.key = b.key(t, f.account.ID, "streams:read", "streams:write", "clips:write").ID
	b.exec(t, `UPDATE api_keys SET last_used_at = now(), last_used_ip = '192.0.2.7' WHERE id = $1`, f.key)
	b.fillWebhook(t, &f)
	b.fillSchedule(t, &f)
	b.fillRequests(t, &f)
	b.fillPayments(t, f.request)
	b.streams(t)
	b.serve()
	return f
}

// fillWebhook makes an endpoint that has refused an event three times, with another body the
// last time.
func (b *bundle) fillWebhook(t testing.TB, f *filled) {
	t.Helper()
	sub, err := b.Config.Webhooks.Create(t.Context(), f.account.ID, webhooks.Create{URL: "http://127.0.0.1:9/hooks/of/acme?with=a-long-address-that-has-to-go-somewhere",
		Events: []string{"stream.*", "recording.*"}, Secret: "a secret of sixteen", Description: "Newsroom"})
	if err != nil {
		t.Fatal(err)
	}
	f.webhook = sub.ID
	event := events.Event{Account: f.account.ID, Type: "stream.ended", Time: time.Now(), Data: map[string]any{"stream_id": "strm_1", "title": "It's on"}}
	if err := postgres.InTx(t.Context(), b.db, func(tx pgx.Tx) error { return b.Config.Webhooks.EmitTx(t.Context(), tx, event) }); err != nil {
		t.Fatal(err)
	}
	if err := b.db.QueryRow(t.Context(), `SELECT id FROM webhook_deliveries WHERE subscription_id = $1`, sub.ID).Scan(&f.delivery); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		body := "busy"
		if i == 2 {
			body = "<b>down</b>"
		}
		b.exec(t, `INSERT INTO webhook_attempts (delivery_id, number, url, started_at, duration_ms, outcome, status_code, error, response_headers, response_body, next_attempt_at)
			VALUES ($1, $2, $3, now() - make_interval(mins => $4), 120, 'failed', 503, 'status 503', '{"Server": "nginx"}', $5, now() + interval '5 minutes')`, f.delivery, i+1, sub.URL, 30-10*i, []byte(body))
	}
	b.exec(t, `UPDATE webhook_deliveries SET failures = 3, next_attempt_at = now() + interval '5 minutes' WHERE id = $1`, f.delivery)
	b.exec(t, `UPDATE webhook_subscriptions SET failing_since = now() - interval '30 minutes' WHERE id = $1`, sub.ID)
}

// fillSchedule makes a schedule that has run once, and whose run of now is to be tried again.
func (b *bundle) fillSchedule(t testing.TB, f *filled) {
	t.Helper()
	d := definition.Definition{Name: "Nightly report of everything that was on", Type: definition.TypeCustom, Schedule: definition.Timing{Type: definition.Recurring, Cron: "21 */3 * * *", Timezone: "Europe/Berlin"}}
	made, err := b.Config.Schedules.Create(t.Context(), f.account.ID, d)
	if err != nil {
		t.Fatal(err)
	}
	f.schedule = made.ID
	for i, status := range []string{schedules.Success, schedules.Executing} {
		b.exec(t, `INSERT INTO schedule_executions (id, schedule_id, scheduled_for, status, run_at, executed_at, lease_until, finished_at, attempts, duration_ms, result, logs)
			VALUES ($1, $2, now() - make_interval(hours => $3), $4, now(), now() - make_interval(hours => $3), now() + interval '1 hour', CASE WHEN $4 = 'success' THEN now() END, $5, 37206,
			'{"message": "the receiver answered 503"}', ARRAY['2026-11-23T01:00:00.000Z attempt 1: status 503'])`,
			fmt.Sprintf("exec_%026d", i), made.ID, 3-3*i, status, 1+i)
	}
}

// fillRequests records requests, and counts them.
func (b *bundle) fillRequests(t testing.TB, f *filled) {
	t.Helper()
	f.request = "0f3a4c52-7a51-4a0e-9a3b-2f6f5f6d1a01"
	var list []requestlog.Request
	for i, status := range []int{503, 200, 404, 429} {
		id := f.request
		if i > 0 {
			id = fmt.Sprintf("0f3a4c52-7a51-4a0e-9a3b-2f6f5f6d1b%02d", i)
		}
		list = append(list, requestlog.Request{Request: edgeapi.Request{ID: id, Time: time.Now().Add(-time.Duration(i) * time.Minute), Method: "GET", Path: "/v1/streams/strm_1", Status: status,
			Route: "streams.get", Product: "media", Account: f.account.ID, Key: f.key, Client: "192.0.2.7", Timings: edgeapi.Timings{Total: 12_345}}})
	}
	if _, err := b.Requests.Add(t.Context(), "edge-1", list, nil); err != nil {
		t.Fatal(err)
	}
	latency := "{0,0,5,20,9,3,1,0,0,1" + strings.Repeat(",0", 10) + "}"
	for class, n := range map[int]int{2: 31, 4: 5, 5: 3} {
		b.exec(t, `INSERT INTO usage_counts (account_id, grain, at, key_id, product, route, class, requests, refused, bytes_in, bytes_out, latency)
			SELECT $1, 0, date_trunc('minute', now()) - make_interval(mins => i), $2, 'media', 'streams.get', $3, $4 * (1 + i % 7), 1, 100, 20000, $5 FROM generate_series(0, 59) i`,
			f.account.ID, f.key, class, n, latency)
	}
}

// fillPayments makes two payments that are settled, and one that is not.
func (b *bundle) fillPayments(t testing.TB, request string) {
	t.Helper()
	payer := "0x" + strings.Repeat("ab12", 10)
	for i, state := range []string{"settled", "settled", "granted"} {
		kept, err := json.Marshal(map[string]any{"Payment": x402.Payment{From: payer, To: payer, Value: "12500"}, "Requirement": x402.Requirement{Resource: "http://gw/v1/clips"}})
		if err != nil {
			t.Fatal(err)
		}
		b.exec(t, `INSERT INTO x402_payments (id, network, chain, asset, payer, nonce, pay_to, amount, resource, route, account, request_id, authorization_json, state, transaction, ended_at)
			VALUES ($1, 'base-sepolia', 84532, '0x036cbd53842c5426634e7929541ec2318f3dcf7e', $2, $3, $2, 12500, 'http://gw/v1/clips', 'clips.create', '', $7, $4, $5, $6,
			CASE WHEN $5 = 'settled' THEN now() END)`, fmt.Sprintf("xpay_%020d", i), payer, fmt.Sprintf("0x%064d", i), kept, state, "0x"+strings.Repeat("c0ffee12", 8), request)
	}
}

// pages are those of everything that is there.
func (f filled) pages() []string {
	webhook, schedule := "/webhooks/"+f.webhook, "/schedules/"+f.schedule
	return []string{"", "/requests", "/requests/" + f.request, "/edges", "/routes", "/config", "/config/1", "/keys", "/keys/" + f.key, "/keys/" + f.key + "/revoke", "/usage", "/schedules", schedule,
		"/webhooks", webhook, fmt.Sprintf("%s/deliveries/%d", webhook, f.delivery), "/payments", "/audit",
		"/accounts", "/accounts/" + f.account.ID, "/accounts/" + f.account.ID + "/suspend", "/people", "/access", "/apps", "/billing", "/streams", "/routes/products", "/routes/plans", "/search?q=no-such-thing", "/nothing"}
}
