package accounts

import (
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"
	"sluice.dev/sluice/controlplane/accounts/apikeys"
	"sluice.dev/sluice/filters/credentials/apikey"
	"sluice.dev/sluice/filters/credentials/keytable"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/paging"
	"sluice.dev/sluice/platform/storage/postgres"
	"sluice.dev/sluice/platform/storage/postgres/pgtest"
)

type bundle struct {
	db      *pgxpool.Pool
	store   Store
	account Account
}

func setup(t *testing.T) bundle {
	t.Helper()
	db := pgtest.Pool(t)
	s := Store{DB: db}
	a, err := s.Create(t.Context(), "A", "free")
	if err != nil {
		t.Fatal(err)
	}
	return bundle{db, s, a}
}

func (b bundle) newKey(t *testing.T) keytable.Tag {
	t.Helper()
	c, err := apikeys.Store{DB: b.db}.Create(t.Context(),
		apikeys.Spec{Account: b.account.ID, Name: "k", Scopes: []string{"streams:read"}, Creator: []string{"*"}})
	if err != nil {
		t.Fatal(err)
	}
	return keytable.TagOfKey(apikey.Hash(c.Text))
}

// atEdge is what edges know under a tag; ok is false for nothing.
func atEdge(t *testing.T, db postgres.DB, tag keytable.Tag) (keytable.Record, bool) {
	t.Helper()
	var raw []byte
	if err := db.QueryRow(t.Context(), `SELECT record FROM edge_records WHERE tag = $1`, tag[:]).Scan(&raw); err != nil {
		t.Fatal(err)
	}
	return keytable.Decode(raw)
}

func ptr[T any](v T) *T { return &v }

func TestAChangeOfPlanReachesTheKeys(t *testing.T) {
	t.Parallel()
	b := setup(t)
	tag := b.newKey(t)
	plans, err := LoadPlans(t.Context(), b.db)
	if err != nil {
		t.Fatal(err)
	}
	if r, _ := atEdge(t, b.db, tag); r.Plan != plans["free"] {
		t.Fatalf("plan %d at first", r.Plan)
	}
	a, err := b.store.Update(t.Context(), b.account.ID, Change{Plan: ptr("pro")})
	if err != nil || a.Plan != "pro" || a.Name != "A" {
		t.Fatalf("%+v %v", a, err)
	}
	if r, _ := atEdge(t, b.db, tag); r.Plan != plans["pro"] {
		t.Fatalf("plan %d after the change, want %d", r.Plan, plans["pro"])
	}
}

