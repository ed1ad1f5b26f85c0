package e2e

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/e2e/harness"
)

// environments are those of the processes of a stack, by command.
func (s *stack) environments(t *testing.T) map[string]map[string]string {
	t.Helper()
	all := map[string]map[string]string{}
	for _, p := range harness.Children(s.PID()) {
		if len(p.Args) > 1 && p.Args[0] == need(t, "SLUICE_BIN") { // else postgres
			all[p.Args[1]] = harness.Environment(p.PID)
		}
	}
	return all
}

// Each process of a stack is told what it needs, and nothing that is another's.
func TestEachProcessHoldsItsOwn(t *testing.T) {
	t.Parallel()
	s := lentStack(t)
	secrets := readEnv(t, filepath.Join(s.dir, "secrets.env"))
	processes := s.environments(t)
	for process, want := range map[string]string{
		"controlplane": "SLUICE_DATABASE_URL SLUICE_FEED_TOKEN SLUICE_IDENTITY_SECRETS SLUICE_SECRETS_KEY",
		"worker":       "SLUICE_DATABASE_URL SLUICE_IDENTITY_SECRETS SLUICE_SECRETS_KEY",
		"runtime":      "OPERATORS_OWN SLUICE_DATABASE_URL SLUICE_IDENTITY_SECRETS SLUICE_MODEL_UPSTREAM_KEY",
		"media":        "SLUICE_DATABASE_URL SLUICE_IDENTITY_SECRETS SLUICE_SECRETS_KEY",
		"edge":         "SLUICE_FEED_TOKEN",
	} {
		var got []string
		for _, name := range []string{"OPERATORS_OWN", "SLUICE_ADMIN_KEY", "SLUICE_DATABASE_URL", "SLUICE_FEED_TOKEN", "SLUICE_IDENTITY_SECRETS", "SLUICE_MODEL_UPSTREAM_KEY", "SLUICE_SECRETS_KEY"} {
			if processes[process][name] != "" {
				got = append(got, name)
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s is told %v, want %s", process, got, want)
		}
		for name, value := range processes[process] {
			whole := name == "SLUICE_IDENTITY_SECRETS" && process == "controlplane" || name == "SLUICE_SECRETS_KEY" && (process == "controlplane" || process == "worker")
			if (value == secrets["SLUICE_IDENTITY_SECRETS"] || value == secrets["SLUICE_SECRETS_KEY"]) && !whole {
				t.Errorf("%s holds the platform's %s", process, name)
			}
			if value == s.env["SLUICE_DATABASE_URL"] {
				t.Errorf("%s signs in as the owner of the database", process)
			}
		}
	}
	// What is in a process's hands opens no table of another's.
	for process, table := range map[string]string{"runtime": "api_keys", "media": "signing_keys", "worker": "users", "controlplane": "media_chunks"} {
		conn, err := pgx.Connect(t.Context(), processes[process]["SLUICE_DATABASE_URL"])
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Exec(t.Context(), "SELECT 1 FROM "+table); err == nil || !strings.Contains(err.Error(), "42501") {
			t.Errorf("%s reads %s: %v", process, table, err)
		}
		conn.Close(t.Context())
	}
	// A product's secret makes nobody at another product, and the platform's own form
	// cannot be made with it either.
	media := strings.TrimPrefix(processes["media"]["SLUICE_IDENTITY_SECRETS"], "media:")
	account := s.dev["SLUICE_ACCOUNT_ID"]
	for name, c := range map[string]struct {
		addr, path, value string
		status            int
	}{
		"at its own product":        {"SLUICE_MEDIA_LISTEN", "/v1/streams", signedFor(t, media, "media", account), http.StatusOK},
		"at the public API":         {"SLUICE_API_LISTEN", "/v1/webhooks", signedFor(t, media, "media", account), http.StatusUnauthorized},
		"as the public API":         {"SLUICE_API_LISTEN", "/v1/webhooks", signedFor(t, media, "api", account), http.StatusUnauthorized},
		"at the runtime":            {"SLUICE_RUNTIME_LISTEN", "/v1/models", signedFor(t, media, "runtime", account), http.StatusUnauthorized},
		"at its own, for nobody":    {"SLUICE_MEDIA_LISTEN", "/v1/streams", signedFor(t, media, "", account), http.StatusUnauthorized},
		"at its own, for another":   {"SLUICE_MEDIA_LISTEN", "/v1/streams", signedFor(t, media, "runtime", account), http.StatusUnauthorized},
		"at the public API, of all": {"SLUICE_API_LISTEN", "/v1/webhooks", signedFor(t, media, "", account), http.StatusUnauthorized},
	} {
		a := call(t, http.MethodGet, "http://"+s.env[c.addr]+c.path, "", nil, identityHeader, c.value)
		if a.StatusCode != c.status {
			t.Errorf("%s: %d, want %d", name, a.StatusCode, c.status)
		}
	}
}

// signedFor is what an edge would say to a product, or to nobody by name, with a
// secret in hexadecimal digits.
func signedFor(t *testing.T, secret, product, account string) string {
	t.Helper()
	text := fmt.Sprintf("a=%s;k=key_x;p=local;s=*;e=%d", account, time.Now().Unix()+60)
	if product == "" {
		return macOf(t, secret, "v1;"+text)
	}
	return macOf(t, secret, "v2;u="+product+";"+text)
}

// macOf signs a text by the documented way: docs/config.md.
func macOf(t *testing.T, secret, text string) string {
	t.Helper()
	key, err := hex.DecodeString(secret)
	if err != nil {
		t.Fatal(err)
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(text))
	return text + ";m=" + hex.EncodeToString(mac.Sum(nil))
}

// Neither side of what edges read is open to a network unless somebody says so.
func TestWhatEdgesReadIsNotOpenByAccident(t *testing.T) {
	t.Parallel()
	certs := t.TempDir()
	(&stack{}).wantCommand(t, nil, 0, "", "certs", certs)
	for name, c := range map[string]struct {
		set  map[string]string
		want []string // what it is told to set
	}{
		"nothing":            {map[string]string{}, []string{"SLUICE_XDS_TLS_DIR", "SLUICE_XDS_INSECURE=plain", "SLUICE_FEED_TOKEN", "SLUICE_XDS_INSECURE=open"}},
		"a token alone":      {map[string]string{"SLUICE_FEED_TOKEN": "x"}, []string{"SLUICE_XDS_TLS_DIR", "SLUICE_XDS_INSECURE=plain"}},
		"certificates alone": {map[string]string{"SLUICE_XDS_TLS_DIR": certs}, []string{"SLUICE_FEED_TOKEN", "SLUICE_XDS_INSECURE=open"}},
		"plain is meant":     {map[string]string{"SLUICE_XDS_INSECURE": "plain"}, []string{"SLUICE_FEED_TOKEN"}},
		"a wrong word":       {map[string]string{"SLUICE_XDS_INSECURE": "1"}, []string{"neither plain nor open"}},
		// What comes next is missing: it was let through.
		"both are meant": {map[string]string{"SLUICE_XDS_INSECURE": "plain,open"}, nil},
		"both are there": {map[string]string{"SLUICE_XDS_TLS_DIR": certs, "SLUICE_FEED_TOKEN": "x"}, nil},
	} {
		for process, next := range map[string]string{"controlplane": "SLUICE_DATABASE_URL", "edge": "SLUICE_WASM_DIR"} {
			for addr, open := range map[string]bool{"0.0.0.0:18000": true, ":18000": true, "127.0.0.1:18000,controlplane.example:18000": true, "127.0.0.1:18000": false, "localhost:18000": false, "[::1]:18000": false} {
				if process == "controlplane" && strings.Contains(addr, ",") {
					continue
				}
				env := map[string]string{"SLUICE_XDS_ADDR": addr, "SLUICE_WASM_DIR": "/nowhere", "SLUICE_ENVOY": need(t, "SLUICE_ENVOY"), "SLUICE_STATE_DIR": t.TempDir()}
				for k, v := range c.set {
					env[k] = v
				}
				status, _, errs := sluice(t, env, process)
				want := c.want
				if !open && name != "a wrong word" || want == nil {
					want = []string{next}
				}
				if status != 1 || slices.ContainsFunc(want, func(w string) bool { return !strings.Contains(errs, w) }) {
					t.Errorf("%s, %s on %s: status %d, %q; want %q", name, process, addr, status, errs, want)
				}
			}
		}
	}
}
