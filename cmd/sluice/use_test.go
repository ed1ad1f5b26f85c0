package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/app"
)

const adminKey = "slk_admin"

// adminAPI answers with canned bodies and keeps what it was asked.
type adminAPI struct {
	*httptest.Server
	asked []string // method, path and body
}

func newAdminAPI(t *testing.T, status int, answer string) *adminAPI {
	t.Helper()
	a := &adminAPI{}
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		a.asked = append(a.asked, strings.TrimSpace(r.Method+" "+r.URL.RequestURI()+" "+string(body)))
		if r.Header.Get("Authorization") != "Bearer "+adminKey {
			t.Errorf("authorization %q", r.Header.Get("Authorization"))
		}
		if r.URL.Path == "/admin/v1/self" {
			_, _ = io.WriteString(w, `{"account":"acct_mine"}`)
			return
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(a.Close)
	return a
}

func (a *adminAPI) environment() app.Environment {
	set := map[string]string{"SLUICE_ADMIN_URL": a.URL + "/", "SLUICE_ADMIN_KEY": adminKey, "SLUICE_GATEWAY_URL": a.URL, "SLUICE_API_KEY": adminKey}
	return app.Environment{Lookup: func(name string) (string, bool) { v, ok := set[name]; return v, ok }}
}

// runUse runs one of the commands that call the admin API.
func runUse(t *testing.T, env app.Environment, args ...string) (string, error) {
	t.Helper()
	root := commands(env)
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetErr(io.Discard)
	root.SetArgs(args)
	err := root.ExecuteContext(t.Context())
	return out.String(), err
}

func TestCommandsAskTheAdminAPI(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"key create --name ci --scope a:b,c:d --scope e:f":           `POST /admin/v1/accounts/acct_mine/keys {"name":"ci","scopes":["a:b","c:d","e:f"]}`,
		"key create --name ci --scope * --account A --never-expires": `POST /admin/v1/accounts/A/keys {"expires_in_days":null,"name":"ci","scopes":["*"]}`,
		"key create --name ci --scope * --expires-in-days 7":         `POST /admin/v1/accounts/acct_mine/keys {"expires_in_days":7,"name":"ci","scopes":["*"]}`,
		"key create --name ci --scope * --expires-at 2026-12-31T00:00:00Z": `POST /admin/v1/accounts/acct_mine/keys ` +
			`{"expires_at":"2026-12-31T00:00:00Z","name":"ci","scopes":["*"]}`,
		"key list --limit 3 --offset 2":                   `GET /admin/v1/accounts/acct_mine/keys?limit=3&offset=2`,
		"key revoke key_1/x":                              `DELETE /admin/v1/keys/key_1%2Fx`,
		"key rotate key_1 --overlap 90s":                  `POST /admin/v1/keys/key_1/rotate {"overlap_seconds":90}`,
		"account create --name A --plan pro":              `POST /admin/v1/accounts {"name":"A","plan":"pro"}`,
		"account list":                                    `GET /admin/v1/accounts?limit=50&offset=0`,
		"session create --email a@b.example":              `POST /admin/v1/sessions {"email":"a@b.example"}`,
		"limit set --account A --class c --per-minute 60": `PUT /admin/v1/accounts/A/limits/c {"per_minute":60}`,
		"allowlist get --account A":                       `GET /admin/v1/accounts/A/allowlist`,
		"allowlist set 192.0.2.0/24 2001:db8::1":          `PUT /admin/v1/accounts/acct_mine/allowlist {"addresses":["192.0.2.0/24","2001:db8::1"]}`,
		"allowlist set":                                   `PUT /admin/v1/accounts/acct_mine/allowlist {"addresses":[]}`,
		"limit list":                                      `GET /admin/v1/accounts/acct_mine/limits`,
		"limits ls -a A":                                  `GET /admin/v1/accounts/A/limits`,
		"limit unset c --account A":                       `DELETE /admin/v1/accounts/A/limits/c`,
		"account get A":                                   `GET /admin/v1/accounts/A`,
		"account update A --plan pro":                     `PATCH /admin/v1/accounts/A {"plan":"pro"}`,
	} {
		api := newAdminAPI(t, http.StatusOK, `{"data":[]}`)
		if _, err := runUse(t, api.environment(), strings.Fields(args)...); err != nil {
			t.Errorf("%s: %v", args, err)
			continue
		}
		if got := api.asked[len(api.asked)-1]; got != want {
			t.Errorf("%s:\n got %s\nwant %s", args, got, want)
		}
	}
}

