package accounts

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"sluice.dev/sluice/controlplane/accounts/apikeys"
	"sluice.dev/sluice/filters/credentials/allowlist"
	"sluice.dev/sluice/filters/credentials/keytable"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
)

// edge is what edges know of the bundle's account.
func (b bundle) edge(t *testing.T) (account keytable.Record, list []byte) {
	t.Helper()
	n, _ := keytable.ParseID(keytable.AccountPrefix, b.account.ID)
	account, _ = atEdge(t, b.db, keytable.TagOfAccount(n))
	list, found, whole := keytable.Join(keytable.TagOfAllowlist(n), func(tag keytable.Tag) (keytable.Record, bool) {
		var raw []byte
		_ = b.db.QueryRow(t.Context(), `SELECT record FROM edge_records WHERE tag = $1`, tag[:]).Scan(&raw) // no row: no record
		return keytable.Decode(raw)
	})
	if found != whole {
		t.Fatal("edges know a part of the allowlist")
	}
	return account, list
}

func TestAllowlistReachesEdges(t *testing.T) {
	t.Parallel()
	b := setup(t)
	key := b.newKey(t)
	many := make([]string, allowlist.Max)
	for i := range many {
		many[i] = netip.AddrFrom4([4]byte{10, 0, byte(i), 0}).String() + "/24"
	}
	for _, c := range []struct {
		texts   []string
		in, out string
		listed  bool
	}{
		{[]string{"192.0.2.9", "2001:db8::/32", "192.0.2.9/32"}, "192.0.2.9:1", "192.0.2.8:1", true},
		{many, "10.0.63.5:1", "10.0.64.5:1", true},
		{[]string{"198.51.100.0/24"}, "198.51.100.7:1", "10.0.0.5:1", true},
		{nil, "", "", false},
	} {
		if _, err := b.store.SetAllowlist(t.Context(), b.account.ID, c.texts); err != nil {
			t.Fatal(err)
		}
		account, list := b.edge(t)
		record, _ := atEdge(t, b.db, key)
		if listed := account.Flags&keytable.FlagAllowlist != 0; listed != c.listed || record.Flags&keytable.FlagAllowlist != 0 != c.listed || (list != nil) != c.listed {
			t.Errorf("%v: account %b, key %b", c.texts, account.Flags, record.Flags)
		}
		if c.listed && (!allowlist.Decide(c.in, list).OK() || allowlist.Decide(c.out, list).OK()) {
			t.Errorf("%v: %s or %s", c.texts, c.in, c.out)
		}
		if got, err := b.store.Allowlist(t.Context(), b.account.ID); err != nil || len(got) > len(c.texts) || !slices.Equal(allowlist.Encode(got), list) {
			t.Errorf("%v is read as %v, %v", c.texts, got, err)
		}
	}
}

func TestAllowlistThatIsRefused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for fields, texts := range map[string][]string{
		"addresses[0] addresses[2]": {"192.0.2", "192.0.2.1", "example.com"},
		"addresses":                 make([]string, allowlist.Max+1),
	} {
		_, err := b.store.SetAllowlist(t.Context(), b.account.ID, texts)
		var at []string
		if e, ok := err.(*apierror.Error); ok { //nolint:errorlint // the store returns it as it is
			for _, d := range e.Details {
				at = append(at, d.Field)
			}
		}
		if strings.Join(at, " ") != fields {
			t.Errorf("%v, want %s", err, fields)
		}
	}
	if _, err := b.store.SetAllowlist(t.Context(), "acct_0000000000000", nil); apierror.Code(err) != decision.NotFound {
		t.Errorf("an account that is not there: %v", err)
	}
}

// Every account has a record at the edges, whenever it was made.
func TestAccountsAreKnownAtEdges(t *testing.T) {
	t.Parallel()
	b := setup(t)
	plans, err := LoadPlans(t.Context(), b.db)
	if err != nil {
		t.Fatal(err)
	}
	if r, _ := b.edge(t); r.Kind != keytable.KindAccount || r.Plan != plans["free"] {
		t.Fatalf("a new account: %+v", r)
	}
	if err := b.store.SetLimit(t.Context(), b.account.ID, Limit{"default", 5}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.store.Update(t.Context(), b.account.ID, Change{Plan: ptr("pro")}); err != nil {
		t.Fatal(err)
	}
	if r, _ := b.edge(t); r.Plan != plans["pro"] || r.Flags != keytable.FlagLimits {
		t.Fatalf("changed: %+v", r)
	}
	if _, err := b.db.Exec(t.Context(), `DELETE FROM edge_records`); err != nil { // as if made by an earlier release
		t.Fatal(err)
	}
	store := apikeys.Store{DB: b.db}
	if n, err := store.EmitAccounts(t.Context()); err != nil || n != 1 {
		t.Fatal(n, err)
	}
	if r, _ := b.edge(t); r.Plan != plans["pro"] {
		t.Fatalf("sent again: %+v", r)
	}
	if n, err := store.EmitAccounts(t.Context()); err != nil || n != 0 {
		t.Fatal(n, err)
	}
}
