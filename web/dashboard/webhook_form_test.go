package dashboard

import (
	"html"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sluice.dev/sluice/controlplane/accounts"
	"sluice.dev/sluice/platform/http/paging"
	"sluice.dev/sluice/platform/storage/audit"
	"sluice.dev/sluice/workers/webhooks"
)

var hookSecret = regexp.MustCompile(`whsec_[A-Za-z0-9/+]{43}=`)

// audited is the newest entry of the audit log about a target.
func (b *bundle) audited(t *testing.T, target string) audit.Entry {
	t.Helper()
	list, _, err := paging.Rows(audit.Read(t.Context(), b.db, audit.Filter{Target: target}, paging.Page{Limit: 1}))
	if err != nil || len(list) != 1 {
		t.Fatalf("of %s: %+v %v", target, list, err)
	}
	return list[0]
}

// A webhook is created, changed and deleted by its forms; its secret is shown once.
func TestManagingWebhooks(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v, list := b.person(t, "", "o@example.com", accounts.Owner), Root+"/webhooks"
	if got := v.get(list); !strings.Contains(got.body, `href="/dashboard/webhooks/new`) {
		t.Error(got.body)
	}
	made := v.send(t, list+"/new", list+"/new", "url", "http://127.0.0.1:9/hook", "events", "stream.*", "events", "webhook.disabled", "description", "of <b>ours</b>", "rate_per_second", "5")
	secret := hookSecret.FindString(html.UnescapeString(made.body))
	id := regexp.MustCompile(`wh_\w+`).FindString(made.body)
	if made.Code != 200 || secret == "" || id == "" || made.Header().Get("Cache-Control") != "no-store" {
		t.Fatal(made.Code, made.body)
	}
	page := list + "/" + id
	for _, path := range []string{list, page, page + "/edit"} {
		if got := v.get(path); got.Code != 200 || strings.Contains(html.UnescapeString(got.body), secret) {
			t.Errorf("%s: %d %s", path, got.Code, got.body)
		}
	}
	if e := b.audited(t, id); e.Action != "webhook.create" || !strings.HasPrefix(e.Actor, "sess_") || strings.Contains(string(e.After), secret) {
		t.Errorf("%+v", e)
	}
	edit := v.get(page + "/edit").body
	for _, want := range []string{`value="http://127.0.0.1:9/hook"`, `value="of &lt;b&gt;ours&lt;/b&gt;"`, `name="events" value="stream.*" checked`, `name="rate_per_second" value="5"`} {
		if !strings.Contains(edit, want) {
			t.Errorf("no %s in %s", want, edit)
		}
	}
	if got := v.send(t, page+"/edit", page+"/edit", "url", "http://127.0.0.1:9/other", "events", "*", "ordered", "on", "retry_schedule", ""); got.Code != 303 || got.Header().Get("Location") != page+"?done=saved" {
		t.Fatal(got.Code, got.Header(), got.body)
	}
	account := *b.audited(t, id).Account
	sub, err := b.Config.Webhooks.Get(t.Context(), account, id)
	if err != nil || sub.URL != "http://127.0.0.1:9/other" || !slices.Equal(sub.Events, []string{"*"}) || !sub.Ordered || sub.RatePerSecond != nil ||
		sub.Description != "" || sub.MaxConcurrency != webhooks.DefaultConcurrency {
		t.Errorf("%+v %v", sub, err)
	}
	if got := v.send(t, page+"/delete", page+"/delete", "confirm", "example.com"); got.Code != 200 || !strings.Contains(got.body, "is not the name that is asked for") {
		t.Error(got.Code, got.body)
	}
	if got := v.send(t, page+"/delete", page+"/delete", "confirm", "127.0.0.1:9"); got.Code != 303 || v.get(page).Code != 404 {
		t.Error(got.Code, got.body)
	}
	if e := b.audited(t, id); e.Action != "webhook.delete" {
		t.Errorf("%+v", e)
	}
}

