package app

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"sluice.dev/sluice/controlplane/accounts/seed"
	"sluice.dev/sluice/filters/identityheader"
	"sluice.dev/sluice/media"
	"sluice.dev/sluice/media/phone"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/platform/http/identity"
	"sluice.dev/sluice/platform/storage/postgres/pgtest"
	"sluice.dev/sluice/web/api"
	"sluice.dev/sluice/web/openapi"
	"sluice.dev/sluice/web/openapi/bodies"
)

var edgeSecret = []byte("0123456789abcdef0123456789abcdef")

// platform is the control plane's two APIs and the media product's, over one database.
type platform struct {
	t              *testing.T
	db             *pgxpool.Pool
	seeded         seed.Result
	api, adm, prod http.Handler
	needed         map[string]map[string]string // by table: what its columns take that have no default
}

func newPlatform(t *testing.T) *platform {
	t.Helper()
	p := &platform{t: t, needed: map[string]map[string]string{}}
	address := pgtest.URL(t)
	var err error
	if p.db, err = pgxpool.New(t.Context(), address); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.db.Close)
	set := map[string]string{"SLUICE_DATABASE_URL": address, "SLUICE_IDENTITY_SECRETS": strings.Repeat("0", 64), "SLUICE_SECRETS_KEY": strings.Repeat("0", 64)}
	respond := httpapi.Adapter{Bodies: bodies.New(everything)}
	c, err := newControlPlane(&process{Environment: settings(set), pool: p.db, metrics: prometheus.NewRegistry(), respond: respond})
	if err != nil {
		t.Fatal(err)
	}
	all, err := c.surfaces()
	if err != nil {
		t.Fatal(err)
	}
	all.Identity = identity.Verifier{Secrets: func() [][]byte { return [][]byte{edgeSecret} }}
	if p.seeded, err = seed.Local(t.Context(), p.db, seed.Config{Sessions: all.Sessions}); err != nil {
		t.Fatal(err)
	}
	p.api, p.adm = api.Public(all), api.Admin(all)
	p.prod = media.New(media.Config{DB: p.db, Identity: all.Identity, Respond: respond, Now: time.Now, FFmpeg: "/bin/true", Phone: phone.Settings{Available: true}})
	return p
}

