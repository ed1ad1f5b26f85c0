package methods

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"
	"sluice.dev/sluice/controlplane/accounts"
	"sluice.dev/sluice/controlplane/accounts/billing/provider"
	"sluice.dev/sluice/controlplane/accounts/billing/provider/ledger"
	"sluice.dev/sluice/controlplane/accounts/billing/provider/stripe/stripetest"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/platform/http/idempotency"
	"sluice.dev/sluice/platform/http/identity"
	"sluice.dev/sluice/platform/http/paging"
	"sluice.dev/sluice/platform/storage/postgres/pgtest"
)

type bundle struct {
	db      *pgxpool.Pool
	server  *stripetest.Server
	handler http.Handler
	scope   string // that was asked for last
}

func setup(t *testing.T, with provider.Provider) *bundle {
	t.Helper()
	b := &bundle{db: pgtest.Pool(t)}
	if with == nil {
		b.server = stripetest.New(t)
		with = b.server.Client()
	}
	respond := httpapi.Adapter{Log: slog.New(slog.NewTextHandler(io.Discard, nil))}
	a := API{Store: Store{DB: idempotency.DB{Pool: b.db}, Provider: with}, Respond: respond}
	once := idempotency.New(idempotency.Config{DB: b.db, Respond: respond})
	r := chi.NewRouter()
	r.Use(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			next.ServeHTTP(w, r.WithContext(identity.With(r.Context(), identity.Caller{Account: r.Header.Get("Account"), Key: "key_1"})))
		})
	}, once.Wrap)
	a.Routes(r, func(scope string) func(http.Handler) http.Handler {
		return func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { b.scope = scope; next.ServeHTTP(w, r) })
		}
	})
	b.handler = r
	return b
}

func (b *bundle) account(t *testing.T) string {
	t.Helper()
	a, err := accounts.Store{DB: b.db}.Create(t.Context(), "A", "free")
	if err != nil {
		t.Fatal(err)
	}
	return a.ID
}

func (b *bundle) call(t *testing.T, account, method, path, body string, header ...string) (int, map[string]any) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, Path+path, strings.NewReader(body))
	r.Header.Set("Account", account)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	b.handler.ServeHTTP(w, r)
	var got map[string]any
	_ = json.Unmarshal(w.Body.Bytes(), &got)
	return w.Code, got
}

// add adds a payment method and returns its id.
func (b *bundle) add(t *testing.T, account, body string) string {
	t.Helper()
	status, got := b.call(t, account, "POST", "", body)
	if status != 201 {
		t.Fatal(status, got)
	}
	return got["id"].(string)
}

