package keyimport

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/controlplane/accounts"
	"sluice.dev/sluice/controlplane/accounts/apikeys"
	"sluice.dev/sluice/filters/credentials/apikey"
	"sluice.dev/sluice/filters/credentials/keytable"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/paging"
	"sluice.dev/sluice/platform/storage/postgres"
	"sluice.dev/sluice/platform/storage/postgres/pgtest"
)

var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func setup(t testing.TB) Service {
	t.Helper()
	db := pgtest.Pool(t)
	return Service{Keys: apikeys.Store{DB: db, Now: func() time.Time { return now }}, Accounts: accounts.Store{DB: db}}
}

func sum(text string) string {
	s := sha256.Sum256([]byte(text))
	return hex.EncodeToString(s[:])
}

// record is what edges know of the key with a text.
func record(t *testing.T, db postgres.DB, tag keytable.Tag) (r keytable.Record, ok bool) {
	t.Helper()
	var raw []byte
	if err := db.QueryRow(t.Context(), `SELECT coalesce((SELECT record FROM edge_records WHERE tag = $1), '')`, tag[:]).Scan(&raw); err != nil {
		t.Fatal(err)
	}
	return keytable.Decode(raw)
}

func (s Service) must(t *testing.T, r Request) Report {
	t.Helper()
	report, err := s.Import(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func TestImportedKeysReachEdgesAndMayBeImportedAgain(t *testing.T) {
	t.Parallel()
	s := setup(t)
	mine, err := s.Accounts.Create(t.Context(), "mine", "pro")
	if err != nil {
		t.Fatal(err)
	}
	limit, end := uint32(7), now.Add(time.Hour)
	r := Request{From: "kong", CreateAccounts: true, Plan: "free", Keys: []Key{
		{SHA256: sum("one"), Name: "one", Account: mine.ID, Scopes: []string{"streams:read"}, ExpiresAt: &end, PerMinute: &limit, ExternalID: "k1"},
		{SHA256: strings.ToUpper(sum("two")), Name: "two", Account: "customer-2", Scopes: []string{"streams:read"}},
		{SHA256: sum("three"), Name: "three", Account: "customer-2", Scopes: []string{"streams:read"}},
	}}
	if _, ok := record(t, s.Keys.DB, keytable.TagOfImports()); ok {
		t.Fatal("edges look for imported keys before there are any")
	}
	if got := s.must(t, r); got.Created != 3 || got.AccountsCreated != 1 || len(got.Refused) != 0 {
		t.Fatalf("%+v", got)
	}
	if got := s.must(t, r); got.Created != 0 || got.Unchanged != 3 || got.AccountsCreated != 0 || len(got.Refused) != 0 {
		t.Fatalf("again: %+v", got)
	}
	if got, ok := record(t, s.Keys.DB, keytable.TagOfImports()); !ok || got.Kind != keytable.KindImports {
		t.Errorf("the edges are not told to look: %+v", got)
	}
	if got, ok := record(t, s.Keys.DB, apikey.TagOfImported("one")); !ok || got.Kind != keytable.KindKey || got.Limit != 7 || int64(got.Expires) != end.Unix() {
		t.Errorf("%+v", got)
	}
	list, _, err := paging.Rows(s.Keys.Page(t.Context(), mine.ID, paging.Page{Limit: 10}))
	if err != nil || len(list) != 1 || *list[0].ImportedFrom != "kong" || *list[0].ExternalID != "k1" {
		t.Fatalf("%+v %v", list, err)
	}
	var entries int
	err = s.Keys.DB.QueryRow(t.Context(), `SELECT count(*) FROM audit_log WHERE action = 'key.import'`).Scan(&entries)
	if err != nil || entries != 2 {
		t.Errorf("%d entries of the audit log, want one for each account: %v", entries, err)
	}
}

func TestImportedKeysEndAndAreReplaced(t *testing.T) {
	t.Parallel()
	s := setup(t)
	r := Request{From: "unkey", CreateAccounts: true, Plan: "free", Keys: []Key{
		{SHA256: sum("one"), Name: "one", Account: "a", Scopes: []string{"streams:read"}},
		{SHA256: sum("two"), Name: "two", Account: "a", Scopes: []string{"streams:read"}},
	}}
	s.must(t, r)
	ids, err := s.Accounts.External(t.Context(), []string{"a"})
	if err != nil {
		t.Fatal(err)
	}
	list, _, err := paging.Rows(s.Keys.Page(t.Context(), ids["a"], paging.Page{Limit: 10}))
	if err != nil || len(list) != 2 {
		t.Fatal(list, err)
	}
	of := map[string]string{list[0].Name: list[0].ID, list[1].Name: list[1].ID}
	if err := s.Keys.Revoke(t.Context(), ids["a"], of["one"], []string{"*"}); err != nil {
		t.Fatal(err)
	}
	if _, ok := record(t, s.Keys.DB, apikey.TagOfImported("one")); ok {
		t.Error("a revoked key is still at edges")
	}
	next, err := s.Keys.Rotate(t.Context(), ids["a"], of["two"], 0, []string{"*"})
	if err != nil || !apikey.WellFormed(next.Text) || next.ImportedFrom != nil {
		t.Errorf("%+v %v", next, err)
	}
	got := s.must(t, r)
	if got.Created+got.Unchanged != 0 || len(got.Refused) != 2 || !strings.Contains(got.Refused[0].Reason, "revoked") {
		t.Errorf("revoked keys came back: %+v", got)
	}
	if _, ok := record(t, s.Keys.DB, apikey.TagOfImported("two")); ok {
		t.Error("a rotated key is back at edges")
	}
	if _, err := s.Keys.Find(t.Context(), "one"); apierror.Code(err) != decision.InvalidKey {
		t.Errorf("the admin API: %v", err)
	}
}

func TestNobodyTakesAKeyOver(t *testing.T) {
	t.Parallel()
	s := setup(t)
	owner, err := s.Accounts.Create(t.Context(), "owner", "pro")
	if err != nil {
		t.Fatal(err)
	}
	ours, err := s.Keys.Create(t.Context(), apikeys.Spec{Account: owner.ID, Name: "k", Scopes: []string{"streams:read"}, Creator: []string{"*"}})
	if err != nil {
		t.Fatal(err)
	}
	key := func(text, account string) Request {
		return Request{From: "x", CreateAccounts: true, Plan: "free", Keys: []Key{{SHA256: sum(text), Name: "k", Account: account, Scopes: []string{"streams:read"}}}}
	}
	s.must(t, key("imported", owner.ID))
	if got := s.must(t, key("imported", "thief")); len(got.Refused) != 1 || !strings.Contains(got.Refused[0].Reason, "another account") {
		t.Errorf("%+v", got)
	}
	before, _ := record(t, s.Keys.DB, keytable.TagOfKey(apikey.Hash(ours.Text)))
	s.must(t, key(ours.Text, "thief"))
	if after, ok := record(t, s.Keys.DB, keytable.TagOfKey(apikey.Hash(ours.Text))); !ok || after != before {
		t.Errorf("a key of ours became %+v", after)
	}
	if h, err := s.Keys.Find(t.Context(), ours.Text); err != nil || h.Account != owner.ID {
		t.Errorf("%+v %v", h, err)
	}
}

func TestKeysAtFaultAreRefusedByThemselves(t *testing.T) {
	t.Parallel()
	s := setup(t)
	zero, past := uint32(0), now
	good := Key{SHA256: sum("good"), Name: "k", Account: "a", Scopes: []string{"streams:read"}}
	made := 0
	change := func(f func(*Key)) Key {
		made++
		k := good
		k.SHA256 = sum(fmt.Sprint(made))
		f(&k)
		return k
	}
	bad := map[string]Key{
		"sha256":                change(func(k *Key) { k.SHA256 = "abc" }),
		"name":                  change(func(k *Key) { k.Name = "" }),
		"scopes[0]":             change(func(k *Key) { k.Scopes = []string{"nobody:knows"} }),
		"scopes is":             change(func(k *Key) { k.Scopes = nil }),
		"narrower":              change(func(k *Key) { k.Scopes = []string{"*"} }),
		"account is missing":    change(func(k *Key) { k.Account = "" }),
		"account is not":        change(func(k *Key) { k.Account = "acct_0000000000000" }),
		"account is not a name": change(func(k *Key) { k.Account = "a\x00b" }),
		"expires_at":            change(func(k *Key) { k.ExpiresAt = &past }),
		"rate_limit_per_minute": change(func(k *Key) { k.PerMinute = &zero }),
		"external_id":           change(func(k *Key) { k.ExternalID = strings.Repeat("x", 201) }),
	}
	for want, k := range bad {
		got := s.must(t, Request{From: "x", CreateAccounts: true, Plan: "free", Keys: []Key{good, k}})
		if len(got.Refused) != 1 || got.Refused[0].Index != 1 || !strings.Contains(got.Refused[0].Reason, want) || got.Created+got.Unchanged != 1 {
			t.Errorf("%s: %+v", want, got)
		}
	}
	got := s.must(t, Request{From: "x", Keys: []Key{change(func(k *Key) { k.Account = "unheard-of" })}})
	if len(got.Refused) != 1 || !strings.Contains(got.Refused[0].Reason, "create_accounts") {
		t.Errorf("an account was made unasked: %+v", got)
	}
	for name, r := range map[string]Request{
		"from": {Keys: []Key{good}}, "keys": {From: "x"}, "plan": {From: "x", CreateAccounts: true, Keys: []Key{good}},
		"too many": {From: "x", Keys: make([]Key, MaxKeys+1)},
	} {
		if _, err := s.Import(t.Context(), r); apierror.Code(err) != decision.InvalidRequest {
			t.Errorf("%s: %v", name, err)
		}
	}
	other := Request{From: "x", CreateAccounts: true, Plan: "nope", Keys: []Key{change(func(k *Key) { k.Account = "b" })}}
	if _, err := s.Import(t.Context(), other); apierror.Code(err) != decision.InvalidRequest {
		t.Errorf("a plan that there is not: %v", err)
	}
}

// BenchmarkImport is a whole request; with -benchtime 100x that is 100,000 keys.
func BenchmarkImport(b *testing.B) {
	s := setup(b)
	n := 0
	for b.Loop() {
		r := Request{From: "bench", CreateAccounts: true, Plan: "free", Keys: make([]Key, MaxKeys)}
		for i := range r.Keys {
			n++
			r.Keys[i] = Key{SHA256: sum(fmt.Sprint(n)), Name: "k", Account: fmt.Sprint("customer-", i%10), Scopes: []string{"streams:read"}}
		}
		if got, err := s.Import(b.Context(), r); err != nil || got.Created != MaxKeys {
			b.Fatal(got, err)
		}
	}
}