// get answers a request as whoever may make it.
func (p *platform) get(path string) (status int, v map[string]any) {
	p.t.Helper()
	r := httptest.NewRequest(http.MethodGet, path, nil)
	h := p.api
	signed := identityheader.Sign(edgeSecret, identityheader.Caller{Account: p.seeded.Account, Key: "key_0000000000001", Scopes: []string{"*"}}, time.Now().Unix())
	switch {
	case strings.HasPrefix(path, "/admin/"):
		h = p.adm
		r.Header.Set("Authorization", "Bearer "+p.seeded.AdminKey)
	case strings.HasPrefix(path, "/v1/auth/keys"):
		r.Header.Set("Authorization", "Bearer "+p.seeded.SessionToken)
	case slices.ContainsFunc([]string{"/v1/auth", "/v1/users", "/v1/billing", "/v1/events", "/v1/webhooks", "/v1/requests"}, func(s string) bool { return strings.HasPrefix(path, s) }):
		r.Header.Set(identityheader.Header, signed)
	default:
		h = p.prod
		r.Header.Set(identityheader.Header, signed)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	_ = json.Unmarshal(w.Body.Bytes(), &v) // v says it: it is nil
	return w.Code, v
}

// insert adds a row, of which only what matters is given, as SQL; the rest is empty.
func (p *platform) insert(table string, row map[string]string) {
	p.t.Helper()
	if p.needed[table] == nil {
		rows, err := p.db.Query(p.t.Context(), `SELECT column_name, data_type FROM information_schema.columns
			WHERE table_schema = 'public' AND table_name = $1 AND is_nullable = 'NO' AND column_default IS NULL AND is_identity = 'NO' AND is_generated = 'NEVER'`, table)
		if err != nil {
			p.t.Fatal(err)
		}
		p.needed[table] = map[string]string{}
		empty := map[string]string{"text": "''", "jsonb": "'{}'", "json": "'{}'", "ARRAY": "'{}'", "bytea": `''`, "boolean": "false", "timestamp with time zone": "now()", "date": "now()"}
		for rows.Next() {
			var column, kind string
			if err := rows.Scan(&column, &kind); err != nil {
				p.t.Fatal(err)
			}
			value, ok := empty[kind]
			if !ok {
				value = "0"
			}
			p.needed[table][column] = value
		}
	}
	whole := maps.Clone(p.needed[table])
	maps.Copy(whole, row)
	columns := slices.Sorted(maps.Keys(whole))
	values := make([]string, len(columns))
	for i, c := range columns {
		values[i] = whole[c]
	}
	if _, err := p.db.Exec(p.t.Context(), `INSERT INTO `+table+` (`+strings.Join(columns, ", ")+`) VALUES (`+strings.Join(values, ", ")+`)`); err != nil {
		p.t.Fatalf("%s: %v", table, err)
	}
}

// list is a list operation: where it is, the column of its answer that tells entries apart, and how
// entry n comes into being.
type list struct {
	path, id string
	add      func(n int)
}

// text is an SQL text; id one of an identifier that ends with n, at a fixed length.
func text(s string) string { return "'" + s + "'" }

func id(prefix string, length, n int) string { return text(fmt.Sprintf("%s%0*d", prefix, length, n)) }

// at is a time that two neighbours share, in the past.
func at(n int) string { return fmt.Sprintf("timestamptz '2026-01-01' + %d * interval '1 second'", n/2) }

// lists are all of them, by operationId.
func (p *platform) lists() map[string]list {
	account, stream := text(p.seeded.Account), id("strm_", 20, 0)
	p.insert("media_streams", map[string]string{"id": stream, "owner": account, "playback_id": text("base"), "key_hash": `'\x` + strings.Repeat("00", 32) + `'`, "title": text("t"),
		"protocol": text("rtmp"), "status": text("idle"), "playback_policy": text("public"), "created_at": "timestamptz '2000-01-01'"})
	schedule := func(n int) {
		p.insert("schedules", map[string]string{"id": id("schedule_", 5, n), "account_id": account, "name": id("n", 5, n), "type": text("custom"), "status": text("paused"),
			"definition": `'{"type":"custom","schedule":{"type":"one_time"}}'`, "created_at": at(n)})
	}
	schedule(99_999)
	hook := func(n int) {
		p.insert("webhook_subscriptions", map[string]string{"id": id("wh_", 5, n), "account_id": account, "url": id("https://example.com/", 5, n), "events": "'{*}'", "max_concurrency": "1", "created_at": at(n)})
	}
	hook(99_999)
	seq := 0
	event := func(n int) {
		seq++
		p.insert("account_events", map[string]string{"account_id": account, "id": id("evt_", 5, n), "type": text("webhook.disabled"), "occurred_at": at(n), "created_at": at(n), "body": `convert_to('{"data":{}}', 'UTF8')`})
	}
	hash := func(n int) string { return fmt.Sprintf(`'\x%064d'`, n) }
	key := func(n int) {
		p.insert("api_keys", map[string]string{"id": id("key_", 13, n), "account_id": account, "name": id("n", 5, n), "hash": hash(n), "scopes": "'{streams:read}'", "created_at": at(n)})
	}
	invoice := func(n int) {
		p.insert("invoices", map[string]string{"id": id("inv_", 5, n), "account_id": account, "number": id("n", 5, n), "status": text("paid"), "currency": text("EUR"), "issued_at": at(n)})
	}
	requests := func(n int) {
		p.insert("request_log", map[string]string{"id": id("req_", 5, n), "account_id": account, "status": "500", "ended_at": fmt.Sprintf("now() - interval '1 hour' + %d * interval '1 second'", n/2), "record": fmt.Sprintf(`'{"id":"req_%05d"}'`, n)})
	}
	asset := func(kind, prefix string) func(n int) {
		return func(n int) {
			p.insert("media_assets", map[string]string{"id": id(prefix, 20, n), "owner": account, "kind": text(kind), "title": id("t", 5, n), "status": text("failed"), "created_at": at(n)})
		}
	}
	asset("vod", "vod_")(99_999)
	links := func(transport, direction, prefix string) func(n int) {
		return func(n int) {
			own := id("strm_"+transport+direction, 20-len(transport+direction), n)
			p.insert("media_streams", map[string]string{"id": own, "owner": text("another"), "playback_id": own, "key_hash": `'\x` + strings.Repeat("00", 32) + `'`, "title": text("t"),
				"protocol": text("rtmp"), "status": text("idle"), "playback_policy": text("public")})
			p.insert("media_links", map[string]string{"id": id(prefix+transport, 20-len(transport), n), "owner": account, "stream_id": own, "transport": text(transport), "direction": text(direction),
				"name": id(transport, 5, n), "created_at": at(n)})
		}
	}
	all := map[string]list{
		"listKeys":        {"/v1/auth/keys", "id", key},
		"listAccountKeys": {"/admin/v1/accounts/" + p.seeded.Account + "/keys", "id", func(n int) { key(n + 50_000) }},
		"listUsers": {"/v1/users", "id", func(n int) {
			p.insert("users", map[string]string{"id": id("user_", 13, n), "account_id": account, "email": id("u", 5, n), "role": text("member"), "password_hash": text("x"), "created_at": at(n)})
		}},
		"listInvoices":        {"/v1/billing/invoices", "id", invoice},
		"listAccountInvoices": {"/admin/v1/accounts/" + p.seeded.Account + "/invoices", "id", func(n int) { invoice(n + 50_000) }},
		"listPaymentMethods": {"/v1/billing/payment-methods", "id", func(n int) {
			p.insert("payment_methods", map[string]string{"id": id("pm_", 5, n), "account_id": account, "provider": text("ledger"), "reference": id("r", 5, n), "created_at": at(n)})
		}},
		"getUsage": {"/v1/billing/usage?granularity=minute&group_by=route,status&from=2026-01-01&to=2026-01-01", "route", func(n int) {
			p.insert("usage_counts", map[string]string{"account_id": account, "at": "timestamptz '2026-01-01' + " + fmt.Sprint(n/2) + " * interval '1 minute'", "route": id("r", 5, n), "class": "2", "requests": "1", "latency": "array_fill(0::bigint, '{20}')"})
		}},
		"listRequests":    {"/v1/requests", "id", requests},
		"listAllRequests": {"/admin/v1/requests", "id", func(n int) { requests(n + 50_000) }},
		"listEvents":      {"/v1/events", "id", event},
		"listSchedules":   {"/v1/events/schedules", "id", schedule},
		"listExecutions": {"/v1/events/schedules/schedule_99999/executions", "executionId", func(n int) {
			p.insert("schedule_executions", map[string]string{"id": id("exec_", 5, n), "schedule_id": text("schedule_99999"), "status": text("success"), "executed_at": at(n)})
		}},
		"listWebhooks": {"/v1/webhooks", "id", hook},
		"listWebhookDeliveries": {"/v1/webhooks/wh_99999/deliveries", "id", func(n int) {
			event(n + 50_000)
			p.insert("webhook_deliveries", map[string]string{"subscription_id": text("wh_99999"), "event_seq": "(SELECT max(seq) FROM account_events)", "created_at": at(n)})
		}},
		"listWebhookRecoveries": {"/v1/webhooks/wh_99999/recoveries", "id", func(n int) {
			p.insert("webhook_recoveries", map[string]string{"id": id("rec_", 5, n), "subscription_id": text("wh_99999"), "kind": text("recover"), "created_at": at(n)})
		}},
		"listAccounts": {"/admin/v1/accounts", "id", func(n int) {
			p.insert("accounts", map[string]string{"id": id("acct_", 13, n), "name": id("n", 5, n), "plan": text("free"), "created_at": at(n)})
		}},
		"listApps": {"/admin/v1/apps", "client_id", func(n int) {
			p.insert("oauth_apps", map[string]string{"id": id("app_", 13, n), "account_id": account, "name": id("n", 5, n), "redirect_uris": "'{http://a}'", "scopes": "'{a:b}'", "created_at": at(n)})
		}},
		"listAudit": {"/admin/v1/audit", "id", func(n int) { p.insert("audit_log", map[string]string{"action": text("a.b"), "at": at(n)}) }},
		"listConfigVersions": {"/admin/v1/config/versions", "version", func(n int) {
			p.insert("config_versions", map[string]string{"author": text("a"), "created_at": at(n)})
		}},
		"listRevokedCertificates": {"/admin/v1/client-certificates/revoked", "id", func(n int) {
			p.insert("revoked_certificates", map[string]string{"id": id("rcrt_", 26, n), "serial": id("a", 5, n), "created_at": at(n)})
		}},
		"listPayments": {"/admin/v1/payments", "id", func(n int) {
			p.insert("x402_payments", map[string]string{"id": id("pay_", 5, n), "nonce": id("0x", 64, n), "asset": id("0x", 40, 1), "payer": id("0x", 40, 2), "pay_to": id("0x", 40, 3),
				"amount": "1", "state": text("granted"), "created_at": at(n)})
		}},
		"listStreams": {"/v1/streams", "id", func(n int) {
			p.insert("media_streams", map[string]string{"id": id("strm_", 20, n+1), "owner": account, "playback_id": id("p", 5, n), "key_hash": hash(n), "title": id("t", 5, n),
				"protocol": text("rtmp"), "status": text("idle"), "playback_policy": text("public"), "created_at": at(n)})
		}},
		"listVOD":        {"/v1/vod", "id", asset("vod", "vod_")},
		"listRecordings": {"/v1/recordings", "id", asset("recording", "rec_")},
		"listClips":      {"/v1/clips", "id", asset("clip", "clip_")},
		"listPhoneLines": {"/v1/phone/lines", "id", func(n int) {
			p.insert("phone_lines", map[string]string{"id": id("line_", 20, n), "owner": account, "stream_id": stream, "auth": text("digest"), "max_duration": "60", "created_at": at(n)})
		}},
		"listPhoneCalls": {"/v1/phone/calls", "id", func(n int) {
			p.insert("phone_calls", map[string]string{"id": id("call_", 20, n), "owner": account, "direction": text("inbound"), "state": text("completed"), "created_at": at(n)})
		}},
		"listChapters": {"/v1/chapters", "id", func(n int) {
			p.insert("media_chapters", map[string]string{"id": id("chap_", 20, n), "asset_id": id("vod_", 20, 99_999), "title": id("t", 5, n), "start_ms": fmt.Sprint(n), "created_at": at(n)})
		}},
		"listRenders": {"/v1/editor/renders", "id", func(n int) {
			p.insert("media_renders", map[string]string{"id": id("rndr_", 20, n), "owner": account, "title": id("t", 5, n), "status": text("failed"), "request": "'{}'", "created_at": at(n)})
		}},
	}
	for name, transport := range map[string]string{"Dante": "dante", "NDI": "ndi", "OMT": "omt"} {
		all["list"+name+"Inputs"] = list{"/v1/" + transport + "/inputs", "id", links(transport, "in", "inp_")}
		all["list"+name+"Outputs"] = list{"/v1/" + transport + "/outputs", "id", links(transport, "out", "out_")}
	}
	return all
}

// paged are the operations that our documents describe as lists in pages, each with its parameters
// and the orders that it has.
func paged(t *testing.T) map[string][]string {
	t.Helper()
	doc, err := everything()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string][]string{}
	checks := bodies.New(func() (*openapi.Document, error) { return doc, nil })
	for path, item := range doc.Paths {
		operation, ok := item.(map[string]any)["get"].(map[string]any)
		if !ok {
			continue
		}
		if names, _ := checks.Parameters(http.MethodGet, path); slices.Contains(names, "limit") {
			found[operation["operationId"].(string)] = append(names, orders(operation)...)
		}
	}
	return found
}

