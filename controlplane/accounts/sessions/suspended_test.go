package sessions

import (
	"errors"
	"testing"

	"sluice.dev/sluice/controlplane/accounts"
	"sluice.dev/sluice/filters/decision"
	"sluice.dev/sluice/platform/apierror"
)

// Sessions of a suspended account are refused and come back with it. Why is told to who
// knows the password, and to nobody else.
func TestPeopleOfASuspendedAccount(t *testing.T) {
	t.Parallel()
	b := setup(t)
	before := b.signIn(t)
	store := accounts.Store{DB: b.db}
	if _, err := store.Suspend(t.Context(), b.user.Account, "Write to support@example.com."); err != nil {
		t.Fatal(err)
	}
	if _, err := b.service.Verify(t.Context(), before.Token); apierror.Code(err) != decision.InvalidToken {
		t.Errorf("a session of before: %v", err)
	}
	for with, says := range map[string]string{
		password: "Your account is suspended: Write to support@example.com.",
		"wrong":  "The e-mail address or the password is wrong.",
	} {
		_, err := b.service.SignIn(t.Context(), "ann@example.com", with, "192.0.2.1")
		if e, ok := errors.AsType[*apierror.Error](err); !ok || e.Code != decision.AuthRequired || e.Message != says {
			t.Errorf("with %s: %v", with, err)
		}
	}
	if _, err := b.service.Create(t.Context(), b.user.ID); apierror.Code(err) != decision.AuthRequired {
		t.Errorf("without a password: %v", err)
	}
	if _, err := store.Resume(t.Context(), b.user.Account); err != nil {
		t.Fatal(err)
	}
	if c, err := b.service.Verify(t.Context(), before.Token); err != nil || c.ID != before.ID {
		t.Error(c, err)
	}
	b.signIn(t)
}
