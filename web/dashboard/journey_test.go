package dashboard

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/controlplane/accounts"
	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/workers/payments"
	"sluice.dev/sluice/workers/webhooks"
	"sluice.dev/sluice/workers/webhooks/signature"
)

var (
	anyLink = regexp.MustCompile(`(?:href|data-live)="([^"]*)"`)
	anyForm = regexp.MustCompile(`(?s)<form ([^>]*)>(.*?)</form>`)
	action  = regexp.MustCompile(`action="([^"]*)"`)
)

// Whoever looks at another account stays there, whatever they click: every link and every
// form of every page that can be reached keeps the account, but for the one that leads back.
func TestTheChosenAccountStays(t *testing.T) {
	t.Parallel()
	b := setup(t)
	f, v := b.fill(t), b.operator(t)
	own, other := "account="+b.seeded.Account, "account="+f.account.ID
	var queue []string
	for _, path := range f.pages() {
		at, query, _ := strings.Cut(path, "?")
		queue = append(queue, Root+at+"?"+strings.Trim(query+"&"+other, "&"))
	}
	seen, forms := map[string]bool{}, 0
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		path, _, _ := strings.Cut(at, "?")
		if seen[path] || strings.Contains(path, "/live/") {
			continue
		}
		seen[path] = true
		got := v.get(at)
		if got.Code != http.StatusOK && path != Root+"/nothing" {
			t.Errorf("%s: %d", at, got.Code)
			continue
		}
		if !strings.HasSuffix(path, "/export") && !strings.Contains(got.body, "You are looking at the account <strong>Acme Broadcasting</strong>") {
			t.Errorf("%s does not say whose it is", at)
		}
		for _, m := range anyLink.FindAllStringSubmatch(got.body, -1) {
			link := html.UnescapeString(m[1])
			if !strings.HasPrefix(link, Root) || strings.HasPrefix(link, Root+"/assets/") || strings.Contains(link, own) {
				continue
			}
			if strings.Count(link, other) != 1 {
				t.Errorf("%s leads to %s", at, link)
			}
			queue = append(queue, link)
		}
		for _, m := range anyForm.FindAllStringSubmatch(got.body, -1) {
			to := action.FindStringSubmatch(m[1])
			chooses, leaves := strings.Contains(m[1], "data-own"), to != nil && to[1] == Root+"/sign-out"
			carried := to != nil && strings.Contains(to[1], other)
			if strings.Contains(m[1], `method="get"`) {
				carried = strings.Count(m[2], `name="account" value="`+f.account.ID+`"`) == 1
			}
			if forms++; !carried && !chooses && !leaves {
				t.Errorf("%s: the form %s loses the account", at, m[1])
			}
		}
	}
	if len(seen) < 20 || forms < 60 {
		t.Fatalf("only %d pages with %d forms were found", len(seen), forms)
	}
	done := v.send(t, Root+"/keys/"+f.key+"?"+other, Root+"/keys/"+f.key+"/change?"+other, "name", "new name")
	if to := done.Header().Get("Location"); done.Code != 303 || !strings.Contains(to, other) {
		t.Errorf("after a form: %d %s", done.Code, to)
	}
	if got := v.get(Root + "/keys"); strings.Contains(got.body, "You are looking at") || strings.Contains(strings.Split(got.body, "<main")[1], other) && !strings.Contains(got.body, "<option") {
		t.Error("the account stays where it was not chosen")
	}
}

// What is not a link of ours is left as it is.
func TestCarry(t *testing.T) {
	t.Parallel()
	for page, want := range map[string]string{
		`<a href="/dashboard">`:                                `<a href="/dashboard?account=acct_1">`,
		`<a href="/dashboard/keys?a=b&amp;c=d#make">`:          `<a href="/dashboard/keys?a=b&amp;c=d&amp;account=acct_1#make">`,
		`<a href="/dashboard/keys?account=acct_2">`:            `<a href="/dashboard/keys?account=acct_2">`,
		`<link href="/dashboard/assets/app.1.css">`:            `<link href="/dashboard/assets/app.1.css">`,
		`<form method="post" action="/dashboard/keys">`:        `<form method="post" action="/dashboard/keys?account=acct_1">`,
		`<form method="post" action="/dashboard/sign-out">`:    `<form method="post" action="/dashboard/sign-out">`,
		`<form class="bar" method="get"><input name="q">`:      `<form class="bar" method="get"><input type="hidden" name="account" value="acct_1"><input name="q">`,
		`<form method="get" data-own>`:                         `<form method="get" data-own>`,
		`<p>href=&#34;/dashboard&#34; https://x/dashboard</p>`: `<p>href=&#34;/dashboard&#34; https://x/dashboard</p>`,
	} {
		if got := string(carry([]byte(page), "acct_1")); got != want {
			t.Errorf("%s\n got %s\nwant %s", page, got, want)
		}
		if got := string(carry([]byte(page), "")); got != page {
			t.Errorf("%s is changed where no account is chosen", page)
		}
	}
}

