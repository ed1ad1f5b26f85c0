package audit

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"
	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/platform/http/httpapi"
	"sluice.dev/sluice/platform/http/identity"
	"sluice.dev/sluice/platform/http/paging"
	"sluice.dev/sluice/platform/storage/postgres"
	"sluice.dev/sluice/platform/storage/postgres/pgtest"
)

func add(ctx context.Context, db postgres.DB, c Change) error {
	return postgres.InTx(ctx, db, func(tx pgx.Tx) error { return RecordTx(ctx, tx, c) })
}

// fromHTTP is the context in which a handler runs.
func fromHTTP(caller string) (ctx context.Context) {
	h := Middleware(func(*http.Request) string { return "192.0.2.1" })(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		ctx = identity.With(r.Context(), identity.Caller{Key: caller})
	}))
	r := httptest.NewRequest("POST", "/", nil)
	r.Header.Set(httpapi.RequestIDHeader, "req-1")
	h.ServeHTTP(httptest.NewRecorder(), r)
	return ctx
}

func TestAnEntrySaysWhoFromWhereAndWhat(t *testing.T) {
	t.Parallel()
	db := pgtest.Pool(t)
	ctx := context.WithoutCancel(fromHTTP("key_1"))
	if err := add(ctx, db, Change{Account: "acct_1", Action: "key.rename", Target: "key_2", Before: map[string]int{"a": 1}, After: map[string]int{"a": 2}}); err != nil {
		t.Fatal(err)
	}
	if err := add(t.Context(), db, Change{Action: "plan.add", Target: "gold"}); err != nil {
		t.Fatal(err)
	}
	list, total, err := paging.Rows(Read(t.Context(), db, Filter{}, paging.Page{Limit: 10}))
	if err != nil || total != 2 {
		t.Fatalf("%d %v", total, err)
	}
	system, e := list[0], list[1]
	if e.Actor != "key_1" || e.Address != "192.0.2.1" || e.RequestID != "req-1" || *e.Account != "acct_1" || e.Action != "key.rename" ||
		e.Target != "key_2" || string(e.Before) != `{"a": 1}` || string(e.After) != `{"a": 2}` || e.At.IsZero() {
		t.Errorf("%+v", e)
	}
	if system.Actor != System || system.Account != nil || system.Before != nil || system.Address != "" {
		t.Errorf("%+v", system)
	}
}

func TestNoEntryWithoutItsChange(t *testing.T) {
	t.Parallel()
	db := pgtest.Pool(t)
	crash := errors.New("crash")
	err := postgres.InTx(t.Context(), db, func(tx pgx.Tx) error {
		return errors.Join(RecordTx(t.Context(), tx, Change{Action: "a.b"}), crash)
	})
	if _, total, list := paging.Rows(Read(t.Context(), db, Filter{}, paging.Page{Limit: 1})); total != 0 || list != nil || !errors.Is(err, crash) {
		t.Fatalf("%d %v %v", total, list, err)
	}
	if err := add(t.Context(), db, Change{Action: "not an action"}); err == nil {
		t.Fatal("an action without a thing and a verb was recorded")
	}
}

func TestOperatorsFilterTheLog(t *testing.T) {
	t.Parallel()
	db := pgtest.Pool(t)
	for _, c := range []Change{{Account: "A", Action: "key.create", Target: "k1"}, {Account: "A", Action: "key.revoke", Target: "k1", Actor: "x"},
		{Account: "B", Action: "key.create", Target: "k2"}} {
		if err := add(t.Context(), db, c); err != nil {
			t.Fatal(err)
		}
	}
	r := chi.NewRouter()
	API{DB: db}.AdminRoutes(r)
	for query, want := range map[string]int{
		"": 3, "account=A": 2, "action=key.create": 2, "target=k1&actor=x": 1, "account=C": 0, "limit=1": 1, "limit=x": -1, "offset=2": 1,
		"actor=" + strings.Repeat("a", 101): -1,
	} {
		w := httptest.NewRecorder()
		r.ServeHTTP(w, httptest.NewRequest("GET", "/audit?"+query, nil))
		var got paging.List[Entry]
		err := json.Unmarshal(w.Body.Bytes(), &got)
		if want < 0 && w.Code != 400 || want >= 0 && (err != nil || w.Code != 200 || len(got.Data) != want) {
			t.Errorf("%.20s: %d %s", query, w.Code, w.Body)
		}
	}
}
