package apikeys

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"
	"sluice.dev/sluice/controlplane/accounts/scoperegistry"
	"sluice.dev/sluice/filters/credentials/apikey"
	"sluice.dev/sluice/filters/credentials/keytable"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/paging"
	"sluice.dev/sluice/platform/storage/postgres"
	"sluice.dev/sluice/platform/storage/postgres/pgtest"
)

const (
	account = "acct_0000000000001"
	other   = "acct_0000000000002"
)

var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func setup(t *testing.T) (*pgxpool.Pool, Store) {
	t.Helper()
	db := pgtest.Pool(t)
	_, err := db.Exec(t.Context(), `INSERT INTO accounts (id, name, plan) VALUES ($1, 'A', 'local'), ($2, 'B', 'pro')`, account, other)
	if err != nil {
		t.Fatal(err)
	}
	return db, Store{DB: db, Now: func() time.Time { return now }}
}

func (s Store) mustCreate(t *testing.T, owner string, scopes ...string) Created {
	t.Helper()
	end := now.Add(time.Hour)
	c, err := s.Create(t.Context(), Spec{Account: owner, Name: "k", Scopes: scopes, ExpiresAt: &end, Creator: []string{"*"}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// atEdge is what edges know about the key with a text; ok is false for nothing.
func atEdge(t *testing.T, db postgres.DB, text string) (r keytable.Record, ok bool) {
	t.Helper()
	tag := keytable.TagOfKey(apikey.Hash(text))
	var raw []byte
	if err := db.QueryRow(t.Context(), `SELECT record FROM edge_records WHERE tag = $1`, tag[:]).Scan(&raw); err != nil {
		t.Fatal(err)
	}
	return keytable.Decode(raw)
}

func TestANewKeyIsAtTheEdge(t *testing.T) {
	t.Parallel()
	db, s := setup(t)
	c := s.mustCreate(t, account, "streams:read", "clips:*", "streams:read")
	if !apikey.WellFormed(c.Text) || c.Key.ID != c.ID || c.CreatedAt != now || len(c.Scopes) != 2 {
		t.Fatalf("%+v", c)
	}
	known, err := scoperegistry.Load(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	want := keytable.Record{Tag: keytable.TagOfKey(apikey.Hash(c.Text)), Kind: keytable.KindKey, Plan: 1, Account: 1,
		Expires: uint32(now.Add(time.Hour).Unix()), Scopes: keytable.Scopes{}.With(known["streams:read"]).With(known["clips:*"])}
	want.ID, _ = keytable.ParseID(keytable.KeyPrefix, c.ID)
	if got, ok := atEdge(t, db, c.Text); !ok || got != want {
		t.Fatalf("\n got %+v\nwant %+v", got, want)
	}
	var stored int
	err = db.QueryRow(t.Context(), `SELECT count(*) FROM api_keys k WHERE k::text LIKE '%' || $1 || '%'`, c.Text[len("slk_")+14:]).Scan(&stored)
	if err != nil || stored != 0 {
		t.Fatalf("the secret is stored: %d %v", stored, err)
	}
}

func TestCreateRefuses(t *testing.T) {
	t.Parallel()
	_, s := setup(t)
	past := now
	good := func() Spec {
		return Spec{Account: account, Name: "k", Scopes: []string{"streams:read"}, Creator: []string{"streams:*"}}
	}
	for name, c := range map[string]struct {
		change  func(*Spec)
		want    decision.Code
		details int
	}{
		"everything wrong at once": {func(s *Spec) { s.Name, s.Scopes, s.ExpiresAt = "", []string{"a:b", "streams:read", "c"}, &past }, decision.InvalidRequest, 4},
		"no scopes":                {func(s *Spec) { s.Scopes = nil }, decision.InvalidRequest, 1},
		"too many scopes":          {func(s *Spec) { s.Scopes = make([]string, 129) }, decision.InvalidRequest, 1},
		"a name of spaces":         {func(s *Spec) { s.Name = "  " }, decision.InvalidRequest, 1},
		"a name too long":          {func(s *Spec) { s.Name = strings.Repeat("é", 201) }, decision.InvalidRequest, 1},
		"a name with a line break": {func(s *Spec) { s.Name = "a\nb" }, decision.InvalidRequest, 1},
		"a name with a zero byte":  {func(s *Spec) { s.Name = "a\x00b" }, decision.InvalidRequest, 1},
		"wider than the creator":   {func(s *Spec) { s.Scopes = []string{"streams:read", "clips:write", "*"} }, decision.ScopeMissing, 2},
		"the creator has none":     {func(s *Spec) { s.Creator = nil }, decision.ScopeMissing, 1},
		"no such account":          {func(s *Spec) { s.Account = "acct_0000000000009" }, decision.NotFound, 0},
	} {
		spec := good()
		c.change(&spec)
		_, err := s.Create(t.Context(), spec)
		if apierror.Code(err) != c.want || details(err) != c.details {
			t.Errorf("%s: %v, want %s with %d details", name, err, c.want, c.details)
		}
	}
	if _, err := s.Create(t.Context(), good()); err != nil {
		t.Errorf("good: %v", err)
	}
}

func TestAnAccountCannotFillTheEdges(t *testing.T) {
	t.Parallel()
	_, s := setup(t)
	spec := Spec{Account: account, Name: "k", Scopes: []string{"*"}, Creator: []string{"*"}, Most: 2}
	var last Created
	for range 2 {
		var err error
		if last, err = s.Create(t.Context(), spec); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Create(t.Context(), spec); apierror.Code(err) != decision.Conflict {
		t.Fatalf("a third of two: %v", err)
	}
	if err := s.Revoke(t.Context(), account, last.ID, []string{"*"}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Create(t.Context(), spec); err != nil {
		t.Fatalf("after one was revoked: %v", err)
	}
}

func TestARevokedKeyIsGoneFromTheEdge(t *testing.T) {
	t.Parallel()
	db, s := setup(t)
	c := s.mustCreate(t, account, "streams:read")
	if err := s.Revoke(t.Context(), other, c.ID, []string{"*"}); apierror.Code(err) != decision.NotFound {
		t.Fatalf("another account revoked it: %v", err)
	}
	if err := s.Revoke(t.Context(), account, c.ID, []string{"*"}); err != nil {
		t.Fatal(err)
	}
	if r, ok := atEdge(t, db, c.Text); ok {
		t.Fatalf("still there: %+v", r)
	}
	_, found := s.Find(t.Context(), c.Text)
	_, got := s.Get(t.Context(), account, c.ID)
	again := s.Revoke(t.Context(), account, c.ID, []string{"*"})
	if apierror.Code(found) != decision.InvalidKey || apierror.Code(got) != decision.NotFound ||
		apierror.Code(again) != decision.NotFound {
		t.Fatalf("%v; %v; %v", found, got, again)
	}
}

// Revocations race with a change of the account that sends all its keys again:
// no order of the two may bring a revoked key back.
func TestNoRevokedKeyComesBack(t *testing.T) {
	t.Parallel()
	db, s := setup(t)
	var made []Created
	for range 20 {
		made = append(made, s.mustCreate(t, account, "streams:read"))
	}
	g, ctx := errgroup.WithContext(t.Context())
	for _, c := range made {
		g.Go(func() error { return s.Revoke(ctx, account, c.ID, []string{"*"}) })
		g.Go(func() error { return touch(ctx, db) })
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	for _, c := range made {
		if r, ok := atEdge(t, db, c.Text); ok {
			t.Errorf("%s is back: %+v", c.ID, r)
		}
	}
}

func touch(ctx context.Context, db postgres.DB) error {
	return postgres.InTx(ctx, db, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `UPDATE accounts SET plan = 'pro' WHERE id = $1`, account); err != nil {
			return err
		}
		return EmitAccountTx(ctx, tx, account)
	})
}

func TestFind(t *testing.T) {
	t.Parallel()
	db, s := setup(t)
	c := s.mustCreate(t, account, "*")
	h, err := s.Find(t.Context(), c.Text)
	if err != nil || h.ID != c.ID || h.Plan != "local" || h.Admin() {
		t.Fatalf("* in an account that is not the operator's: %+v %v", h, err)
	}
	if _, err := db.Exec(t.Context(), `UPDATE accounts SET operator = true`); err != nil {
		t.Fatal(err)
	}
	if h, err = s.FindByID(t.Context(), c.ID); err != nil || !h.Admin() {
		t.Fatalf("the operator's: %+v %v", h, err)
	}
	late := Store{DB: db, Now: func() time.Time { return now.Add(time.Hour) }}
	_, expired := late.Find(t.Context(), c.Text)
	_, unknown := s.Find(t.Context(), apikey.FormatKey(1, [apikey.SecretBytes]byte{}))
	_, rubbish := s.Find(t.Context(), "slk_rubbish")
	if apierror.Code(expired) != decision.TokenExpired || apierror.Code(unknown) != decision.InvalidKey ||
		apierror.Code(rubbish) != decision.InvalidKey {
		t.Fatalf("%v; %v; %v", expired, unknown, rubbish)
	}
}

func TestListAndChangeStayInTheAccount(t *testing.T) {
	t.Parallel()
	_, s := setup(t)
	for range 3 {
		s.mustCreate(t, account, "streams:read")
	}
	foreign := s.mustCreate(t, other, "streams:read")
	list, total, err := paging.Rows(s.Page(t.Context(), account, paging.Page{Limit: 2, Offset: 2}))
	if err != nil || len(list) != 1 || total != 3 {
		t.Fatalf("%v %d %v", list, total, err)
	}
	if _, err := s.Change(t.Context(), account, foreign.ID, Change{Name: ptr("mine")}, []string{"*"}); apierror.Code(err) != decision.NotFound {
		t.Fatalf("another account's key was renamed: %v", err)
	}
	if _, err := s.Change(t.Context(), account, list[0].ID, Change{Name: ptr("")}, []string{"*"}); apierror.Code(err) != decision.InvalidRequest {
		t.Fatalf("renamed to nothing: %v", err)
	}
	if k, err := s.Change(t.Context(), account, list[0].ID, Change{Name: ptr("new")}, []string{"*"}); err != nil || k.Name != "new" {
		t.Fatalf("%+v %v", k, err)
	}
}

func TestKeysThatEndedLongAgoAreForgotten(t *testing.T) {
	t.Parallel()
	db, s := setup(t)
	old := s.mustCreate(t, account, "streams:read")
	endless, err := s.Create(t.Context(), Spec{Account: account, Name: "k", Scopes: []string{"*"}, Creator: []string{"*"}})
	if err != nil {
		t.Fatal(err)
	}
	soon := Store{DB: db, Now: func() time.Time { return now.AddDate(0, 0, 29) }}
	n, err := soon.Purge(t.Context())
	if _, found := soon.Find(t.Context(), old.Text); n != 0 || err != nil || apierror.Code(found) != decision.TokenExpired {
		t.Fatalf("%d %v %v", n, err, found)
	}
	late := Store{DB: db, Now: func() time.Time { return now.AddDate(0, 0, 31) }}
	if n, err := late.Purge(t.Context()); n != 1 || err != nil {
		t.Fatalf("%d %v", n, err)
	}
	if _, ok := atEdge(t, db, old.Text); ok {
		t.Error("still at the edge")
	}
	if _, ok := atEdge(t, db, endless.Text); !ok {
		t.Error("a key without an end was purged")
	}
}

// details is how many fields err names.
func details(err error) int {
	e, ok := errors.AsType[*apierror.Error](err)
	if !ok {
		return 0
	}
	return len(e.Details)
}

func ptr[T any](v T) *T { return &v }
