package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"sluice.dev/sluice/e2e/harness"
)

// cli is the environment of a user's command on the stack.
func (s *stack) cli() map[string]string {
	return map[string]string{"SLUICE_ADMIN_URL": s.dev["SLUICE_ADMIN_URL"], "SLUICE_ADMIN_KEY": s.dev["SLUICE_ADMIN_KEY"]}
}

func intoText[T any](t testing.TB, text string) (v T) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return v
}

// unless returns an error unless the call worked and gave the status.
func unless(err error, r response, status int) error {
	if err == nil && r.StatusCode != status {
		err = fmt.Errorf("status %d, want %d: %s", r.StatusCode, status, r.body)
	}
	return err
}

// A key's life by command line: it works at the edge, and stops there.
func TestKeyCommands(t *testing.T) {
	t.Parallel()
	s := theStack(t)
	status, out, errs := sluice(t, s.cli(), "key", "create", "--name", "by hand", "--scope", "streams:read", "--output", "json")
	if status != 0 {
		t.Fatal(status, errs)
	}
	k := intoText[struct{ ID, Key string }](t, out)
	s.accepted(t, k.Key)
	_, out, _ = sluice(t, s.cli(), "key", "list")
	if !strings.Contains(out, k.ID) || strings.Contains(out, k.Key) {
		t.Fatalf("the list must show the id and not the key:\n%s", out)
	}
	if status, _, errs = sluice(t, s.cli(), "key", "revoke", k.ID); status != 0 {
		t.Fatal(status, errs)
	}
	s.refused(t, k.Key)
	if status, _, errs = sluice(t, s.cli(), "key", "revoke", "key_0000000000000"); status != 1 || !strings.HasPrefix(errs, "sluice: ") {
		t.Fatalf("%d %q", status, errs)
	}
}

// Webhooks reach a laptop: what happens is passed on to a local address with the
// signature of a subscription, and so is what was tried.
func TestListenCommand(t *testing.T) {
	t.Parallel()
	s := theStack(t)
	env := s.cli()
	env["SLUICE_GATEWAY_URL"], env["SLUICE_API_KEY"] = s.dev["SLUICE_GATEWAY_URL"], s.dev["SLUICE_API_KEY"]
	status, out, errs := sluice(t, env, "webhook", "create", "--url", "https://example.com/"+t.Name(), "--event", "stream.deleted,clip.created", "--secret", webhookSecret, "-q")
	if status != 0 {
		t.Fatal(errs)
	}
	hookID := strings.TrimSpace(out)
	url, got, _ := receiver(t)
	listener, err := harness.Start(harness.Command(env, "listen", "--forward-to", url+"/hooks", "--webhook", hookID))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(listener.Kill)
	if err := listener.Writes("ready: "); err != nil {
		t.Fatal(err)
	}
	if status, out, errs = sluice(t, env, "trigger", "clip.created", "-q"); status != 0 || !strings.HasPrefix(out, "evt_trigger_") {
		t.Fatal(status, out, errs)
	}
	if h := receive(t, got); h.header.Get("Webhook-Id") != strings.TrimSpace(out) || h.header.Get("Webhook-Signature") == "" {
		t.Error(h.header)
	}
	_, out, _ = sluice(t, env, "stream", "create", "--title", t.Name(), "-q")
	stream := strings.TrimSpace(out)
	if status, _, errs = sluice(t, env, "stream", "delete", stream); status != 0 {
		t.Fatal(errs)
	}
	for h := receive(t, got); !strings.Contains(string(h.body), stream); h = receive(t, got) { // others delete streams too
	}
	if err := listener.Stop(); err != nil {
		t.Error(err)
	}
	if status, _, errs = sluice(t, env, "webhook", "rm", hookID); status != 0 {
		t.Error(errs)
	}
	if status, _, errs = sluice(t, env, "webhook", "get", hookID); status != 1 || !strings.Contains(errs, hookID) || !strings.Contains(errs, "  request  ") || !strings.Contains(errs, "/docs/errors/not_found") {
		t.Errorf("%d %s", status, errs)
	}
	// Every command that only reads is understood by the stack.
	for _, args := range []string{"webhook list", "webhook events", "schedule list", "event list", "user list", "stream list", "invoice list", "usage report", "usage series --group-by route",
		"audit", "logs", "route list", "product list", "plan list", "class list", "plan get free", "account list", "version"} {
		for _, form := range []string{"text", "wide", "yaml", "json"} {
			if status, out, errs := sluice(t, env, append(strings.Fields(args), "-o", form)...); status != 0 || out == "" {
				t.Errorf("sluice %s -o %s: %d %s", args, form, status, errs)
			}
		}
	}
}

// limited makes an account with a limit of its own, and returns a key of it that
// the edge accepts.
func (s *stack) limited(t *testing.T, name string, perMinute int) (key string) {
	t.Helper()
	status, out, errs := sluice(t, s.cli(), "account", "create", "--name", name, "--plan", "local", "--output", "json")
	if status != 0 {
		t.Fatal(status, errs)
	}
	account := intoText[struct{ ID string }](t, out).ID
	if status, _, errs = sluice(t, s.cli(), "limit", "set", "--account", account, "--class", "default", "--per-minute", strconv.Itoa(perMinute)); status != 0 {
		t.Fatal(status, errs)
	}
	_, out, _ = sluice(t, s.cli(), "key", "create", "--account", account, "--name", "k", "--scope", "streams:read", "--output", "json")
	key = intoText[struct{ Key string }](t, out).Key
	s.accepted(t, key)
	return key
}

// An account's own limit fills, answers 429 and names the time to wait.
func TestFullWindow(t *testing.T) {
	t.Parallel()
	s := theStack(t)
	key := s.limited(t, "small", 20)
	last := int64(20)
	for {
		r := call(t, http.MethodGet, s.url("/v1/streams"), key, nil)
		wantHeaders(t, r)
		if r.StatusCode == http.StatusTooManyRequests {
			wantError(t, r, 429, "rate_limit_exceeded")
			if wait := number(t, r, "Retry-After"); wait < 1 || wait > 60 || last != 0 {
				t.Fatalf("Retry-After %d with %d remaining before", wait, last)
			}
			if said := into[envelope](t, r).Error.Details; len(said) != 1 || said[0].Field != "account" || said[0].Issue != "may make 20 requests in 60 seconds in the class default" ||
				!strings.HasPrefix(said[0].Expected, "another try in "+r.Header.Get("Retry-After")+" second") {
				t.Errorf("%+v", said)
			}
			return
		}
		wantStatus(t, r, 200)
		if left := number(t, r, "X-RateLimit-Remaining"); left >= last {
			t.Fatalf("%d remaining after %d", left, last)
		} else {
			last = left
		}
		if limit := number(t, r, "X-RateLimit-Limit"); limit != 20 {
			t.Fatalf("limit %d", limit)
		}
	}
}