func (b *bundle) count(t *testing.T, sql string, args ...any) (n int) {
	t.Helper()
	if err := b.db.QueryRow(t.Context(), sql, args...).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestPaymentMethods(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	account, other := b.account(t), b.account(t)
	status, made := b.call(t, account, "POST", "", `{"token":"pm_one"}`)
	if status != 201 || made["type"] != "card" || made["brand"] != "visa" || made["last4"] != "4242" || made["default"] != true || made["charged"] != true || made["provider"] != "stripe" || b.scope != "billing:write" {
		t.Fatal(status, made, b.scope)
	}
	one := made["id"].(string)
	two := b.add(t, account, `{"token":"pm_two"}`)
	if again := b.add(t, account, `{"token":"pm_two"}`); again != two {
		t.Errorf("the same method twice: %s, %s", two, again)
	}
	if status, got := b.call(t, account, "GET", "?limit=1", ""); status != 200 || b.scope != "billing:read" || len(got["data"].([]any)) != 1 ||
		got["data"].([]any)[0].(map[string]any)["id"] != two || got["pagination"].(map[string]any)["total"] != 2.0 {
		t.Error(status, got)
	}
	if status, got := b.call(t, account, "PATCH", "/"+two, `{"default":true}`); status != 200 || got["default"] != true {
		t.Error(status, got)
	}
	if _, got := b.call(t, account, "GET", "/"+one, ""); got["default"] != false {
		t.Error("there are two defaults", got)
	}
	for _, c := range []struct {
		account, method, path, body string
		want                        int
	}{
		{account, "POST", "", `{"token":"pm_missing"}`, 400},
		{account, "POST", "", `{"token":"4242424242424242"}`, 400},
		{account, "POST", "", `{"card":{"number":"4242424242424242"}}`, 400},
		{account, "POST", "", `{}`, 400},
		{account, "POST", "", `{"token":"pm_` + strings.Repeat("x", 200) + `"}`, 400},
		{other, "POST", "", `{"token":"pm_one"}`, 400},
		{other, "GET", "/" + one, "", 404},
		{other, "PATCH", "/" + one, `{"default":true}`, 404},
		{other, "DELETE", "/" + one, "", 404},
		{account, "PATCH", "/" + one, `{"default":false}`, 400},
		{account, "GET", "?limit=0", "", 400},
		{account, "DELETE", "/" + two, "", 204},
		{account, "DELETE", "/" + two, "", 404},
	} {
		if status, got := b.call(t, c.account, c.method, c.path, c.body); status != c.want {
			t.Errorf("%s %s %.60s: %d %v, want %d", c.method, c.path, c.body, status, got, c.want)
		}
	}
	if _, got := b.call(t, account, "GET", "/"+one, ""); got["default"] != true {
		t.Error("the default is gone, and no other is", got)
	}
	for action, want := range map[string]int{"payment_method.create": 2, "payment_method.set_default": 1, "payment_method.delete": 1} {
		if n := b.count(t, `SELECT count(*) FROM audit_log WHERE action = $1 AND account_id = $2`, action, account); n != want {
			t.Errorf("%d entries %s", n, action)
		}
	}
	if n := b.count(t, `SELECT count(*) FROM audit_log WHERE account_id = $1 AND (before::text LIKE '%pm_one%' OR after::text LIKE '%pm_one%')`, account); n != 0 {
		t.Error("the provider's names are in the audit log")
	}
	status, got := b.call(t, account, "POST", "/setup", "")
	if status != 201 || got["client_secret"] == "" || got["publishable_key"] != "pk_test_123" || got["provider"] != "stripe" {
		t.Error(status, got)
	}
}

func TestARequestThatIsRepeated(t *testing.T) {
	t.Parallel()
	b := setup(t, nil)
	account := b.account(t)
	// Stripe answers once that it cannot: nothing is kept, and the repetition works.
	b.server.Fail(stripetest.Fault{Path: "/attach", Status: 500, After: true})
	if status, got := b.call(t, account, "POST", "", `{"token":"pm_one"}`, "Idempotency-Key", "k"); status != 503 {
		t.Fatal(status, got)
	}
	_, first := b.call(t, account, "POST", "", `{"token":"pm_one"}`, "Idempotency-Key", "k")
	status, again := b.call(t, account, "POST", "", `{"token":"pm_one"}`, "Idempotency-Key", "k")
	if status != 201 || again["id"] != first["id"] || again["id"] == nil || b.count(t, `SELECT count(*) FROM payment_methods`) != 1 {
		t.Error(status, first, again)
	}
	if status, got := b.call(t, account, "POST", "", `{"token":"pm_two"}`, "Idempotency-Key", "k"); status != 422 {
		t.Error(status, got)
	}
	attached := 0
	for _, path := range b.server.Seen() {
		if strings.HasSuffix(path, "/attach") {
			attached++
		}
	}
	if attached != 2 {
		t.Errorf("attached %d times", attached)
	}
	// Its answer to a detachment is lost.
	b.server.Fail(stripetest.Fault{Path: "/detach", Status: 502, After: true})
	id := "/" + first["id"].(string)
	if status, _ := b.call(t, account, "DELETE", id, ""); status != 503 {
		t.Error(status)
	}
	if status, _ := b.call(t, account, "DELETE", id, ""); status != 204 {
		t.Error(status)
	}
}

func TestOneDefaultUnderParallelChanges(t *testing.T) {
	t.Parallel()
	b := setup(t, ledger.Ledger{})
	account := b.account(t)
	s := Store{DB: b.db, Provider: ledger.Ledger{}}
	var g errgroup.Group
	for i := range Most + 5 {
		g.Go(func() error {
			_, _ = s.Add(t.Context(), account, "pm_"+string(rune('a'+i)), true) // some are too many
			return nil
		})
	}
	_ = g.Wait()
	list, total, err := paging.Rows(s.Page(t.Context(), account, paging.Page{Limit: 100}))
	defaults := 0
	for _, m := range list {
		if m.Default {
			defaults++
		}
	}
	if err != nil || total != Most || defaults != 1 {
		t.Errorf("%d methods, %d defaults, %v", total, defaults, err)
	}
	if n := b.count(t, `SELECT count(*) FROM billing_customers`); n != 1 {
		t.Errorf("%d customers", n)
	}
}

func TestTheLedgerSaysThatItChargesNobody(t *testing.T) {
	t.Parallel()
	b := setup(t, ledger.Ledger{})
	account, other := b.account(t), b.account(t)
	status, got := b.call(t, account, "POST", "", `{"token":"pm_anything"}`)
	if status != 201 || got["charged"] != false || got["provider"] != "ledger" || got["type"] != "ledger" {
		t.Error(status, got)
	}
	b.add(t, other, `{"token":"pm_anything"}`) // a name of its own
	for path, want := range map[string]int{"": 400, "/setup": 409} {
		if status, got := b.call(t, account, "POST", path, `{"token":"4242 4242"}`); status != want {
			t.Error(path, status, got)
		}
	}
	if status, _ := b.call(t, account, "DELETE", "/"+got["id"].(string), ""); status != 204 {
		t.Error(status)
	}
}
