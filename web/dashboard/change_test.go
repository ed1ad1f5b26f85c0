package dashboard

import (
	"html"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/controlplane/accounts"
	"sluice.dev/sluice/controlplane/accounts/apikeys"
	"sluice.dev/sluice/filters/scopes"
	"sluice.dev/sluice/workers/schedules/definition"
	"sluice.dev/sluice/workers/webhooks"
)

var keyText = regexp.MustCompile(`slk_([0-9a-z]{13})_\w+`)

// key makes a key of an account.
func (b *bundle) key(t testing.TB, account string, granted ...string) apikeys.Created {
	t.Helper()
	end := time.Now().AddDate(0, 0, 30).UTC()
	made, err := b.keys().Create(t.Context(), apikeys.Spec{Account: account, Name: "ci", Scopes: granted, ExpiresAt: &end, Creator: []string{scopes.Admin}})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// A key's successor is shown once, and does what the key did; the key itself works
// for as long as was asked for.
func TestRotatingKeys(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v := b.operator(t)
	for name, c := range map[string]struct {
		overlap string
		left    time.Duration // of the old key; 0: it is gone
	}{"at once": {"none", 0}, "an hour": {"hour", time.Hour}, "a week": {"week", 7 * 24 * time.Hour}} {
		old := b.key(t, b.seeded.Account, "streams:read", "clips:write")
		page := Root + "/keys/" + old.ID
		got := v.send(t, page, page+"/rotate", "overlap", c.overlap)
		text := keyText.FindString(got.body)
		if got.Code != 200 || text == "" || text == old.Text {
			t.Fatalf("%s: %d %s", name, got.Code, got.body)
		}
		next, err := b.keys().Find(t.Context(), text)
		if err != nil || !slices.Equal(next.Scopes, old.Scopes) || next.Name != "ci" {
			t.Errorf("%s: %+v %v", name, next, err)
		}
		if again := v.get(Root + "/keys/" + next.ID).body; strings.Contains(again, text) || !strings.Contains(again, next.ID) {
			t.Errorf("%s: the page of the new key shows its text again", name)
		}
		k, err := b.keys().Get(t.Context(), b.seeded.Account, old.ID)
		switch {
		case c.left == 0 && err == nil:
			t.Errorf("%s: the old key is still there", name)
		case c.left > 0 && (err != nil || time.Until(*k.ExpiresAt) > c.left || time.Until(*k.ExpiresAt) < c.left-time.Minute):
			t.Errorf("%s: the old key ends at %v, %v", name, k.ExpiresAt, err)
		}
	}
	old := b.key(t, b.seeded.Account, "streams:read")
	page := Root + "/keys/" + old.ID
	if got := v.send(t, page, page+"/rotate", "overlap", "forever"); got.Code != 400 || !strings.Contains(got.body, "how long both secrets") {
		t.Error(got.Code, got.body)
	}
}

// keys is the store of keys.
func (b *bundle) keys() apikeys.Store { return apikeys.Store{DB: b.db} }

// Whoever has fewer scopes than a key sees no button, and changes nothing of it.
func TestChangingAKeyNeedsItsScopes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	member := b.person(t, b.seeded.Account, "m@example.com", accounts.Member)
	wide := b.key(t, b.seeded.Account, "users:write", "streams:read")
	page := Root + "/keys/" + wide.ID
	if got := member.get(page); strings.Contains(got.body, "action=\""+page) || !strings.Contains(got.body, "scopes that you do not have (users:write)") {
		t.Error(got.body)
	}
	for _, what := range []string{"/rotate", "/change", "/revoke"} {
		if got := member.send(t, page, page+what, "overlap", "day", "name", "x", "limit", ""); got.Code != 403 || keyText.MatchString(got.body) {
			t.Errorf("%s: %d %s", what, got.Code, got.body)
		}
	}
	if k, err := b.keys().Get(t.Context(), b.seeded.Account, wide.ID); err != nil || k.Name != "ci" {
		t.Errorf("%+v %v", k, err)
	}
	stranger := b.person(t, "", "s@example.com", accounts.Owner)
	if got := stranger.get(page); got.Code != 404 {
		t.Errorf("another account's key: %d", got.Code)
	}
	for _, what := range []string{"/rotate", "/change", "/revoke"} {
		if got := stranger.send(t, Root+"/keys", page+what, "overlap", "day", "name", "x", "limit", ""); got.Code != 404 {
			t.Errorf("%s of another account's key: %d", what, got.Code)
		}
	}
}