// orders are those of an operation, as sort=name.
func orders(operation map[string]any) (list []string) {
	parameters, _ := operation["parameters"].([]any)
	for _, one := range parameters {
		of, _ := one.(map[string]any)
		if schema, _ := of["schema"].(map[string]any); of["name"] == "sort" {
			pattern, _ := schema["pattern"].(string)
			for name := range strings.SplitSeq(strings.TrimSuffix(strings.TrimPrefix(pattern, "^-?("), ")$"), "|") {
				list = append(list, "sort="+name, "sort=-"+name)
			}
		}
	}
	return list
}

// Every list that is described goes to its end by cursor, in every order, and has each entry that was
// there on one page and no other, although others come in meanwhile. It refuses what it does not have.
func TestEveryListIsReadToItsEnd(t *testing.T) {
	t.Parallel()
	p := newPlatform(t)
	lists := p.lists()
	described := paged(t)
	for _, operation := range slices.Sorted(maps.Keys(described)) {
		l, ok := lists[operation]
		if !ok {
			t.Errorf("%s is a list that nobody walks", operation)
			continue
		}
		delete(lists, operation)
		names := described[operation]
		if !slices.Contains(names, "cursor") {
			t.Errorf("%s has no cursor", operation)
			continue
		}
		n := 0
		for ; n < 12; n++ {
			l.add(n)
		}
		tried := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !strings.HasPrefix(name, "sort=") })
		if len(tried) == 0 && operation != "listRequests" && operation != "listAllRequests" { // which look at a part of the log at a time
			t.Errorf("%s has no order", operation)
		}
		for _, sort := range append(tried, "") {
			p.walk(operation, l, sort, &n)
		}
		p.refusals(operation, l)
	}
	for operation := range lists {
		t.Errorf("%s is not described as a list", operation)
	}
}