// What the API refuses is said beside its field, and what was typed is kept.
func TestWhatWebhooksAreRefusedFor(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v, page := b.person(t, "", "o@example.com", accounts.Owner), Root+"/webhooks/new"
	got := v.send(t, page, page, "url", "http://10.0.0.1/x", "events", "stream.*", "events", "none.such", "description", `"typed`, "max_concurrency", "many", "retry_schedule", "5, x")
	if got.Code != 200 || !strings.Contains(got.body, `role="alert"`) {
		t.Fatal(got.Code, got.body)
	}
	for _, want := range []string{`value="http://10.0.0.1/x"`, `value="&#34;typed"`, `value="many"`, `value="stream.*" checked`} {
		if !strings.Contains(got.body, want) {
			t.Errorf("%s is lost: %s", want, got.body)
		}
	}
	if _, after, _ := strings.Cut(got.body, `name="max_concurrency" value="many"`); !strings.Contains(after[:min(len(after), 400)], "is not a whole number") {
		t.Errorf("the fault is not beside its field: %s", got.body)
	}
	got = v.send(t, page, page, "url", "http://10.0.0.1/x", "events", "none.such")
	for _, want := range []string{"<code>events[0]</code> is not a known event", "<code>url</code>"} {
		if !strings.Contains(got.body, want) {
			t.Errorf("no %s in %s", want, got.body)
		}
	}
	if got := v.send(t, page, page); got.Code != http.StatusOK || !strings.Contains(got.body, "<code>events</code> is missing or empty") {
		t.Error(got.Code, got.body)
	}
}

// Whoever may only read gets no form that changes something, and is refused it.
func TestReadersGetNoForms(t *testing.T) {
	t.Parallel()
	b := setup(t)
	if _, err := b.db.Exec(t.Context(), `DELETE FROM scopes WHERE name LIKE '%:write'`); err != nil {
		t.Fatal(err)
	}
	reader, whole := b.person(t, b.seeded.Account, "reader@example.com", accounts.Member), strings.NewReplacer("{id}", "x", "{class}", "default", "{kind}", "routes", "{name}", "health")
	pages := 0
	for _, of := range managed {
		for path := range of.get {
			pages++
			if got := reader.get(Root + whole.Replace(path)); got.Code != 403 || strings.Contains(got.body, `class="ask"`) {
				t.Errorf("%s: %d %s", path, got.Code, got.body)
			}
		}
		for path := range of.post {
			if got := reader.send(t, Root+"/keys", Root+whole.Replace(path)); got.Code != 403 {
				t.Errorf("the form %s: %d %s", path, got.Code, got.body)
			}
		}
	}
	if pages < 6 {
		t.Fatal(pages)
	}
}

// An operator works on the account that was chosen, from the list to the form and back.
func TestWebhooksOfTheChosenAccount(t *testing.T) {
	t.Parallel()
	b := setup(t)
	a, err := accounts.Store{DB: b.db}.Create(t.Context(), "Acme", "pro")
	if err != nil {
		t.Fatal(err)
	}
	v, query := b.operator(t), "?account="+a.ID
	if got := v.get(Root + "/webhooks" + query); !strings.Contains(got.body, `href="/dashboard/webhooks/new`+query) {
		t.Error(got.body)
	}
	page := v.get(Root + "/webhooks/new" + query)
	if !strings.Contains(page.body, `name="account" value="`+a.ID) || !strings.Contains(page.body, `href="/dashboard/webhooks`+query) {
		t.Error(page.body)
	}
	made := v.send(t, Root+"/webhooks/new"+query, Root+"/webhooks/new", "account", a.ID, "url", "http://127.0.0.1:9/hook", "events", "*")
	if !strings.Contains(made.body, query+`">Show the webhook`) {
		t.Error(made.body)
	}
	if list, total, err := paging.Rows(b.Config.Webhooks.Page(t.Context(), a.ID, "", paging.Page{Limit: 10})); err != nil || total != 1 || list[0].Events[0] != "*" {
		t.Error(list, err)
	}
}