// A receiver that refuses everything is red, with what it did, and so is what waits for
// another attempt.
func TestFailingEndpointsAreRed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	f, v := b.fill(t), b.operator(t)
	of := "?account=" + f.account.ID
	for path, want := range map[string][]string{
		"/webhooks" + of:                   {`<span class="chip bad">failing</span>`, "0 % of 3 succeeded", `class="spark"`, "status 503"},
		"/webhooks/" + f.webhook + of:      {`<span class="chip bad">failing</span>`, `<span class="chip bad">retrying</span>`, "0 % of 3 succeeded"},
		"/schedules/" + f.schedule + of:    {`<span class="chip bad">retrying</span>`, `<span class="chip good">success</span>`, "37.2 s"},
		"/keys/" + f.key + "/nothing" + of: {"Back to Keys", `aria-label="Sections"`, "There is no such page."},
	} {
		got := v.get(Root + path).body
		for _, text := range want {
			if !strings.Contains(got, text) {
				t.Errorf("%s has no %q: %s", path, text, got)
			}
		}
	}
}

// The page of a delivery begins with the last attempt, shows what was sent, signed, what
// differs between attempts, and a command that a receiver accepts.
func TestDeliveriesAreExplained(t *testing.T) {
	t.Parallel()
	b := setup(t)
	f, v := b.fill(t), b.operator(t)
	got := v.get(fmt.Sprintf("%s/webhooks/%s/deliveries/%d?account=%s", Root, f.webhook, f.delivery, f.account.ID))
	if !strings.Contains(got.body, "<details open><summary>Attempt 3: failed, status 503") || strings.Count(got.body, "<details open>") != 1 {
		t.Error("it does not begin with the last attempt:", got.body)
	}
	if strings.Count(got.body, "Webhook-Signature: v1,") != 4 { // of each attempt, and of the command
		t.Errorf("%d signatures: %s", strings.Count(got.body, "Webhook-Signature: v1,"), got.body)
	}
	if !strings.Contains(got.body, `Response body <span class="chip busy">differs</span></th><td class="text">busy</td><td class="text">&lt;b&gt;down&lt;/b&gt;</td>`) {
		t.Error("no difference:", got.body)
	}
	first := v.get(fmt.Sprintf("%s/webhooks/%s/deliveries/%d?account=%s&a=1&b=2", Root, f.webhook, f.delivery, f.account.ID))
	if !strings.Contains(first.body, `Response body</th><td class="text">busy</td><td class="text">busy</td>`) {
		t.Error("the first two are alike:", first.body)
	}
	command := html.UnescapeString(regexp.MustCompile(`(?s)id="curl">(.*?)</pre>`).FindStringSubmatch(got.body)[1])
	header := func(name string) string {
		m := regexp.MustCompile(`-H '` + name + `: ([^']*)'`).FindStringSubmatch(command)
		if m == nil {
			t.Fatalf("no %s in %s", name, command)
		}
		return m[1]
	}
	_, body, _ := strings.Cut(command, "--data-binary '")
	body = strings.ReplaceAll(strings.TrimSuffix(body, "'"), `'\''`, "'")
	seconds, err := time.ParseDuration(header("Webhook-Timestamp") + "s")
	if err != nil || !strings.Contains(body, "It's on") && !strings.Contains(body, `It\u0027s on`) {
		t.Fatal(err, body)
	}
	if want := signature.Standard([]byte("a secret of sixteen"), header("Webhook-Id"), time.Unix(int64(seconds.Seconds()), 0), []byte(body)); header("Webhook-Signature") != want {
		t.Errorf("%s, want %s", header("Webhook-Signature"), want)
	}
}

// A word in a command stays a word, whatever is in it.
func TestQuotedForAShell(t *testing.T) {
	t.Parallel()
	if got := asCurl("http://x/?a='b", []pair{{"A", "b c"}}, []byte(`{"a":"$(id) 'x'"}`)); got != `curl -i -X POST 'http://x/?a='\''b' \`+"\n"+`  -H 'A: b c' \`+"\n"+`  --data-binary '{"a":"$(id) '\''x'\''"}'` {
		t.Error(got)
	}
}