// with adds a query to a path.
func with(path, query string) string {
	if strings.Contains(path, "?") {
		return path + "&" + query
	}
	return path + "?" + query
}

// walk reads a list to its end, and adds entries from number n on.
func (p *platform) walk(operation string, l list, sort string, n *int) {
	p.t.Helper()
	before := p.every(operation, l)
	seen := map[string]int{}
	cursor := ""
	for range 100 {
		status, v := p.get(with(l.path, sort+"&limit=5&cursor="+cursor))
		info, ok := v["pagination"].(map[string]any)
		if status != 200 || !ok {
			p.t.Errorf("%s %s: %d %v", operation, sort, status, v)
			return
		}
		for _, entry := range v["data"].([]any) {
			seen[fmt.Sprint(entry.(map[string]any)[l.id])]++
		}
		var more bool
		if more, cursor = p.shape(operation, info); !more {
			break
		}
		l.add(*n)
		*n++
	}
	for entry, times := range seen {
		if times != 1 {
			p.t.Errorf("%s %s: %s came %d times", operation, sort, entry, times)
		}
	}
	for _, entry := range before {
		if seen[entry] != 1 {
			p.t.Errorf("%s %s: %s, which was there, came %d times", operation, sort, entry, seen[entry])
		}
	}
	if len(before) < 12 {
		p.t.Errorf("%s: %d entries", operation, len(before))
	}
}

