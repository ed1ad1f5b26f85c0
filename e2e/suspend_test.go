package e2e

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"golang.org/x/oauth2"
)

// Whatever lets somebody of an account in is refused at the edge while the account is
// suspended, its schedules wait, and resumed it goes on where it was.
func TestASuspendedAccountIsOut(t *testing.T) {
	t.Parallel()
	s := theStack(t)
	account, key := s.keyedAccount(t, "pro")
	admin, email := s.dev["SLUICE_ADMIN_URL"]+"/admin/v1/accounts/"+account, strings.TrimPrefix(account, "acct_")+"@example.com"
	who := map[string]string{"email": email, "password": "correct horse battery"}
	wantStatus(t, call(t, http.MethodPost, admin+"/users", s.dev["SLUICE_ADMIN_KEY"], map[string]string{"email": email, "password": who["password"], "role": "owner"}), http.StatusCreated)
	r := call(t, http.MethodPost, s.url("/v1/auth/sessions"), "", who)
	wantStatus(t, r, http.StatusCreated)
	session := into[struct{ Token string }](t, r).Token
	people := func(status int) func() error { // a route for sessions, which the API checks, and one for tokens, which the edge does
		return func() error {
			own, err := try(http.MethodGet, s.url("/v1/auth/keys"), session, nil)
			streams, other := try(http.MethodGet, s.url("/v1/streams"), session, nil)
			return errors.Join(unless(err, own, status), unless(other, streams, status))
		}
	}
	eventually(t, "the session is accepted", people(http.StatusOK))
	app := s.newApp(t, "http://127.0.0.1:9/callback")
	granted := s.grantedTo(t, app, email, who["password"])
	eventually(t, "the application is accepted", func() error { return s.answers(granted, http.StatusOK) })
	due := s.createSchedule(t, key, t.Name(), "strm_00000000000000000000", "start", soon())

	status, out, errs := sluice(t, s.cli(), "account", "suspend", account, "--reason", "Write to support@example.com.")
	if status != 0 || !strings.Contains(out, "Write to support@example.com.") {
		t.Fatal(status, out, errs)
	}
	s.refused(t, key)
	eventually(t, "the session is refused", people(http.StatusUnauthorized))
	eventually(t, "the application is refused", func() error { return s.answers(granted, http.StatusUnauthorized) })
	wantError(t, call(t, http.MethodGet, s.url("/v1/streams"), key, nil), 401, "invalid_api_key")
	r = call(t, http.MethodPost, s.url("/v1/auth/sessions"), "", who)
	wantError(t, r, 401, "authentication_required")
	if !strings.Contains(r.body, "Your account is suspended: Write to support@example.com.") {
		t.Error(r.body)
	}
	eventually(t, "the schedule waits", func() error { return s.holds(t, due.ID) })

	if status, _, errs := sluice(t, s.cli(), "account", "resume", account); status != 0 {
		t.Fatal(status, errs)
	}
	s.accepted(t, key)
	eventually(t, "the session is accepted again", people(http.StatusOK))
	eventually(t, "the application is accepted again", func() error { return s.answers(granted, http.StatusOK) })
	if done := s.awaitExecution(t, key, due.ID); done.Status != "failed" { // there is no such stream
		t.Errorf("%+v", done)
	}
}

// grantedTo is an access token of an application that somebody let in.
func (s *stack) grantedTo(t *testing.T, app oauthApp, email, password string) string {
	t.Helper()
	library, verifier := s.library(t, app, "http://127.0.0.1:9/callback"), oauth2.GenerateVerifier()
	q := newPerson(t).allowsAs(s, library.AuthCodeURL("xyz", oauth2.S256ChallengeOption(verifier)), email, password)
	token, err := library.Exchange(t.Context(), q.Get("code"), oauth2.VerifierOption(verifier))
	if err != nil {
		t.Fatal(err)
	}
	keepSecret("token", token.AccessToken)
	return token.AccessToken
}

// holds fails unless a schedule was due and waits for its account.
func (s *stack) holds(t *testing.T, schedule string) error {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), s.dev["SLUICE_DATABASE_URL"])
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	var held bool
	err = conn.QueryRow(t.Context(), `SELECT held_fire_at IS NOT NULL FROM schedules WHERE id = $1`, schedule).Scan(&held)
	if err == nil && !held {
		err = errors.New("it is not held")
	}
	return err
}