// Live parts of one account show what the page does, to those who may see it, and their
// links and forms keep the account.
func TestLivePartsOfAnAccount(t *testing.T) {
	t.Parallel()
	b := setup(t)
	f, v, owner := b.fill(t), b.operator(t), b.person(t, "", "o@example.com", accounts.Owner)
	server := httptest.NewServer(b.handler)
	t.Cleanup(server.Close)
	v.get(Root) // has a secret for forms from here on
	of := "&account=" + f.account.ID
	for part, want := range map[string]string{
		"deliveries?id=" + f.webhook:  fmt.Sprintf(`action="/dashboard/webhooks/%s/deliveries/%d/resend?account=%s"><input type="hidden" name="token" value="`, f.webhook, f.delivery, f.account.ID),
		"executions?id=" + f.schedule: `<span class="chip bad">retrying</span>`,
	} {
		_, body := v.stream(t, server, part+of)
		var event strings.Builder
		for lines := bufio.NewScanner(body); lines.Scan() && lines.Text() != ""; {
			event.WriteString(lines.Text())
		}
		if !strings.Contains(event.String(), want) {
			t.Errorf("%s has no %s: %s", part, want, event.String())
		}
		if got := owner.get(Root + "/live/" + part + of); got.Code != 404 {
			t.Errorf("%s of another account: %d", part, got.Code)
		}
		if got := b.visitor().get(Root + "/live/" + part); got.Code != 401 {
			t.Errorf("%s, a stranger: %d", part, got.Code)
		}
	}
}

// Numbers lead to the requests that were counted, and charts say their values.
func TestNumbersLeadToWhatIsBehindThem(t *testing.T) {
	t.Parallel()
	b := setup(t)
	f, v := b.fill(t), b.operator(t)
	home := v.get(Root)
	for _, want := range []string{`href="/dashboard/requests?route=streams.get&amp;status=5xx"`, `href="/dashboard/requests?product=media&amp;status=4xx"`, `href="/dashboard/requests/` + f.request + `"`,
		"<title>", "OK (2xx, 3xx): ", "p50 ", `aria-current="page">60 minutes`} {
		if !strings.Contains(home.body, want) {
			t.Errorf("no %s in %s", want, home.body)
		}
	}
	for _, span := range []string{"day", "week", "month"} {
		if got := v.get(Root + "?span=" + span); got.Code != 200 || !strings.Contains(got.body, "/dashboard/live/overview?span="+span) {
			t.Errorf("%s: %d", span, got.Code)
		}
	}
	used := v.get(Root + "/usage?account=" + f.account.ID)
	for _, want := range []string{"<h1>Usage</h1>", `href="/dashboard/requests?route=streams.get&amp;status=5xx&amp;of=` + f.account.ID} {
		if !strings.Contains(used.body, want) {
			t.Errorf("no %s in %s", want, used.body)
		}
	}
}

// Amounts are in whole units, and add up.
func TestPaymentsAreInTheirMoney(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.OnChain = true
	b.serve()
	b.fill(t)
	got := b.operator(t).get(Root + "/payments").body
	for _, want := range []string{"0.025 USDC", "0.0125 USDC", "https://sepolia.basescan.org/tx/0xc0ffee12", "https://sepolia.basescan.org/address/0xab12"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in %s", want, got)
		}
	}
	eight := uint8(8)
	base := tokensOf(config.Document{X402: &config.X402{Network: "base"}})
	for got, want := range map[string]string{
		base.write("0x833589FCD6eDb6E08f4c7C32D4f71b54bdA02913", "1"):                                                                         "0.000001 USDC",
		base.write("0x833589fcd6edb6e08f4c7c32d4f71b54bda02913", "1234500000"):                                                                "1\u202f234.50 USDC",
		base.write("0x833589fcd6edb6e08f4c7c32d4f71b54bda02913", "3000000"):                                                                   "3.00 USDC",
		base.write("0x0000000000000000000000000000000000000001", "10000"):                                                                     "10\u202f000 smallest units",
		base.write("0x833589fcd6edb6e08f4c7c32d4f71b54bda02913", "not a number"):                                                              "not a number smallest units",
		tokensOf(config.Document{}).write("", "5"):                                                                                            "5 smallest units",
		tokensOf(config.Document{X402: &config.X402{Network: "x", Asset: "0x01", Name: "EURC", Decimals: &eight}}).write("0x01", "100000000"): "1.00 EURC",
		(paymentsPage{}).Explorer("tx", "base", "0x1"):                                                                                        "",
	} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	sums := base.sums([]payments.Revenue{{Route: "a", Network: "base", Asset: "0x833589fcd6edb6e08f4c7c32d4f71b54bda02913", Payments: 2, Amount: "9223372036854775807"},
		{Route: "b", Network: "base", Asset: "0x833589fcd6edb6e08f4c7c32d4f71b54bda02913", Payments: 1, Amount: "1"}})
	if len(sums) != 1 || sums[0].Payments != 3 || sums[0].Amount != "9\u202f223\u202f372\u202f036\u202f854.775808 USDC" {
		t.Errorf("%+v", sums)
	}
}

