package rehearsal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/controlplane/accounts"
	"sluice.dev/sluice/controlplane/accounts/apikeys"
	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/controlplane/gateway/requestlog"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/filters/recording"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/storage/postgres/pgtest"
)

// bundle is a service over a database of its own, with one account that has a key.
type bundle struct {
	*Service
	now          time.Time
	account, key string // ids
	blocks       int
}

// text is the document of these tests; %s are more fields.
const text = `{"classes":[{"name":"default","per_minute":60}],"plans":[{"name":"free"%s}],
	"products":[{"name":"one","upstream":"http://127.0.0.1:3000"},{"name":"other","upstream":"http://127.0.0.1:3001"}],
	"routes":[{"name":"list","methods":["GET"],"path":"/things","product":"one","scope":"things:read"},
		{"name":"get","methods":["GET"],"path":"/things/{id}","product":"one","scope":"things:read"},
		{"name":"open","path":"/open","product":"one","auth":["none"]}%s]%s}`

func document(more ...string) []byte {
	more = append(more, "", "", "")
	return fmt.Appendf(nil, text, more[0], more[1], more[2])
}

func setup(t testing.TB) *bundle {
	t.Helper()
	db, now := pgtest.Pool(t), time.Now().UTC().Truncate(time.Minute)
	d, err := config.ParseJSON(document())
	if err != nil {
		t.Fatal(err)
	}
	d, _ = d.Expand(config.ProfileGateway)
	if _, err := (config.Store{DB: db}).Put(t.Context(), d, "ann", "", config.Any); err != nil {
		t.Fatal(err)
	}
	b := &bundle{now: now}
	b.Service = New(Service{Documents: config.NewPublisher(config.Store{DB: db}, func(config.Document) error { return nil }, nil),
		Requests: requestlog.Store{DB: db, PathKey: requestlog.NewPathKey([]byte("secret")), Now: func() time.Time { return now }}, Now: func() time.Time { return now }})
	b.Documents.Profile = config.ProfileGateway
	a, err := accounts.Store{DB: db}.Create(t.Context(), "Acme", "free")
	if err != nil {
		t.Fatal(err)
	}
	k, err := apikeys.Store{DB: db}.Create(t.Context(), apikeys.Spec{Account: a.ID, Name: "k", Scopes: []string{"things:read"}, Creator: []string{"*"}})
	if err != nil {
		t.Fatal(err)
	}
	b.account, b.key = a.ID, k.ID
	return b
}

// did records requests, of which each stands for some, as of one edge.
func (b *bundle) did(t testing.TB, each uint64, list ...recording.Request) {
	t.Helper()
	for part := range slices.Chunk(list, recording.MaxRequests) {
		block := recording.Block{Requests: part}
		for i := range part {
			block.Seen[kindOf(&part[i])] += each
		}
		b.blocks++
		if err := b.Requests.AddRecords(t.Context(), fmt.Sprint("edge-", b.blocks%2), [][]byte{block.Append(nil)}); err != nil {
			t.Fatal(err)
		}
	}
}

// get is a request of the key that passed, some time ago.
func (b *bundle) get(path, route string, ago time.Duration) recording.Request {
	return recording.Request{ID: [16]byte{1}, Time: b.now.Add(-ago).UnixMilli(), Method: "GET", Host: "api", Path: path, Route: route, Account: b.account, Credential: b.key, Client: "192.0.2.1", Status: 200}
}

