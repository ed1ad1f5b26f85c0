package e2e

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sluice.dev/sluice/e2e/harness"
)

// ownService is a service of somebody's own: it says what it was asked, and whether
// it got the caller's credential.
func ownService(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s %s at %s, credential %q, for %v", r.Method, r.URL.Path, r.Host, r.Header.Get("Authorization"), strings.HasPrefix(r.Header.Get("X-Sluice-Identity"), "v2;u=app;"))
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// gatewayAlone starts `sluice up --profile gateway` with more arguments for one test,
// and stops it at the end.
func gatewayAlone(t *testing.T, args ...string) *stack {
	t.Helper()
	s := startGateway(t, args...)
	t.Cleanup(func() {
		if err := s.stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func startGateway(t *testing.T, args ...string) *stack {
	t.Helper()
	dir := tempDir(t)
	env := settings(t, dir)
	p := run(t, env, append([]string{"up", "--profile", "gateway"}, args...)...)
	if err := p.Writes("ready in "); err != nil {
		t.Fatal(err)
	}
	s := &stack{p, dir, env, readEnv(t, filepath.Join(dir, "dev.env"))}
	for name, value := range s.dev {
		if isSecret(name) {
			keepSecret(name, value)
		}
	}
	return s
}

// ready is the line with which the stack says what it has.
func (s *stack) ready() string {
	_, text, _ := strings.Cut("\n"+s.Output(), "\nready in ")
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// version is the number of the newest configuration.
func (s *stack) version(t *testing.T) int64 {
	t.Helper()
	return into[struct{ Version int64 }](t, call(t, http.MethodGet, s.dev["SLUICE_ADMIN_URL"]+"/admin/v1/edges", s.dev["SLUICE_ADMIN_KEY"], nil)).Version
}

// exits runs a command that must end with status, and returns what it wrote.
func (s *stack) exits(t *testing.T, status int, args ...string) string {
	t.Helper()
	got, out, errs := sluice(t, s.env, args...)
	if got != status {
		t.Fatalf("sluice %s: status %d, want %d\n%s%s", strings.Join(args, " "), got, status, out, errs)
	}
	return out + errs
}

var newKey = regexp.MustCompile(`(?m)^key +(slk_\S+)\nid +(\S+)$`)

// The ten minutes: from nothing to a service of one's own whose callers are checked,
// limited and turned away.
func TestOwnServiceBehindTheGateway(t *testing.T) {
	t.Parallel()
	s := gatewayAlone(t)
	file := filepath.Join(tempDir(t), "sluice.yaml")
	t.Cleanup(func() { _ = os.RemoveAll(filepath.Dir(file)) })
	s.exits(t, 0, "init", "--upstream", ownService(t), "-o", file)
	if text, err := os.ReadFile(file); err != nil || strings.Count(string(text), "\n") > 12 {
		t.Errorf("%v\n%s", err, text)
	}
	s.exits(t, 1, "init", "--upstream", "http://127.0.0.1:1", "-o", file)
	s.exits(t, 0, "validate", "-f", file)
	s.exits(t, 2, "apply", "-f", file, "--dry-run")
	s.exits(t, 0, "apply", "-f", file, "--wait", "--timeout", "2m")
	if out := s.exits(t, 0, "apply", "-f", file, "--dry-run"); !strings.Contains(out, "nothing to change") {
		t.Error(out)
	}

	wantError(t, call(t, http.MethodGet, s.url("/orders"), "", nil), 401, "authentication_required")
	m := newKey.FindStringSubmatch(s.exits(t, 0, "key", "create", "--name", "me", "--scope", "app:use"))
	if m == nil {
		t.Fatal("no key")
	}
	key := m[1]
	eventually(t, "the key works", func() error {
		if r := call(t, http.MethodDelete, s.url("/orders/7"), key, nil); r.StatusCode != 200 || !strings.HasPrefix(r.body, "DELETE /orders/7 at 127.0.0.1:") ||
			!strings.HasSuffix(r.body, `credential "", for true`) {
			return fmt.Errorf("%d %s", r.StatusCode, r.body)
		}
		return nil
	})
	limited := false
	for range 61 { // of one minute's 60
		r := call(t, http.MethodGet, s.url("/orders"), key, nil)
		if r.StatusCode == 429 {
			wantError(t, r, 429, "rate_limit_exceeded")
			limited = r.Header.Get("Retry-After") != ""
			break
		}
		wantStatus(t, r, 200)
	}
	if !limited {
		t.Error("61 requests in a minute of 60 were let through")
	}
	s.exits(t, 0, "key", "revoke", m[2])
	eventually(t, "the key is refused", func() error {
		if r := call(t, http.MethodGet, s.url("/orders"), key, nil); r.StatusCode != 401 {
			return fmt.Errorf("%d %s", r.StatusCode, r.body)
		}
		return nil
	})
	if r := call(t, http.MethodGet, s.dev["SLUICE_ADMIN_URL"]+"/dashboard/sign-in", "", nil); r.StatusCode != 200 {
		t.Errorf("the dashboard: %d", r.StatusCode)
	}
	s.exits(t, 0, "status")
}

// What a deployment does not have, it neither listens for nor speaks of.
func TestGatewayProfileIsSilentAboutTheRest(t *testing.T) {
	t.Parallel()
	s := lentGateway(t)
	ready := s.ready()
	if !strings.Contains(ready, s.env["SLUICE_GATEWAY_ADDR"]) || !strings.Contains(ready, s.env["SLUICE_ADMIN_ADDR"]) || strings.Contains(ready, "runtime") || strings.Contains(ready, "media") || s.dev["SLUICE_RUNTIME_URL"] != "" {
		t.Errorf("%s", ready)
	}
	for _, name := range []string{"SLUICE_RUNTIME_ADDR", "SLUICE_RUNTIME_LISTEN", "SLUICE_MEDIA_LISTEN"} {
		if c, err := net.Dial("tcp", s.env[name]); err == nil {
			c.Close()
			t.Errorf("%s: somebody listens", name)
		}
	}
	var kinds []string
	for _, p := range harness.Children(s.PID()) {
		if len(p.Args) > 1 && p.Args[0] == need(t, "SLUICE_BIN") {
			kinds = append(kinds, p.Args[1])
		}
	}
	if slices.Sort(kinds); !slices.Equal(kinds, []string{"controlplane", "edge", "worker"}) {
		t.Errorf("processes: %q", kinds)
	}
	other := regexp.MustCompile(`(?i)live media|recording|vod|clip|chat|x402|x-payment|\bstreams?\b|schedule|/v1/events`)
	said := func(body string) []string { // of how webhooks are retried, they may speak
		return other.FindAllString(strings.NewReplacer("RetrySchedule", "", "retry_schedule", "").Replace(body), -1)
	}
	of := map[string]string{"GET /v1/webhooks/event-types": "SLUICE_API_KEY"}
	for _, path := range []string{"/openapi.json", "/.well-known/platform-products.json", "/.well-known/agent-card.json", "/.well-known/mcp.json", "/v1/webhooks/event-types"} {
		r := call(t, http.MethodGet, s.url(path), s.dev[of["GET "+path]], nil)
		wantStatus(t, r, 200)
		if path != "/v1/webhooks/event-types" {
			if found := said(r.body); found != nil {
				t.Errorf("%s speaks of %q", path, found)
			}
			continue
		}
		var names []string
		for _, e := range into[struct{ Data []struct{ Name string } }](t, r).Data {
			names = append(names, e.Name)
		}
		if !slices.Equal(names, []string{"billing.usage_warning", "webhook.delivery_failed", "webhook.disabled", "test.webhook"}) {
			t.Errorf("events: %q", names)
		}
	}
	tools := call(t, http.MethodPost, s.url("/mcp?toolsets=all"), "", map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, "Accept", "application/json, text/event-stream")
	wantStatus(t, tools, 200)
	if !strings.Contains(tools.body, "Webhook") || said(tools.body) != nil {
		t.Errorf("tools: %q", said(tools.body))
	}
	docs := call(t, http.MethodGet, s.url("/docs"), "", nil)
	for page, want := range map[string]bool{"config": true, "webhooks": true, "media": false, "runtime": false, "x402": false, "schedules": false, "contract": false, "chaos": false, "clients": false} {
		if got := strings.Contains(docs.body, `href="/docs/`+page+`"`); got != want {
			t.Errorf("the menu has %s: %v", page, got)
		}
	}
	reference := call(t, http.MethodGet, s.url("/docs/reference"), "", nil)
	if !strings.Contains(reference.body, "<code>GET /v1/webhooks</code>") || strings.Contains(reference.body, "/v1/streams") {
		t.Errorf("the reference: %d %s", reference.StatusCode, reference.body)
	}
	for _, path := range []string{"/docs/media", "/docs/events/stream.started", "/.well-known/x402"} {
		wantStatus(t, call(t, http.MethodGet, s.url(path), "", nil), 404)
	}
	for _, path := range []string{"/v1/streams", "/v1/events/schedules", "/v1/chat/completions"} {
		wantError(t, call(t, http.MethodGet, s.url(path), s.dev["SLUICE_API_KEY"], nil), 403, "ROUTE_NOT_MAPPED")
	}
	hook := map[string]any{"url": "https://example.com/hook", "secret": strings.Repeat("s", 40), "events": []string{"stream.started"}}
	wantError(t, call(t, http.MethodPost, s.url("/v1/webhooks"), s.dev["SLUICE_API_KEY"], hook), 400, "invalid_request")
}

// A document that is given to `up` counts from the first request on, and the
// account of the stack may call its routes.
func TestUpWithADocument(t *testing.T) {
	t.Parallel()
	dir := tempDir(t)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	file, more := filepath.Join(dir, "sluice.yaml"), filepath.Join(dir, "local.yaml")
	if status, _, errs := sluice(t, nil, "init", "--upstream", ownService(t), "-o", file); status != 0 {
		t.Fatal(errs)
	}
	if err := os.WriteFile(more, []byte("routes:\n- {name: app, path: /app/*, rewrite: {prefix: /}}\nremove: [\"routes.sluice.docs*\"]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := gatewayAlone(t, "-f", file, "-f", more)
	r := call(t, http.MethodGet, s.url("/app/orders"), s.dev["SLUICE_API_KEY"], nil)
	if wantStatus(t, r, 200); !strings.HasPrefix(r.body, "GET /orders at") {
		t.Errorf("%s", r.body)
	}
	wantStatus(t, call(t, http.MethodGet, s.url("/docs"), "", nil), 404)
	wantStatus(t, call(t, http.MethodGet, s.url("/v1/health"), "", nil), 200)
	if out := s.exits(t, 1, "apply", "-f", more); !strings.Contains(out, "local.yaml:2: routes[0].product is missing") {
		t.Error(out)
	}
	bare := filepath.Join(dir, "bare.yaml")
	if err := os.WriteFile(bare, []byte("routes: [{name: a, path: /a, respond: {status: 200}}]\nplans: [{name: free}, {name: local}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out := s.exits(t, 1, "apply", "-f", bare); !strings.Contains(out, "include: [builtin]") {
		t.Error(out)
	}
	shown := filepath.Join(dir, "shown.yaml")
	if err := os.WriteFile(shown, []byte(s.exits(t, 0, "config", "show", "-o", "yaml")), 0o600); err != nil {
		t.Fatal(err)
	}
	s.exits(t, 0, "apply", "-f", shown, "--dry-run") // what is shown is what is in force
}

// The whole platform has all of its products, and keeps them below a document of
// somebody's own; a rollback brings back what was.
func TestPlatformProfileKeepsItsProducts(t *testing.T) {
	t.Parallel()
	s := lentStack(t)
	ready, first := s.ready(), s.version(t)
	if !strings.Contains(ready, "runtime http://"+s.env["SLUICE_RUNTIME_ADDR"]) || s.dev["SLUICE_RUNTIME_URL"] != "http://"+s.env["SLUICE_RUNTIME_ADDR"] {
		t.Errorf("%s", ready)
	}
	file := filepath.Join(s.dir, "sluice.yaml")
	s.exits(t, 0, "init", "--upstream", ownService(t), "-o", file)
	s.exits(t, 0, "apply", "-f", file, "--wait", "--timeout", "2m")
	m := newKey.FindStringSubmatch(s.exits(t, 0, "key", "create", "--name", "me", "--scope", "app:use"))
	own := func(status int) {
		t.Helper()
		eventually(t, "a route of one's own", func() error {
			if r := call(t, http.MethodGet, s.url("/orders"), m[1], nil); r.StatusCode != status {
				return fmt.Errorf("%d %s", r.StatusCode, r.body)
			}
			return nil
		})
	}
	products := func() {
		t.Helper()
		for _, url := range []string{s.url("/v1/streams"), s.url("/v1/events/schedules"), s.dev["SLUICE_RUNTIME_URL"] + "/v1/models"} {
			wantStatus(t, call(t, http.MethodGet, url, s.dev["SLUICE_API_KEY"], nil), 200)
		}
		wantStatus(t, call(t, http.MethodGet, s.url("/.well-known/x402"), "", nil), 200)
		wantStatus(t, call(t, http.MethodGet, s.url("/docs/media"), "", nil), 200)
	}
	own(200)
	products()
	s.exits(t, 0, "config", "rollback", fmt.Sprint(first))
	own(404)
	products()
}
