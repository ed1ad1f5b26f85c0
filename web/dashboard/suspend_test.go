package dashboard

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"sluice.dev/sluice/controlplane/accounts"
)

// An operator suspends an account, with a reason that its people read when they sign in, and
// lets it in again. Nobody else may.
func TestSuspendingAnAccount(t *testing.T) {
	t.Parallel()
	b := setup(t)
	owner := b.person(t, "", "o@example.com", accounts.Owner)
	u := b.somebody(t, b.accountOf(t, "o@example.com"), "o@example.com")
	at := Root + "/accounts/" + u.Account
	page := at + "/suspend"
	for _, path := range []string{page, at + "/resume"} {
		if got := owner.send(t, Root+"/keys", path, "confirm", "Acme", "reason", "x"); got.Code != 403 {
			t.Errorf("an owner, %s: %d", path, got.Code)
		}
	}
	v := b.operator(t)
	if got := v.get(at).body; !strings.Contains(got, page) || strings.Contains(got, "Resume") {
		t.Error(got)
	}
	for fields, says := range map[string]string{"Acme": "reason", "acme": "is not the name that is asked for"} {
		if got := v.send(t, page, page, "confirm", fields, "reason", ""); got.Code != 200 || !strings.Contains(got.body, says) || strings.Contains(v.get(at).body, ">suspended<") {
			t.Errorf("%s: %d %s", fields, got.Code, got.body)
		}
	}
	const reason = "Write to <support@example.com>."
	if got := v.send(t, page, page, "confirm", "Acme", "reason", reason); got.Code != 303 || got.Header().Get("Location") != at+"?done=suspended" {
		t.Fatal(got.Code, got.Header(), got.body)
	}
	for _, path := range []string{at, Root + "/accounts"} {
		if got := v.get(path).body; !strings.Contains(got, ">suspended<") {
			t.Error(got)
		}
	}
	if e := b.audited(t, u.Account); e.Action != "account.suspend" {
		t.Errorf("%+v", e)
	}
	if got := owner.get(Root); got.Code != 303 || !strings.HasPrefix(got.Header().Get("Location"), Root+"/sign-in") {
		t.Errorf("a session of before: %d", got.Code)
	}
	late := b.visitor()
	form := url.Values{"token": {late.get(Root + "/sign-in").token(t)}, "email": {"o@example.com"}, "password": {"correct horse battery"}}
	if got := late.post(Root+"/sign-in", form); got.Code != http.StatusUnauthorized || !strings.Contains(got.body, "Your account is suspended: Write to &lt;support@example.com&gt;.") {
		t.Error(got.Code, got.body)
	}
	if got := v.send(t, at, at+"/resume"); got.Code != 303 || strings.Contains(v.get(at).body, ">suspended<") {
		t.Error(got.Code, got.body)
	}
	if got := owner.get(Root); got.Code != 200 {
		t.Errorf("the session of before: %d", got.Code)
	}
	own := Root + "/accounts/" + b.seeded.Account
	if got := v.get(own).body; strings.Contains(got, "/suspend") {
		t.Error("the operator's own account can be suspended")
	}
	if got := v.send(t, own+"/suspend", own+"/suspend", "confirm", b.nameOf(t, b.seeded.Account), "reason", "x"); got.Code != 200 || !strings.Contains(got.body, "nobody could resume it") {
		t.Error(got.Code, got.body)
	}
}

// accountOf is the account that somebody who signs in with an address belongs to.
func (b *bundle) accountOf(t *testing.T, email string) string {
	t.Helper()
	u, err := accounts.Store{DB: b.db}.UserByEmail(t.Context(), email)
	if err != nil {
		t.Fatal(err)
	}
	return u.Account
}

// nameOf is the name of an account.
func (b *bundle) nameOf(t *testing.T, account string) string {
	t.Helper()
	a, err := accounts.Store{DB: b.db}.Get(t.Context(), account)
	if err != nil {
		t.Fatal(err)
	}
	return a.Name
}
