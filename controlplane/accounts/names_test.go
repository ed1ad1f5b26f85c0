package accounts

import (
	"slices"
	"testing"

	"sluice.dev/sluice/controlplane/accounts/apikeys"
)

// People are found by their addresses and keys by their names, with the sessions that they
// had, and never those of another account.
func TestNamesAndActors(t *testing.T) {
	t.Parallel()
	b := setup(t)
	other, err := b.store.Create(t.Context(), "B", "free")
	if err != nil {
		t.Fatal(err)
	}
	u, err := b.store.AddUser(t.Context(), b.account.ID, "Ann@example.com", Owner, "x")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.db.Exec(t.Context(), `INSERT INTO sessions (id, user_id, scopes, expires_at) VALUES ('sess_1', $1, '{}', now())`, u.ID); err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, account := range []string{b.account.ID, other.ID} {
		k, err := apikeys.Store{DB: b.db}.Create(t.Context(), apikeys.Spec{Account: account, Name: "CI of all", Scopes: []string{"streams:read"}, Creator: []string{"*"}})
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, k.ID)
	}
	names, err := b.store.Names(t.Context(), []string{u.ID, "sess_1", keys[0], b.account.ID, "gone", "system"})
	if err != nil || len(names) != 4 || names[u.ID] != "ann@example.com" || names["sess_1"] != "ann@example.com" || names[keys[0]] != "CI of all" || names[b.account.ID] != "A" {
		t.Errorf("%v %v", names, err)
	}
	for _, c := range []struct {
		account, name string
		want          []string
	}{
		{b.account.ID, "ANN@example.com", []string{"sess_1", u.ID}}, {"", "ann@example.com", []string{"sess_1", u.ID}}, {other.ID, "ann@example.com", []string{}},
		{b.account.ID, "CI of all", keys[:1]}, {"", "CI of all", []string{}}, {b.account.ID, "CI", []string{}},
	} {
		got, err := b.store.Actors(t.Context(), c.account, c.name)
		if slices.Sort(got); err != nil || got == nil || !slices.Equal(got, c.want) {
			t.Errorf("%+v: %v %v", c, got, err)
		}
	}
	for _, c := range []struct {
		whose, account, text   string
		accounts, keys, people int
	}{
		{"", b.account.ID, "a", 1, 1, 1}, {b.account.ID, b.account.ID, "a", 0, 1, 1}, {"", other.ID, keys[0], 0, 1, 0}, {other.ID, other.ID, keys[0], 0, 0, 0},
		{"", other.ID, b.account.ID, 1, 0, 0}, {b.account.ID, b.account.ID, "%", 0, 0, 0}, {"", b.account.ID, "ci of", 0, 1, 0},
	} {
		found, keys, people, err := b.store.Search(t.Context(), c.whose, c.account, c.text)
		if err != nil || len(found) != c.accounts || len(keys) != c.keys || len(people) != c.people {
			t.Errorf("%+v: %v %v %v %v", c, found, keys, people, err)
		}
	}
}