// tried rehearses a document on the last hour.
func (b *bundle) tried(t testing.TB, raw []byte) Report {
	t.Helper()
	p, err := b.Documents.Propose(t.Context(), raw)
	if err != nil {
		t.Fatal(err)
	}
	r, err := b.Rehearse(t.Context(), p, time.Hour, 3)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// What an answer says of whom, for what, and when.
func TestWhatAnAnswerSays(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for i := range 40 {
		b.did(t, 1, b.get("/things/7", "get", 10*time.Minute-time.Duration(i)*time.Second))
	}
	stranger := b.get("/nothing", "absent", 5*time.Minute)
	stranger.Account, stranger.Credential, stranger.Code, stranger.Status = "", "none", "not_found", 404
	open := b.get("/open", "open", time.Minute)
	open.Account, open.Credential = "", "" // nobody looked
	b.did(t, 1, stranger, open)
	same := b.tried(t, document())
	if n := same.Refused.Requests + same.Allowed.Requests + same.Moved.Requests + same.Otherwise.Requests + same.Undetermined.Requests; n != 0 || len(same.Changes) != 0 ||
		same.Record.Recorded != 42 || same.Record.Agreeing != 42 || same.Record.Edges != 2 || !same.Record.Complete {
		t.Errorf("the same document: %+v", same)
	}
	r := b.tried(t, []byte(strings.ReplaceAll(string(document("", `,{"name":"new","path":"/nothing","product":"other","auth":["none"]}`)), `"/things/{id}","product":"one","scope":"things:read"`, `"/things/{id}","product":"one","scope":"things:admin"`)))
	if r.Refused.Requests != 40 || r.Refused.Accounts != 1 || len(r.Refused.Findings) != 1 {
		t.Fatalf("%+v", r.Refused)
	}
	f := r.Refused.Findings[0]
	if f.Method != "GET" || f.Path != "/things/{id}" || f.Code != "AUTH_002" || !strings.Contains(f.Reason, "things:admin") || len(f.Accounts) != 1 || f.Accounts[0].Account != b.account ||
		f.Accounts[0].Credentials[0] != (Credential{b.key, 40}) || len(f.Examples) != 3 || f.Examples[0].ID != "01000000-0000-0000-0000-000000000000" {
		t.Errorf("%+v", f)
	}
	if r.Allowed.Requests != 1 || r.Allowed.Accounts != 0 || r.Allowed.Findings[0].Route != "new" || r.Allowed.Findings[0].Code != "not_found" {
		t.Errorf("%+v", r.Allowed)
	}
	r = b.tried(t, []byte(strings.Replace(string(document()), `"per_minute":60`, `"per_minute":15`, 1)))
	if r.Refused.Requests != 25 || len(r.Limits) != 1 || r.Limits[0] != (Bite{Minute: b.now.Add(-10 * time.Minute), Account: b.account, Limit: "default", PerMinute: 15, Refused: 25}) {
		t.Errorf("%+v %+v", r.Refused, r.Limits)
	}
	r = b.tried(t, []byte(strings.Replace(string(document()), `"auth":["none"]`, `"scope":"things:read"`, 1)))
	if r.Undetermined.Requests != 1 || !strings.Contains(r.Undetermined.Findings[0].Reason, "whether it has a credential") || r.Refused.Requests != 0 {
		t.Errorf("%+v", r.Undetermined)
	}
	r = b.tried(t, []byte(strings.Replace(string(document()), `"path":"/things/{id}",`, `"path":"/things/{id}","headers":[{"name":"X-New"}],`, 1)))
	if r.Undetermined.Requests != 40 || !strings.Contains(r.Undetermined.Findings[0].Reason, "X-New") {
		t.Errorf("%+v", r.Undetermined)
	}
	if version, err := b.Documents.Store.Latest(t.Context()); err != nil || version.Number != 1 {
		t.Errorf("it is at %d: %v", version.Number, err)
	}
}

// A plan's quota is compared with what was used, and a price is asked of those who have
// no key.
func TestQuotas(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.did(t, 1, b.get("/things", "list", time.Minute))
	month := time.Date(b.now.Year(), b.now.Month(), 1, 0, 0, 0, 0, time.UTC)
	if _, err := b.Requests.DB.Exec(t.Context(), `INSERT INTO usage_totals (account_id, month, product, requests) VALUES ($1, $2, 'one', 100)`, b.account, month); err != nil {
		t.Fatal(err)
	}
	for quota, refused := range map[int]int64{100: 1, 101: 0} {
		if r := b.tried(t, document(fmt.Sprintf(`,"quota":{"requests":%d}`, quota))); r.Refused.Requests != refused || refused > 0 && r.Refused.Findings[0].Code != string(decision.QuotaUsed) {
			t.Errorf("%d: %+v", quota, r.Refused)
		}
	}
}

// Who has no key is asked for a price where a route has one; who has paid as much as is
// asked still gets through.
func TestPrices(t *testing.T) {
	t.Parallel()
	b := setup(t)
	priced := func(price string) []byte {
		return []byte(strings.Replace(string(document("", "", `,"x402":{"network":"base","pay_to":"0x209693Bc6afc0C5328bA36FaF03C514EF312287C"}`)), `"path":"/things","product":"one",`, `"path":"/things","product":"one","price":"`+price+`",`, 1))
	}
	stranger := b.get("/things", "list", time.Minute)
	stranger.Account, stranger.Credential, stranger.Code, stranger.Status = "", "", "authentication_required", 401
	b.did(t, 1, stranger)
	if r := b.tried(t, priced("0.01")); r.Otherwise.Requests != 1 || r.Otherwise.Findings[0].Code != string(decision.PaymentRequired) || r.Refused.Requests != 0 {
		t.Errorf("%+v", r.Otherwise)
	}
	d, err := config.ParseJSON(priced("0.01"))
	if err != nil {
		t.Fatal(err)
	}
	d, _ = d.Expand(config.ProfileGateway)
	if _, err := b.Documents.Store.Put(t.Context(), d, "ann", "", config.Any); err != nil {
		t.Fatal(err)
	}
	payer := b.get("/things", "list", 30*time.Second)
	payer.Account, payer.Credential = "", "pay_0x857b06519E91e3A54538791bDbb0E22373e36b66"
	b.did(t, 1, payer)
	for price, refused := range map[string]int64{"0.01": 0, "0.02": 1} {
		if r := b.tried(t, priced(price)); r.Refused.Requests != refused {
			t.Errorf("%s: %+v", price, r.Refused)
		}
	}
}

// Where paths are not recorded a request is one of the route that it had, and the answer
// says so.
func TestWithoutPaths(t *testing.T) {
	t.Parallel()
	b := setup(t)
	one := b.get("", "list", time.Minute)
	b.did(t, 1, one, one)
	now, err := b.Documents.Store.Latest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	now.Document.RequestLog = "no_path"
	if _, err := b.Documents.Store.Put(t.Context(), now.Document, "ann", "", config.Any); err != nil {
		t.Fatal(err)
	}
	r := b.tried(t, []byte(strings.ReplaceAll(string(document()), "things:read", "things:admin")))
	if r.Refused.Requests != 2 || r.Refused.Findings[0].Route != "list" || !strings.Contains(strings.Join(r.Notes, " "), "no_path") {
		t.Errorf("%+v %v", r.Refused, r.Notes)
	}
}

// One rehearsal runs at a time, and ends when its caller leaves.
func TestOneAtATime(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p, err := b.Documents.Propose(t.Context(), document())
	if err != nil {
		t.Fatal(err)
	}
	b.busy <- struct{}{}
	if _, err := b.Rehearse(t.Context(), p, time.Hour, 3); apierror.Code(err) != decision.Conflict {
		t.Error(err)
	}
	<-b.busy
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.Rehearse(ctx, p, time.Hour, 3); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, err := b.Rehearse(t.Context(), p, time.Hour, 3); err != nil {
		t.Error(err)
	}
}

// An answer is small, whatever the number of accounts, keys and paths.
func TestAnAnswerIsSmall(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var list []recording.Request
	for i := range 8000 {
		r := b.get("/things", "list", 20*time.Minute-time.Duration(i)*time.Millisecond)
		r.Account, r.Credential, r.Method = fmt.Sprintf("acct_%013d", i%3000), fmt.Sprintf("tok_%013d", i), "GET"
		list = append(list, r)
	}
	b.did(t, 1, list...)
	r := b.tried(t, document("", `,{"name":"special","path":"/things","hosts":["api"],"product":"other"}`))
	raw, err := json.Marshal(r)
	if err != nil || len(raw) > 64<<10 || r.Record.Recorded != 8000 {
		t.Errorf("%d bytes of %d: %v", len(raw), r.Record.Recorded, err)
	}
}