func TestChangingKeys(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v, made := b.operator(t), b.key(t, b.seeded.Account, "streams:read")
	page := Root + "/keys/" + made.ID
	if got := v.send(t, page, page+"/change", "name", "deploys", "limit", " 120 "); got.Code != 303 {
		t.Fatal(got.Code, got.body)
	}
	if got := v.get(page).body; !strings.Contains(got, "<h1>deploys</h1>") || !strings.Contains(got, "120 requests a minute") {
		t.Error(got)
	}
	for name, fields := range map[string][]string{
		"no number": {"name", "deploys", "limit", "many"}, "none at all": {"name", "deploys", "limit", "0"}, "beyond": {"name", "deploys", "limit", "1000000001"},
		"no name": {"name", "", "limit", "5"},
	} {
		if got := v.send(t, page, page+"/change", fields...); got.Code != 200 || !strings.Contains(got.body, "The key was not changed") || !strings.Contains(got.body, `value="`+fields[3]+`"`) {
			t.Errorf("%s: %d %s", name, got.Code, got.body)
		}
	}
	if got := v.send(t, page, page+"/change", "name", "deploys", "limit", ""); got.Code != 303 || !strings.Contains(v.get(page).body, "<dt>Limit</dt><dd>the account's") {
		t.Error(got.Code, got.body)
	}
}

// schedule makes a schedule of the operator's account.
func (b *bundle) schedule(t *testing.T, timing definition.Timing) string {
	t.Helper()
	d := definition.Definition{Name: "tick " + timing.Type, Type: definition.TypeCustom, Schedule: timing}
	made, err := b.Config.Schedules.Create(t.Context(), b.seeded.Account, d)
	if err != nil {
		t.Fatal(err)
	}
	return made.ID
}

var hourly = definition.Timing{Type: definition.Recurring, Cron: "0 * * * *", Timezone: "UTC"}

func TestPausingSchedules(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v, page := b.operator(t), Root+"/schedules/"+b.schedule(t, hourly)
	if got := v.send(t, page, page+"/status", "status", "paused"); got.Code != 303 || !strings.HasSuffix(got.Header().Get("Location"), "done=paused") {
		t.Fatal(got.Code, got.Header(), got.body)
	}
	if got := v.get(page).body; !strings.Contains(got, ">Resume<") || !strings.Contains(got, "none while it is paused") {
		t.Error(got)
	}
	if got := v.send(t, page, page+"/status", "status", "active"); got.Code != 303 {
		t.Fatal(got.Code, got.body)
	}
	if got := v.get(page).body; !strings.Contains(got, ">Pause<") || !strings.Contains(got, "It has not run yet. The next run is at ") {
		t.Error(got)
	}
	if got := v.send(t, page+"/delete", page+"/delete", "confirm", "tick"); got.Code != 200 || !strings.Contains(got.body, "is not the name that is asked for") {
		t.Error(got.Code, got.body)
	}
	if got := v.send(t, page+"/delete", page+"/delete", "confirm", "tick recurring"); got.Code != 303 || v.get(page).Code != 404 {
		t.Error(got.Code, got.body)
	}
}

