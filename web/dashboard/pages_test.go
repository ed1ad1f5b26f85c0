package dashboard

import (
	"bufio"
	"log/slog"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sluice.dev/sluice/controlplane/accounts"
	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/filters/recording"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/events"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/platform/storage/postgres"
	"sluice.dev/sluice/workers/schedules/definition"
	"sluice.dev/sluice/workers/webhooks"

	"github.com/go-chi/chi/v5"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// A rollback is shown before it is done, and done only to what was shown.
func TestRollback(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v := b.operator(t)
	now, err := b.Documents.Store.Latest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	d := now.Document
	d.AnonymousPerMinute = 77
	if _, err := b.Documents.Store.Put(t.Context(), d, "ann", "fewer strangers", config.Any); err != nil {
		t.Fatal(err)
	}
	if got := v.get(Root + "/config"); !strings.Contains(got.body, "fewer strangers") || !strings.Contains(got.body, "Version 2</a> <span class=\"chip good\">current") {
		t.Error(got.body)
	}
	if got := v.get(Root + "/config/2"); !strings.Contains(got.body, "settings.anonymous_per_minute") || !strings.Contains(got.body, ">77</pre>") {
		t.Error(got.body)
	}
	old := Root + "/config/1"
	if got := v.get(old); !strings.Contains(got.body, "Compared with version 2, this changes 1 object.") {
		t.Error(got.body)
	}
	if got := v.send(t, old, old+"/rollback", "newest", "1"); got.Code != 412 {
		t.Errorf("a rollback of what was not shown: %d %s", got.Code, got.body)
	}
	if got := v.send(t, old, old+"/rollback", "newest", "x"); got.Code != 400 {
		t.Error(got.Code)
	}
	got := v.send(t, old, old+"/rollback", "newest", "2")
	if got.Code != 303 || got.Header().Get("Location") != Root+"/config/3?done=rolled-back" {
		t.Fatal(got.Code, got.Header(), got.body)
	}
	if now, err = b.Documents.Store.Latest(t.Context()); err != nil || now.Document.AnonymousPerMinute == 77 || !strings.HasPrefix(now.Author, "sess_") {
		t.Errorf("%+v %v", now.Author, err)
	}
}

// Before a version is put in force again, its page shows what it would have done to the
// requests of the last hour.
func TestRehearsal(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v := b.operator(t)
	now, err := b.Documents.Store.Latest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	d := now.Document
	d.AnonymousPerMinute = 77
	if _, err := b.Documents.Store.Put(t.Context(), d, "ann", "", config.Any); err != nil {
		t.Fatal(err)
	}
	old := Root + "/config/1"
	if got := v.get(old); !strings.Contains(got.body, "Rehearse version 1</button>") {
		t.Error(got.body)
	}
	if got := v.send(t, old, old+"/rehearse"); got.Code != 200 || !strings.Contains(got.body, "Nothing would become of any of them") {
		t.Error(got.Code, got.body)
	}
	block := recording.Block{Seen: [2]uint64{200, 0}}
	for i := range 200 {
		block.Requests = append(block.Requests, recording.Request{ID: [16]byte{1, byte(i)}, Time: time.Now().UnixMilli(), Method: "GET", Path: "/v1/health", Route: "health", Client: "192.0.2.1", Status: 200})
	}
	d.AnonymousPerMinute = 50
	for _, doc := range []config.Document{d, now.Document} {
		if _, err := b.Documents.Store.Put(t.Context(), doc, "ann", "", config.Any); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Requests.AddRecords(t.Context(), "edge-1", [][]byte{block.Append(nil)}); err != nil {
		t.Fatal(err)
	}
	small := Root + "/config/3"
	if got := v.send(t, small, small+"/rehearse"); got.Code != 200 || !strings.Contains(got.body, "Would now be refused: 150 requests") || !strings.Contains(got.body, "the limit address of 50 a minute is reached") {
		t.Error(got.Code, got.body)
	}
	if now, err = b.Documents.Store.Latest(t.Context()); err != nil || now.Number != 4 {
		t.Errorf("it is at version %d: %v", now.Number, err)
	}
}

// A rollback from the dashboard and a change over the admin API wait for each other
// in the process: the one that waits holds no connection that waits for a lock.
func TestRollbackWaitsItsTurn(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var calls atomic.Int32
	compiling, refuse := make(chan struct{}), make(chan struct{})
	b.Documents = config.NewPublisher(b.Documents.Store, func(config.Document) error {
		if calls.Add(1) > 1 {
			return nil
		}
		close(compiling)
		<-refuse
		return &apierror.Error{Code: decision.Unavailable}
	}, nil)
	b.serve()
	now, err := b.Documents.Store.Latest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	now.Document.AnonymousPerMinute = 77
	if _, err := b.Documents.Store.Put(t.Context(), now.Document, "ann", "", config.Any); err != nil {
		t.Fatal(err)
	}
	v, old := b.operator(t), Root+"/config/1"
	form := url.Values{"token": {v.get(old).token(t)}, "newest": {"2"}}
	admin := chi.NewRouter()
	b.Documents.Routes(admin, httpapi.Adapter{Log: slog.New(slog.DiscardHandler)})
	changed, rolledBack := make(chan int, 1), make(chan answer, 1)
	go func() {
		w := httptest.NewRecorder()
		admin.ServeHTTP(w, httptest.NewRequest("POST", "/config/versions/1/rollback", nil))
		changed <- w.Code
	}()
	<-compiling
	go func() { rolledBack <- v.post(old+"/rollback", form) }()
	for range 300 { // some hundred milliseconds of questions
		var waiting int
		err := b.db.QueryRow(t.Context(), `SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'config_versions'::regclass
			AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`).Scan(&waiting)
		if err != nil || waiting > 0 || len(rolledBack) > 0 {
			t.Errorf("the rollback did not wait its turn: %d connections wait for the lock; %v", waiting, err)
			break
		}
	}
	close(refuse)
	if code := <-changed; code != 503 {
		t.Errorf("the change that is refused: %d", code)
	}
	if got := <-rolledBack; got.Code != 303 {
		t.Errorf("%d %s", got.Code, got.body)
	}
}

// A key is shown once, works for what it says, and is gone after it is revoked.
func TestKeys(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v := b.person(t, "", "m@example.com", accounts.Member)
	page := Root + "/keys"
	made := v.send(t, page, page, "name", "ci", "scopes", "streams:read", "days", "30")
	text := regexp.MustCompile(`slk_([0-9a-z]{13})_\w+`).FindStringSubmatch(made.body)
	if made.Code != 200 || text == nil {
		t.Fatal(made.Code, made.body)
	}
	for name, c := range map[string]struct {
		fields []string
		want   int
		text   string
	}{
		"no scopes":          {[]string{"name", "x", "days", "30"}, 200, "The key was not created"},
		"more than it may":   {[]string{"name", "x", "days", "30", "scopes", "users:write"}, 403, "Forbidden"},
		"a life of its own":  {[]string{"name", "x", "days", "31", "scopes", "streams:read"}, 400, "when the key expires"},
		"another's account":  {[]string{"name", "x", "days", "30", "scopes", "streams:read", "account", b.seeded.Account}, 404, "Not Found"},
		"a name that breaks": {[]string{"name", `"><script>` + strings.Repeat("x", 300), "days", "30", "scopes", "streams:read"}, 200, "The key was not created"},
	} {
		if got := v.send(t, page, page, c.fields...); got.Code != c.want || !strings.Contains(got.body, c.text) || strings.Contains(got.body, `"><script>x`) {
			t.Errorf("%s: %d %s", name, got.Code, got.body)
		}
	}
	one := page + "/key_" + text[1]
	revoke := one + "/revoke"
	if list := v.get(page).body; strings.Contains(list, text[0]) || !strings.Contains(list, one) || !strings.Contains(v.get(one).body, revoke) {
		t.Error(list)
	}
	if got := b.operator(t).send(t, page, revoke); got.Code != 404 {
		t.Errorf("another account's page revoked the key: %d", got.Code)
	}
	if got := v.send(t, revoke, revoke, "confirm", "CI"); got.Code != 200 || !strings.Contains(got.body, "is not the name that is asked for") || v.get(one).Code != 200 {
		t.Error(got.Code, got.body)
	}
	if got := v.send(t, revoke, revoke, "confirm", " ci "); got.Code != 303 || strings.Contains(v.get(page).body, one) {
		t.Error(got.Code, got.body)
	}
	if got := v.get(page + "?done=revoked").body; !strings.Contains(got, "The key is revoked") {
		t.Error(got)
	}
}

// A delivery is read, with its attempts, and sent again.
func TestWebhooks(t *testing.T) {
	t.Parallel()
	b := setup(t)
	account := b.seeded.Account
	sub, err := b.Config.Webhooks.Create(t.Context(), account, webhooks.Create{URL: "http://127.0.0.1:9/hook", Events: []string{"stream.*"}, Secret: "a secret of sixteen"})
	if err != nil {
		t.Fatal(err)
	}
	event := events.Event{Account: account, Type: "stream.ended", Time: time.Now(), Data: map[string]any{"stream_id": "strm_1"}}
	if err := postgres.InTx(t.Context(), b.db, func(tx pgx.Tx) error { return b.Config.Webhooks.EmitTx(t.Context(), tx, event) }); err != nil {
		t.Fatal(err)
	}
	v, page := b.operator(t), Root+"/webhooks/"+sub.ID
	if got := v.get(Root + "/webhooks"); !strings.Contains(got.body, sub.URL) || strings.Contains(got.body, "a secret of sixteen") {
		t.Error(got.body)
	}
	link := regexp.MustCompile(page + `/deliveries/\d+`).FindString(v.get(page).body)
	if link == "" {
		t.Fatal("no delivery is listed")
	}
	if got := v.get(page + "?status=failed"); !strings.Contains(got.body, "No deliveries are failed") {
		t.Error(got.body)
	}
	if got := v.get(link); got.Code != 200 || !strings.Contains(got.body, "strm_1") {
		t.Error(got.Code, got.body)
	}
	if got := v.send(t, link, link+"/resend"); got.Code != 303 || !strings.HasSuffix(got.Header().Get("Location"), "done=resent") {
		t.Error(got.Code, got.body)
	}
	for _, path := range []string{page + "/deliveries/none", page + "/deliveries/99", Root + "/webhooks/none", page + "?before=x"} {
		if got := v.get(path); got.Code != 404 {
			t.Errorf("%s: %d", path, got.Code)
		}
	}
}

func TestSchedules(t *testing.T) {
	t.Parallel()
	b := setup(t)
	d := definition.Definition{Name: "every hour", Type: definition.TypeCustom, Schedule: definition.Timing{Type: definition.Recurring, Cron: "0 * * * *", Timezone: "UTC"}}
	made, err := b.Config.Schedules.Create(t.Context(), b.seeded.Account, d)
	if err != nil {
		t.Fatal(err)
	}
	v, page := b.operator(t), Root+"/schedules/"+made.ID
	if got := v.get(Root + "/schedules"); strings.Count(got.body, "<line ") != 24 || !strings.Contains(got.body, "Runs of every hour") {
		t.Errorf("%d runs are drawn: %s", strings.Count(got.body, "<line "), got.body)
	}
	if got := v.get(page); !strings.Contains(got.body, "It has not run yet") {
		t.Error(got.body)
	}
	if got := v.send(t, page, page+"/run"); got.Code != 303 {
		t.Error(got.Code, got.body)
	}
	if got := v.get(Root + "/schedules/schedule_none"); got.Code != 404 {
		t.Error(got.Code)
	}
}

func TestTheAuditLogTellsWhatPagesDid(t *testing.T) {
	t.Parallel()
	b := setup(t)
	owner := b.person(t, "", "o@example.com", accounts.Owner)
	owner.send(t, Root+"/keys", Root+"/keys", "name", "ci", "scopes", "streams:read", "days", "30")
	for name, v := range map[string]*visitor{"owner": owner, "operator": b.operator(t)} {
		if got := v.get(Root + "/audit?action=key.create"); !strings.Contains(got.body, "key.create") || !strings.Contains(got.body, "sess_") {
			t.Errorf("%s: %s", name, got.body)
		}
	}
	if got := owner.get(Root + "/audit?of=" + b.seeded.Account); strings.Contains(got.body, b.seeded.Account) {
		t.Error("an owner reads another account's log")
	}
	if got := owner.get(Root + "/audit?action=no.such"); !strings.Contains(got.body, "No matching changes") {
		t.Error(got.body)
	}
}

// Who gets a part of a route's requests, and copies of them, is shown and found.
func TestRoutesShowTheirVersions(t *testing.T) {
	t.Parallel()
	b := setup(t)
	now, err := b.Documents.Store.Latest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	d, weight := now.Document, uint32(5)
	for _, name := range []string{"canary", "shadow"} {
		d.Products = append(d.Products, config.Product{Name: name, Upstreams: []config.Upstream{{Address: "10.0.0.1:80"}}})
	}
	d.Routes = append(slices.Clone(d.Routes), config.Route{Name: "rolled", Path: "/rolled", Auth: []string{"none"}, Product: "canary",
		Split:  []config.ProductVersion{{Product: "shadow", Weight: &weight}, {Product: "api", Headers: []config.HeaderMatch{{Name: "x-v"}}}},
		Mirror: &config.Mirror{Product: "media", Percent: &weight}})
	if _, err := b.Documents.Store.Put(t.Context(), d, "ann", "", config.Any); err != nil {
		t.Fatal(err)
	}
	got := b.operator(t).get(Root + "/routes?q=shadow")
	for _, want := range []string{"rolled", "5 % to shadow", "by header to api", "5 % copied to media"} {
		if !strings.Contains(got.body, want) {
			t.Errorf("no %q in %s", want, got.body)
		}
	}
}

func TestRoutesAreFound(t *testing.T) {
	t.Parallel()
	b := setup(t)
	v := b.operator(t)
	if got := v.get(Root + "/routes?q=" + "streams:READ"); !strings.Contains(got.body, "streams.list") || strings.Contains(got.body, `>webhooks.create<`) {
		t.Error(got.body)
	}
	if got := v.get(Root + "/routes?q=%3Cscript%3Ealert"); !strings.Contains(got.body, "No routes match") || strings.Contains(got.body, "<script>alert") {
		t.Error(got.body)
	}
}

// A live part comes at once, comes again, and ends with the session.
func TestLive(t *testing.T) {
	t.Parallel()
	b := setup(t)
	server := httptest.NewServer(b.handler)
	t.Cleanup(server.Close)
	v := b.operator(t)
	res, body := v.stream(t, server, "overview")
	if res.StatusCode != 200 || res.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatal(res.Status, res.Header)
	}
	lines := bufio.NewScanner(body)
	events := 0
	for events < 2 && lines.Scan() {
		if lines.Text() == "" {
			events++
		} else if !strings.HasPrefix(lines.Text(), "data: ") {
			t.Fatal(lines.Text())
		}
	}
	if events < 2 {
		t.Fatal(lines.Err())
	}
	v.send(t, Root, Root+"/sign-out")
	for lines.Scan() { // until the server ends it
	}
	if lines.Err() != nil {
		t.Fatal(lines.Err())
	}
}

func TestWhoMayOpenLiveParts(t *testing.T) {
	t.Parallel()
	b := setup(t)
	member := b.person(t, "", "m@example.com", accounts.Member)
	for name, c := range map[string]struct {
		who  *visitor
		part string
		want int
	}{
		"a stranger":            {b.visitor(), "overview", 401},
		"a member, of edges":    {member, "edges", 403},
		"the operator, of none": {b.operator(t), "none", 404},
	} {
		if got := c.who.get(Root + "/live/" + c.part); got.Code != c.want {
			t.Errorf("%s: %d %s", name, got.Code, got.body)
		}
	}
}

// However many pages of an account hang, those of others are shown.
func TestPagesOfAnAccountHaveAShareOfTheDatabase(t *testing.T) {
	t.Parallel()
	b := setup(t)
	c := b.db.Config()
	c.MaxConns = 20
	pool, err := pgxpool.NewWithConfig(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	b.DB = pool
	b.serve()
	greedy, other := b.person(t, "", "g@example.com", accounts.Owner), b.person(t, "", "o@example.com", accounts.Owner)
	other.get(Root) // has a secret for forms from here on
	greedy.get(Root)
	tx, err := b.db.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(t.Context()) }()
	if _, err := tx.Exec(t.Context(), `LOCK TABLE api_keys`); err != nil {
		t.Fatal(err)
	}
	codes := make(chan int, 40)
	for range cap(codes) {
		go func() { codes <- greedy.get(Root + "/keys").Code }()
	}
	for range cap(codes) - 5*pagesEach { // those who have no place, and none to wait
		if code := <-codes; code != 429 {
			t.Errorf("%d", code)
		}
	}
	if got := other.get(Root + "/usage"); got.Code != 200 {
		t.Errorf("%d %s", got.Code, got.body)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 5 * pagesEach {
		if code := <-codes; code != 200 {
			t.Errorf("%d", code)
		}
	}
}

func TestLivePartsAreBounded(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.Streams = 20
	b.Every = time.Hour // the first event only
	done := make(chan struct{})
	b.Done = done
	b.serve()
	server := httptest.NewServer(b.handler)
	t.Cleanup(server.Close)
	one, two, stranger := b.operator(t), b.operator(t), b.person(t, "", "o@example.com", accounts.Owner)
	for i, c := range []struct {
		who  *visitor
		want int
	}{{one, 200}, {one, 200}, {one, 200}, {one, 200}, {one, 429}, {two, 200}, {two, 429}, {stranger, 200}} {
		if res, _ := c.who.stream(t, server, "overview"); res.StatusCode != c.want {
			t.Fatalf("%d: %d, want %d", i, res.StatusCode, c.want)
		}
	}
	close(done) // or Close would wait for them
}