func TestLimitsReachTheEdge(t *testing.T) {
	t.Parallel()
	b := setup(t)
	tag := b.newKey(t)
	number, _ := keytable.ParseID(keytable.AccountPrefix, b.account.ID)
	limit := keytable.TagOfLimit(number, "events")
	for _, perMinute := range []int{60, 120} {
		if err := b.store.SetLimit(t.Context(), b.account.ID, Limit{"events", perMinute}); err != nil {
			t.Fatal(err)
		}
		want := keytable.Record{Tag: limit, Kind: keytable.KindLimit, Account: number, Limit: uint32(perMinute)}
		if r, _ := atEdge(t, b.db, limit); r != want {
			t.Fatalf("%+v, want %+v", r, want)
		}
		if r, _ := atEdge(t, b.db, tag); r.Flags != keytable.FlagLimits {
			t.Fatalf("the key does not show that its account has limits: %+v", r)
		}
	}
	if list, err := b.store.Limits(t.Context(), b.account.ID); err != nil || len(list) != 1 || list[0] != (Limit{"events", 120}) {
		t.Fatalf("%v %v", list, err)
	}
	if r, _ := atEdge(t, b.db, b.newKey(t)); r.Flags != keytable.FlagLimits {
		t.Fatalf("a key that came after the limit: %+v", r)
	}
	if err := b.store.RemoveLimit(t.Context(), b.account.ID, "events"); err != nil {
		t.Fatal(err)
	}
	if r, ok := atEdge(t, b.db, limit); ok {
		t.Fatalf("still there: %+v", r)
	}
	if r, _ := atEdge(t, b.db, tag); r.Flags != 0 {
		t.Fatalf("the key still has its flag: %+v", r)
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := t.Context()
	create := func(name, plan string) error { _, err := b.store.Create(ctx, name, plan); return err }
	user := func(email, role string) error {
		_, err := b.store.AddUser(ctx, b.account.ID, email, role, "x")
		return err
	}
	if err := user("Ann@Example.com", Member); err != nil {
		t.Fatal(err)
	}
	_, unknown := b.store.Update(ctx, "acct_0000000000000", Change{})
	_, noAccount := b.store.AddUser(ctx, "acct_0000000000000", "b@example.com", Owner, "x")
	for name, c := range map[string]struct {
		err  error
		want decision.Code
	}{
		"no name":                {create("", "free"), decision.InvalidRequest},
		"a zero byte":            {create("a\x00", "free"), decision.InvalidRequest},
		"an unknown plan":        {create("a", "gold"), decision.InvalidRequest},
		"no plan":                {create("a", ""), decision.InvalidRequest},
		"an unknown account":     {unknown, decision.NotFound},
		"limit 0":                {b.store.SetLimit(ctx, b.account.ID, Limit{"events", 0}), decision.InvalidRequest},
		"a class with a space":   {b.store.SetLimit(ctx, b.account.ID, Limit{"a b", 1}), decision.InvalidRequest},
		"a limit of nobody":      {b.store.SetLimit(ctx, "acct_0000000000000", Limit{"events", 1}), decision.NotFound},
		"a limit of no id":       {b.store.SetLimit(ctx, "x", Limit{"events", 1}), decision.NotFound},
		"a limit that is not":    {b.store.RemoveLimit(ctx, b.account.ID, "events"), decision.NotFound},
		"an address twice":       {user("ann@example.com ", Member), decision.Conflict},
		"no address":             {user("ann", Member), decision.InvalidRequest},
		"an address with a name": {user("Ann <a@example.com>", Member), decision.InvalidRequest},
		"an unknown role":        {user("c@example.com", "king"), decision.InvalidRequest},
		"a user of nobody":       {noAccount, decision.NotFound},
	} {
		if apierror.Code(c.err) != c.want {
			t.Errorf("%s: %v, want %s", name, c.err, c.want)
		}
	}
}

func TestList(t *testing.T) {
	t.Parallel()
	b := setup(t)
	if _, err := b.store.CreateOperator(t.Context(), "B", "local"); err != nil {
		t.Fatal(err)
	}
	list, total, err := paging.Rows(b.store.Page(t.Context(), paging.Page{Limit: 1}))
	if err != nil || total != 2 || len(list) != 1 || !list[0].Operator {
		t.Fatalf("%+v %d %v", list, total, err)
	}
}

func TestPlansKeepTheirNumbers(t *testing.T) {
	t.Parallel()
	b := setup(t)
	before, err := LoadPlans(t.Context(), b.db)
	if err != nil {
		t.Fatal(err)
	}
	g, ctx := errgroup.WithContext(t.Context())
	for _, name := range []string{"gold", "gold", "silver", "local"} {
		g.Go(func() error { _, err := EnsurePlans(ctx, b.db, name, name, "pro"); return err })
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	after, err := EnsurePlans(t.Context(), b.db, "gold", "silver")
	if err != nil || len(after) != len(before)+2 {
		t.Fatalf("%v %v", after, err)
	}
	for name, n := range before {
		if after[name] != n {
			t.Errorf("%s moved from %d to %d", name, n, after[name])
		}
	}
	if _, err := EnsurePlans(t.Context(), b.db, "No Plan"); apierror.Code(err) != decision.InvalidRequest {
		t.Errorf("a bad name: %v", err)
	}
}