// What the form leaves as it is stays; what is wrong is named, and what was typed
// is kept.
func TestEditingSchedules(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v := b.operator(t)
	recurring := Root + "/schedules/" + b.schedule(t, hourly)
	once := Root + "/schedules/" + b.schedule(t, definition.Timing{Type: definition.OneTime, ExecuteAt: "2199-01-01T00:00:00", Timezone: "UTC"})
	fields := func(pairs ...string) []string {
		return append(pairs, "type", "custom", "when", "recurring", "action", "start", "timezone", "Europe/Berlin", "late", "skip", "overlapping", "queue", "description", "two\r\nlines", "tags", "a, b,", "version")
	}
	once1 := func(pairs ...string) []string {
		list := fields(pairs...)
		list[slices.Index(list, "recurring")] = definition.OneTime
		return list
	}
	for _, c := range []struct {
		name, page, version string
		fields              []string
		want                int
		text                string // of the answer, or of the page that it leads to
	}{
		{"everything", recurring, "1", fields("name", "each day", "cron", "30 9 * * *", "start", "2026-03-01", "end", ""), 303, "<code>30 9 * * *</code>, Europe/Berlin"},
		{"an old page", recurring, "1", fields("name", "lost", "cron", "0 0 * * *"), 409, "The schedule has changed since"},
		{"no schedule", recurring, "2", fields("name", "each day", "cron", "99 9 * * *"), 200, "schedule.cron"},
		{"all at once", recurring, "2", fields("name", "", "cron", "x", "end", "tomorrow"), 200, "schedule.endDate"},
		{"a run that was never", recurring, "2", fields("name", "each day", "cron", "0 0 30 2 *"), 200, "never fires"},
		{"once", once, "1", once1("name", "once", "at", "2199-02-02T10:00:00"), 303, "2199-02-02T10:00:00, Europe/Berlin"},
		{"once, in the past", once, "2", once1("name", "once", "at", "1999-02-02T10:00:00"), 200, "is in the past"},
	} {
		got := v.send(t, c.page, c.page+"/edit", append(c.fields, c.version)...)
		body := got.body
		if got.Code == http.StatusSeeOther {
			body = v.get(c.page).body
		}
		if got.Code != c.want || !strings.Contains(body, c.text) {
			t.Errorf("%s: %d, want %d and %q: %s", c.name, got.Code, c.want, c.text, body)
		}
		if got.Code == http.StatusOK && !strings.Contains(body, `value="`+c.fields[3]+`"`) {
			t.Errorf("%s: what was typed is lost", c.name)
		}
	}
	if body := v.get(recurring).body; !strings.Contains(body, "<dt>Overlapping runs</dt><dd>queue") {
		t.Error(body)
	}
	if body := v.get(recurring + "/edit").body; !strings.Contains(body, "two\nlines</textarea>") || !strings.Contains(body, `value="a, b"`) ||
		!strings.Contains(body, `<option value="skip" selected>skip them`) || !strings.Contains(body, `<option value="queue" selected>wait for it to end`) {
		t.Error(body)
	}
}

// Whoever may only read sees no button, and is refused what buttons do.
func TestReadersChangeNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	schedule := Root + "/schedules/" + b.schedule(t, hourly)
	sub, err := b.Config.Webhooks.Create(t.Context(), b.seeded.Account, webhooks.Create{URL: "http://127.0.0.1:9/hook", Events: []string{"stream.*"}, Secret: "a secret of sixteen"})
	if err != nil {
		t.Fatal(err)
	}
	hook := Root + "/webhooks/" + sub.ID
	if _, err := b.db.Exec(t.Context(), `DELETE FROM scopes WHERE name IN ('schedules:write', 'webhooks:write')`); err != nil {
		t.Fatal(err)
	}
	reader := b.person(t, b.seeded.Account, "reader@example.com", accounts.Member)
	for page, actions := range map[string][]string{schedule: {"run", "status"}, hook: {"status", "test", "rotate", "recover", "deliveries/1/resend"}} {
		if got := reader.get(page); got.Code != 200 || strings.Contains(got.body, `action="`+page) {
			t.Errorf("%s: %d %s", page, got.Code, got.body)
		}
		for _, action := range actions {
			got := reader.send(t, page, page+"/"+action, "status", "paused", "overlap", "day", "since", "day", "name", "x", "version", "1")
			if got.Code != 403 || !strings.Contains(got.body, ":write") || !strings.Contains(got.body, "Ask an owner of your account") {
				t.Errorf("%s of %s: %d %s", action, page, got.Code, got.body)
			}
		}
	}
}

