package accounts

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/controlplane/accounts/apikeys"
	"sluice.dev/sluice/controlplane/edgesync/keyfeed"
	"sluice.dev/sluice/filters/credentials/apikey"
	"sluice.dev/sluice/filters/credentials/keytable"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
	"sluice.dev/sluice/platform/http/paging"
	"sluice.dev/sluice/platform/storage/audit"
	"sluice.dev/sluice/platform/storage/postgres"
)

// records are those of the account, of its allowlist and of a key, as edges have them.
func (b bundle) records(t *testing.T, key keytable.Tag) (account, list, of bool) {
	t.Helper()
	number, _ := keytable.ParseID(keytable.AccountPrefix, b.account.ID)
	there := func(tag keytable.Tag) (found bool) {
		err := b.db.QueryRow(t.Context(), `SELECT EXISTS (SELECT FROM edge_records WHERE tag = $1 AND record IS NOT NULL)`, tag[:]).Scan(&found)
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	return there(keytable.TagOfAccount(number)), there(keytable.TagOfAllowlist(number)), there(key)
}

// Edges know nothing of an account that is suspended, whatever else changes of it; resumed it
// is there again as it is then.
func TestASuspendedAccountLeavesTheEdges(t *testing.T) {
	t.Parallel()
	b := setup(t)
	keys := apikeys.Store{DB: b.db}
	tag := b.newKey(t)
	if _, err := b.store.SetAllowlist(t.Context(), b.account.ID, []string{"192.0.2.0/24"}); err != nil {
		t.Fatal(err)
	}
	if account, list, key := b.records(t, tag); !account || !list || !key {
		t.Fatal(account, list, key)
	}
	out := func(when string) {
		t.Helper()
		if account, list, key := b.records(t, tag); account || list || key {
			t.Fatalf("%s: account %v, allowlist %v, key %v", when, account, list, key)
		}
	}
	a, err := b.store.Suspend(t.Context(), b.account.ID, "Write to support@example.com.")
	if err != nil || a.SuspendedAt == nil || a.SuspendedReason != "Write to support@example.com." {
		t.Fatalf("%+v %v", a, err)
	}
	out("suspended")
	again, err := b.store.Suspend(t.Context(), b.account.ID, "Fraud.")
	if err != nil || !again.SuspendedAt.Equal(*a.SuspendedAt) || again.SuspendedReason != "Fraud." {
		t.Fatalf("%+v %v", again, err)
	}
	if _, err := b.store.Update(t.Context(), b.account.ID, Change{Plan: ptr("pro")}); err != nil {
		t.Fatal(err)
	}
	if err := b.store.SetLimit(t.Context(), b.account.ID, Limit{"default", 5}); err != nil {
		t.Fatal(err)
	}
	made, err := keys.Create(t.Context(), apikeys.Spec{Account: b.account.ID, Name: "late", Scopes: []string{"streams:read"}, Creator: []string{"*"}})
	if err != nil {
		t.Fatal(err)
	}
	gone, err := keys.Create(t.Context(), apikeys.Spec{Account: b.account.ID, Name: "gone", Scopes: []string{"streams:read"}, Creator: []string{"*"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := keys.Revoke(t.Context(), b.account.ID, gone.ID, []string{"*"}); err != nil {
		t.Fatal(err)
	}
	out("changed")
	if _, err := keys.Find(t.Context(), made.Text); apierror.Code(err) != decision.InvalidKey {
		t.Errorf("a key of a suspended account: %v", err)
	}
	if a, err = b.store.Resume(t.Context(), b.account.ID); err != nil || a.SuspendedAt != nil || a.SuspendedReason != "" || a.Plan != "pro" {
		t.Fatalf("%+v %v", a, err)
	}
	plans, err := LoadPlans(t.Context(), b.db)
	if err != nil {
		t.Fatal(err)
	}
	late := keytable.TagOfKey(apikey.Hash(made.Text))
	for name, tag := range map[string]keytable.Tag{"of before": tag, "made meanwhile": late} {
		account, list, key := b.records(t, tag)
		if r, _ := atEdge(t, b.db, tag); !account || !list || !key || r.Plan != plans["pro"] || r.Flags != keytable.FlagLimits|keytable.FlagAllowlist {
			t.Errorf("the key %s: account %v, allowlist %v, %+v", name, account, list, r)
		}
	}
	if _, _, key := b.records(t, keytable.TagOfKey(apikey.Hash(gone.Text))); key {
		t.Error("a key that was revoked meanwhile is back")
	}
	if h, err := keys.Find(t.Context(), made.Text); err != nil || h.ID != made.ID {
		t.Error(h, err)
	}
}

// What is refused changes nothing, and each change stands in the audit log once.
func TestWhoMayBeSuspended(t *testing.T) {
	t.Parallel()
	b := setup(t)
	operator, err := b.store.CreateOperator(t.Context(), "O", "free")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.db.Exec(t.Context(), `INSERT INTO processes (name, kind, build, knows) VALUES ('h/old', 'worker', 'v1', 74)`); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		account, reason string
		code            decision.Code
		says            string
	}{
		{b.account.ID, " ", decision.InvalidRequest, "reason"},
		{b.account.ID, "a\nb", decision.InvalidRequest, "reason"},
		{b.account.ID, strings.Repeat("ö", MaxReason+1), decision.InvalidRequest, "reason"},
		{operator.ID, "x", decision.Conflict, "operator's"},
		{b.account.ID, "x", decision.Conflict, "earlier release"},
		{"acct_0000000000000", "x", decision.NotFound, ""},
	} {
		_, err := b.store.Suspend(t.Context(), c.account, c.reason)
		e, ok := errors.AsType[*apierror.Error](err)
		if !ok || e.Code != c.code || !strings.Contains(e.Message, c.says) && (len(e.Details) != 1 || e.Details[0].Field != c.says) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if _, err := b.store.Resume(t.Context(), "acct_0000000000000"); apierror.Code(err) != decision.NotFound {
		t.Error(err)
	}
	if a, err := b.store.Resume(t.Context(), b.account.ID); err != nil || a.ID != b.account.ID {
		t.Error(a, err)
	}
	// One that has not said for a minute that it is there has gone.
	if _, err := b.db.Exec(t.Context(), `UPDATE processes SET last_seen = now() - interval '61 seconds'`); err != nil {
		t.Fatal(err)
	}
	if _, err := b.store.Suspend(t.Context(), b.account.ID, strings.Repeat("ö", MaxReason)); err != nil {
		t.Fatal(err)
	}
	if _, err := b.store.Resume(t.Context(), b.account.ID); err != nil {
		t.Fatal(err)
	}
	list, _, err := paging.Rows(audit.Read(t.Context(), b.db, audit.Filter{Account: b.account.ID}, paging.Page{Limit: 10}))
	if err != nil || len(list) != 3 || list[0].Action != "account.resume" || list[1].Action != "account.suspend" {
		t.Errorf("%+v %v", list, err)
	}
}

// An account is resumed with what waited for it, or not at all.
func TestWhatWaitsGoesOnWithTheAccount(t *testing.T) {
	t.Parallel()
	b := setup(t)
	if _, err := b.store.Suspend(t.Context(), b.account.ID, "x"); err != nil {
		t.Fatal(err)
	}
	var released []string
	failing := errors.New("the queue is away")
	s := b.store
	s.Resumed = func(_ context.Context, _ pgx.Tx, account string) error {
		released = append(released, account)
		return failing
	}
	if _, err := s.Resume(t.Context(), b.account.ID); !errors.Is(err, failing) {
		t.Fatal(err)
	}
	if a, err := s.Get(t.Context(), b.account.ID); err != nil || a.SuspendedAt == nil {
		t.Fatalf("%+v %v", a, err)
	}
	failing = nil
	for range 2 { // the second finds nothing to do
		if _, err := s.Resume(t.Context(), b.account.ID); err != nil {
			t.Fatal(err)
		}
	}
	if len(released) != 2 || released[1] != b.account.ID {
		t.Error(released)
	}
}

// A release of before that came back has sent the records of a suspended account: the
// next start of this one takes them away.
func TestAStartTakesSuspendedAccountsAwayAgain(t *testing.T) {
	t.Parallel()
	b := setup(t)
	tag := b.newKey(t)
	number, _ := keytable.ParseID(keytable.AccountPrefix, b.account.ID)
	ours, _ := atEdge(t, b.db, keytable.TagOfAccount(number))
	key, _ := atEdge(t, b.db, tag)
	if _, err := b.store.Suspend(t.Context(), b.account.ID, "x"); err != nil {
		t.Fatal(err)
	}
	if err := postgres.InTx(t.Context(), b.db, func(tx pgx.Tx) error { return keyfeed.PutTx(t.Context(), tx, ours, key) }); err != nil {
		t.Fatal(err)
	}
	for _, want := range []int{1, 0} {
		if n, err := (apikeys.Store{DB: b.db}).EmitAccounts(t.Context()); err != nil || n != want {
			t.Fatal(n, err)
		}
	}
	if account, _, key := b.records(t, tag); account || key {
		t.Error(account, key)
	}
}