// every is what a list holds now, read in one page.
func (p *platform) every(operation string, l list) (ids []string) {
	p.t.Helper()
	_, v := p.get(with(l.path, "limit=100"))
	data, _ := v["data"].([]any)
	for _, entry := range data {
		ids = append(ids, fmt.Sprint(entry.(map[string]any)[l.id]))
	}
	return ids
}

// shape holds the pagination of an answer to its one form, and says what comes next.
func (p *platform) shape(operation string, info map[string]any) (more bool, cursor string) {
	p.t.Helper()
	names := strings.Join(slices.Sorted(maps.Keys(info)), " ")
	if !slices.Contains([]string{"has_more limit next_cursor offset total", "has_more limit next_cursor", "hasMore limit nextCursor offset total"}, names) {
		p.t.Errorf("%s: %s", operation, names)
	}
	m, next := "has_more", "next_cursor"
	if _, camel := info["hasMore"]; camel {
		m, next = "hasMore", "nextCursor"
	}
	more, _ = info[m].(bool)
	cursor, ok := info[next].(string)
	if more != ok {
		p.t.Errorf("%s: %v", operation, info)
	}
	return more, url.QueryEscape(cursor)
}

// refusals are what every list refuses, by name.
func (p *platform) refusals(operation string, l list) {
	p.t.Helper()
	for query, field := range map[string]string{"page=2": "page", "cursor=YWJj": "cursor", "limit=101": "limit", "sort=nothing": "sort", "created_after=soon": ""} {
		status, v := p.get(with(l.path, query))
		e, _ := v["error"].(map[string]any)
		details, _ := e["details"].([]any)
		if status != 400 || len(details) != 1 || field != "" && details[0].(map[string]any)["field"] != field {
			p.t.Errorf("%s?%s: %d %v", operation, query, status, v)
		}
	}
}