// The log is asked by e-mail addresses, names of keys and days, and exported as it is shown.
func TestTheLogIsSearchedAndExported(t *testing.T) {
	t.Parallel()
	b := setup(t)
	f := b.fill(t)
	owner := b.person(t, f.account.ID, "ann@example.com", accounts.Owner)
	owner.send(t, Root+"/keys", Root+"/keys", "name", "=HYPERLINK(1)", "scopes", "streams:read", "days", "30")
	v, of := b.operator(t), "&of="+f.account.ID
	for query, want := range map[string]string{
		"actor=ann@example.com":                   "2 changes", // she has signed in before
		"actor=ANN@example.com&action=key.create": "1 change",
		"actor=nobody@example.com":                "No matching changes",
		"actor=ann@example.com&to=2020-01-01":     "No matching changes",
		"actor=ann@example.com&period=hour":       "2 changes",
		"from=yesterday":                          "is not a day",
		"target=" + f.key:                         "1 change",
	} {
		if got := v.get(Root + "/audit?" + query + of); got.Code != 200 || !strings.Contains(got.body, want) {
			t.Errorf("%s has no %q: %d %s", query, want, got.Code, got.body)
		}
	}
	if got := v.get(Root + "/audit?actor=ann@example.com" + of); !strings.Contains(got.body, "ann@example.com<small>") || !strings.Contains(got.body, `<option>key.create</option>`) {
		t.Error("the log does not say who, or what there is to choose:", got.body)
	}
	export := v.get(Root + "/audit/export?format=csv&action=key.create&actor=ann@example.com" + of)
	rows, err := csv.NewReader(strings.NewReader(export.body)).ReadAll()
	if err != nil || len(rows) != 2 || !slices.Equal(rows[0], auditColumns) || rows[1][3] != "ann@example.com" || rows[1][10] != "'=HYPERLINK(1)" {
		t.Errorf("%v %q", err, rows)
	}
	if h := export.Header(); h.Get("Content-Type") != "text/csv; charset=utf-8; header=present" || !strings.HasPrefix(h.Get("Content-Disposition"), `attachment; filename="audit-`) || h.Get("Cache-Control") != "no-store" {
		t.Error(h)
	}
	lines := strings.Split(strings.TrimSpace(owner.get(Root+"/audit/export?format=ndjson&of="+b.seeded.Account).body), "\n")
	for _, line := range lines {
		var e exportedEntry
		if err := json.Unmarshal([]byte(line), &e); err != nil || deref(e.Account) != f.account.ID {
			t.Errorf("an owner exports %s: %v", line, err)
		}
	}
	if len(lines) < 4 {
		t.Errorf("%q", lines)
	}
	if got := b.person(t, f.account.ID, "m@example.com", accounts.Member).get(Root + "/audit/export"); got.Code != 403 {
		t.Error(got.Code)
	}
}

// Everything is found by its id or its name, by those who may see it.
func TestSearch(t *testing.T) {
	t.Parallel()
	b := setup(t)
	f := b.fill(t)
	operator, owner, member := b.operator(t), b.person(t, f.account.ID, "ann@example.com", accounts.Owner), b.person(t, "", "m@example.com", accounts.Member)
	in := "?account=" + f.account.ID
	for query, want := range map[string]string{
		f.key: "/keys/" + f.key + in, f.webhook: "/webhooks/" + f.webhook + in, f.schedule: "/schedules/" + f.schedule + in, f.request: "/requests/" + f.request,
		"acme broad": "/usage" + in, "streams.get": "/routes?q=streams.get",
	} {
		got := operator.get(Root + "/search?q=" + url.QueryEscape(query))
		if got.Code != 303 || got.Header().Get("Location") != Root+want {
			t.Errorf("%s leads to %d %s, want %s", query, got.Code, got.Header().Get("Location"), want)
		}
	}
	for query, want := range map[string]string{f.key: "/keys/" + f.key, "nightly REPORT": "/schedules/" + f.schedule, "newsroom": "/webhooks/" + f.webhook,
		"ann@": "/audit?actor=ann%40example.com&of=" + f.account.ID, f.request: "/requests/" + f.request} {
		if got := owner.get(Root + "/search?q=" + url.QueryEscape(query)); got.Code != 303 || got.Header().Get("Location") != Root+want {
			t.Errorf("the owner's %s leads to %d %s %s", query, got.Code, got.Header().Get("Location"), got.body)
		}
		if got := member.get(Root + "/search?q=" + url.QueryEscape(query)); got.Code != 200 || !strings.Contains(got.body, "Nothing is called") {
			t.Errorf("a member elsewhere finds %s: %d %s", query, got.Code, got.Header())
		}
	}
	for _, query := range []string{"", "a", "%00", strings.Repeat("x", 10_000), "%3Cscript%3Ealert", "'%20OR%201=1"} {
		if got := operator.get(Root + "/search?q=" + query); got.Code != 200 || strings.Contains(got.body, "<script>alert") {
			t.Errorf("%.20s: %d", query, got.Code)
		}
	}
}