func TestOutput(t *testing.T) {
	t.Parallel()
	made := newAdminAPI(t, http.StatusCreated, `{"id":"key_1","key":"slk_x","name":"ci","scopes":["a:b","c:d"],"expires_at":null}`)
	text, err := runUse(t, made.environment(), "key", "create", "--name", "ci", "--scope", "a:b")
	want := "key                    slk_x\nid                     key_1\nname                   ci\nscopes                 a:b,c:d\nrate_limit_per_minute  -\nexpires_at             -\ncreated_at             -\n"
	if err != nil || text != want {
		t.Errorf("%v\n%s", err, text)
	}
	text, err = runUse(t, made.environment(), "key", "create", "--name", "ci", "--scope", "a:b", "--output", "json")
	var v map[string]any
	if err != nil || json.Unmarshal([]byte(text), &v) != nil || v["key"] != "slk_x" {
		t.Errorf("%v\n%s", err, text)
	}
	list := newAdminAPI(t, http.StatusOK, `{"data":[{"class":"events","per_minute":1000000}]}`)
	if text, err = runUse(t, list.environment(), "limit", "list"); err != nil || text != "CLASS   PER_MINUTE\nevents  1000000\n" {
		t.Errorf("%v\n%s", err, text)
	}
}

func TestRefusalsAreTold(t *testing.T) {
	t.Parallel()
	api := newAdminAPI(t, 400, `{"error":{"code":"invalid_request","message":"The request is not valid.","details":[
		{"field":"name","issue":"is required","expected":"text"},{"field":"plan","issue":"is not a known plan"}],
		"request_id":"req_1","documentation_url":"https://a.example/docs/errors/invalid_request"}}`)
	_, err := runUse(t, api.environment(), "account", "create", "--name", " ")
	if want := "The request is not valid (invalid_request); name is required: expected text; plan is not a known plan" +
		"\n  request  req_1\n  docs     https://a.example/docs/errors/invalid_request"; err == nil || err.Error() != want {
		t.Errorf("%v", err)
	}
	broken := newAdminAPI(t, 502, `<html>`)
	if _, err := runUse(t, broken.environment(), "account", "list"); err == nil || err.Error() != "the admin API answered 502" {
		t.Errorf("%v", err)
	}
	gone := newAdminAPI(t, 200, ``)
	gone.Close()
	if _, err := runUse(t, gone.environment(), "account", "list"); err == nil || !strings.Contains(err.Error(), gone.URL) || strings.Contains(err.Error(), adminKey) {
		t.Errorf("%v", err)
	}
}

func TestWrongCallsAreRefusedBeforeAnythingIsAsked(t *testing.T) {
	t.Parallel()
	for _, args := range []string{
		"key create --name ci", "key create --scope a:b", "key create --name ci --scope a:b --never-expires --expires-in-days 3",
		"key create --name ci --scope a:b --expires-at tomorrow", "key revoke", "key list --output xml", "limit set --class c", "session create",
	} {
		api := newAdminAPI(t, 200, `{}`)
		if _, err := runUse(t, api.environment(), strings.Fields(args)...); err == nil || len(api.asked) > 0 {
			t.Errorf("%s: %v, asked %v", args, err, api.asked)
		}
	}
}

func TestTheLocalStacksEnvironmentIsFound(t *testing.T) {
	t.Parallel()
	api, state := newAdminAPI(t, 200, `{"data":[]}`), t.TempDir()
	in := func(dir string) app.Environment {
		return app.Environment{Lookup: func(name string) (string, bool) { return dir, name == "SLUICE_STATE_DIR" }}
	}
	text := "SLUICE_ADMIN_URL=" + api.URL + "\nSLUICE_ADMIN_KEY=" + adminKey + "\n"
	if err := os.WriteFile(filepath.Join(state, "dev.env"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := runUse(t, in(state), "account", "list"); err != nil {
		t.Error(err)
	}
	if _, err := runUse(t, in(t.TempDir()), "account", "list"); err == nil || !strings.Contains(err.Error(), "sluice up") {
		t.Errorf("without a stack: %v", err)
	}
}
