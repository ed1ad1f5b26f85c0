package oauth

import (
	"testing"

	"sluice.dev/sluice/controlplane/accounts"
	"sluice.dev/sluice/controlplane/accounts/oauth/rules"
)

// What people of a suspended account have granted gives no tokens, and is not used up by
// asking: it goes on with the account.
func TestGrantsOfASuspendedAccount(t *testing.T) {
	t.Parallel()
	b := setup(t)
	had, code := b.tokens(t), b.grant(t, b.secret, "")
	store := accounts.Store{DB: b.db}
	if _, err := store.Suspend(t.Context(), b.account.ID, "x"); err != nil {
		t.Fatal(err)
	}
	_, err := b.service.Refresh(t.Context(), b.secret.App, had.Refresh, "")
	wantCode(t, err, rules.InvalidGrant)
	_, err = b.service.Exchange(t.Context(), b.secret.App, code, callback, "")
	wantCode(t, err, rules.InvalidGrant)
	if b.active(t, b.secret, had.Access) || b.active(t, b.secret, had.Refresh) {
		t.Error("tokens are active")
	}
	if _, err := store.Resume(t.Context(), b.account.ID); err != nil {
		t.Fatal(err)
	}
	if !b.active(t, b.secret, had.Access) || !b.active(t, b.secret, had.Refresh) {
		t.Error("tokens are not active again")
	}
	if _, err := b.service.Refresh(t.Context(), b.secret.App, had.Refresh, ""); err != nil {
		t.Error(err)
	}
	if _, err := b.service.Exchange(t.Context(), b.secret.App, code, callback, ""); err != nil {
		t.Error(err)
	}
}