// What was typed into the form of a key is kept when it is refused; presets tick scopes, and
// a new key comes with a request to try it by.
func TestTheFormOfKeysKeepsWhatWasTyped(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v, page := b.operator(t), Root+"/keys"
	got := v.send(t, page, page, "name", " ", "scopes", "streams:read", "scopes", "clips:write", "days", "7")
	if got.Code != 200 || strings.Count(got.body, " checked>") != 2 || !strings.Contains(got.body, `value="streams:read" checked>`) ||
		!strings.Contains(got.body, `<option value="7" selected>`) || !strings.Contains(got.body, `id="make" open>`) {
		t.Error(got.Code, got.body)
	}
	for preset, want := range map[string]bool{"read": false, "all": true, "": false} {
		body := v.get(page + "?preset=" + preset).body
		if read, write := strings.Contains(body, `value="streams:read" checked>`), strings.Contains(body, `value="streams:write" checked>`); read != (preset != "") || write != want {
			t.Errorf("%q ticks streams:read: %v, streams:write: %v", preset, read, write)
		}
	}
	made := v.send(t, page, page, "name", "ci", "scopes", "streams:read", "days", "7")
	if !strings.Contains(html.UnescapeString(made.body), "curl -i $SLUICE_GATEWAY_URL/v1/streams -H 'Authorization: Bearer slk_") {
		t.Error(made.body)
	}
}

// Identifiers are cut where they can be told apart; a text is never.
func TestIdentifiersAreCut(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]cutText{
		"key_8ndp5rk6qseab":                          {Head: "key_8ndp5rk6qseab"},
		"schedule_06h0cntp1bemf8vfcakbyr3k6g":        {"schedule_06h0", "cntp1bemf8vfcakbyr", "3k6g"},
		"wh_06h0cntp1bemf8vfcakbyr3k6g":              {"wh_06h0", "cntp1bemf8vfcakbyr", "3k6g"},
		"0xab12ab12ab12ab12ab12ab12ab12ab12ab12ab12": {"0xab12ab1", "2ab12ab12ab12ab12ab12ab12ab", "12ab12"[2:]},
		"ünïcödé_ünïcödé_ünïcödé":                    {Head: "ünïcödé_ünïcödé_ünïcödé"},
		"":                                           {},
	} {
		got := cutID(id)
		if got.Head+got.Rest+got.Tail != id || got.Head != want.Head || got.Tail != want.Tail && want.Rest != "" {
			t.Errorf("%s: %+v", id, got)
		}
	}
}

// A first attempt that is under way is not one that has failed.
func TestStatesOfDeliveries(t *testing.T) {
	t.Parallel()
	later := webhooks.Timestamp{Time: noon.Add(time.Minute)}
	for _, c := range []struct {
		d    webhooks.Delivery
		want string
	}{
		{webhooks.Delivery{Status: "pending"}, "pending"},
		{webhooks.Delivery{Status: "pending", Attempts: 1, NextAttemptAt: webhooks.Timestamp{Time: noon}}, "pending"},
		{webhooks.Delivery{Status: "pending", Attempts: 1, NextAttemptAt: later}, "retrying"},
		{webhooks.Delivery{Status: "pending", Attempts: 2}, "retrying"},
		{webhooks.Delivery{Status: "succeeded", Attempts: 2}, "succeeded"},
	} {
		if got := deliveryState(c.d, noon); got != c.want {
			t.Errorf("%+v: %s", c.d, got)
		}
	}
}