// A subscription is tried, paused, given another secret, and what has failed is
// sent again.
func TestChangingWebhooks(t *testing.T) {
	t.Parallel()
	b := setup(t)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Service-Signature") == "" {
			w.WriteHeader(http.StatusTeapot)
		}
	}))
	t.Cleanup(receiver.Close)
	sub, err := b.Config.Webhooks.Create(t.Context(), b.seeded.Account, webhooks.Create{URL: receiver.URL, Events: []string{"stream.*"}, Secret: "a secret of sixteen"})
	if err != nil {
		t.Fatal(err)
	}
	v, page := b.operator(t), Root+"/webhooks/"+sub.ID
	if got := v.send(t, page, page+"/test"); !strings.Contains(got.body, "accepted the test event: status 200") || strings.Contains(got.body, page+"/test?") {
		t.Error(got.Code, got.body)
	}
	rotated := v.send(t, page, page+"/rotate", "overlap", "hour")
	secret := regexp.MustCompile(`whsec_[A-Za-z0-9/+]{43}=`).FindString(html.UnescapeString(rotated.body))
	if rotated.Code != 200 || secret == "" || strings.Contains(html.UnescapeString(v.get(page).body), secret) {
		t.Error(rotated.Code, rotated.body)
	}
	if got := v.send(t, page, page+"/recover", "since", "week", "missed", "1"); got.Code != 303 || !strings.Contains(v.get(page).body, "Bulk replays") {
		t.Error(got.Code, got.body)
	}
	if got := v.send(t, page, page+"/recover", "since", "ever"); got.Code != 400 || !strings.Contains(got.body, `href="`+page+`"`) {
		t.Error(got.Code, got.body)
	}
	if got := v.send(t, page, page+"/status", "status", "paused"); got.Code != 303 || !strings.Contains(v.get(page).body, ">Resume<") {
		t.Error(got.Code, got.body)
	}
	if got := v.send(t, page, page+"/recover", "since", "day"); got.Code != 409 || !strings.Contains(got.body, "make it active first") {
		t.Error(got.Code, got.body)
	}
	if got := v.send(t, page, page+"/status", "status", "active"); got.Code != 303 {
		t.Error(got.Code, got.body)
	}
	receiver.Close()
	if got := v.send(t, page, page+"/test"); got.Code != 200 || !strings.Contains(got.body, ": no response, after") {
		t.Error(got.Code, got.body)
	}
}

// Every refusal says what to do, and leads on.
func TestProblemsSayWhatToDo(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v := b.operator(t)
	for path, want := range map[string]string{
		"/nothing":                              `href="/dashboard">Back to the dashboard`,
		"/keys/key_none":                        `href="/dashboard/keys">Back to Keys`,
		"/webhooks/wh_x?account=acct_x":         `href="/dashboard/webhooks?account=acct_x">Back to Webhooks`,
		"/schedules/schedule_x":                 "or it belongs to another account",
		"/config/99":                            `href="/dashboard/config">Back to Configuration`,
		"/webhooks/wh_x/deliveries/1?account=%": `href="/dashboard/webhooks">Back to Webhooks`,
	} {
		r := httptest.NewRequest(http.MethodGet, Root+"/", nil)
		r.URL.Path, r.URL.RawQuery, _ = strings.Cut(Root+path, "?")
		if got := v.do(r); got.Code != 404 || !strings.Contains(got.body, want) {
			t.Errorf("%s: %d %s", path, got.Code, got.body)
		}
	}
	b.db.Close()
	if got := b.visitor().get(Root + "/sign-in"); got.Code != 200 {
		t.Error("whoever is not signed in needs no database to be asked", got.Code)
	}
	if got := v.get(Root + "/keys"); got.Code < 500 || !strings.Contains(got.body, "Try again") || strings.Contains(got.body, "closed pool") {
		t.Error(got.Code, got.body)
	}
}
