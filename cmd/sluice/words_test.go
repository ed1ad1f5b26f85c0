package main

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"sluice.dev/sluice/internal/app"
)

// A typo in a script must stop it.
func TestUnknownWordsFail(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"key lst":                     `"lst" is no command of ` + "`sluice key`: did you mean list?",
		"limit erase":                 "there are list, set, unset",
		"config get":                  `"get" is no command of ` + "`sluice config`: there are diff, history, rollback, schema, show",
		"keyy list":                   `"keyy" is no command of ` + "`sluice`: did you mean key?",
		"help nope":                   `"nope" is no command`,
		"help key nope":               `"nope" is no command of ` + "`sluice key`",
		"key create --name a":         "--scope is missing\nusage: sluice key create [flags]\nexample:\n  sluice key create --name ci",
		"key create":                  "--name and --scope are missing",
		"key revoke":                  "ID is missing\nusage: sluice key revoke ID",
		"key revoke a b":              `"b" is one word too many`,
		"key list x":                  `"x" is one word too many: ` + "`sluice key list` takes none",
		"x402 fund 0x1":               "AMOUNT_ATOMIC is missing",
		"key list --nope":             "unknown flag: --nope\nusage: sluice key list [flags]",
		"key list -o xml":             `--output is "xml": expected text, json, yaml, wide`,
		"webhook list --account acct": "--account does not go with this",
	} {
		api := newAdminAPI(t, http.StatusOK, `{}`)
		_, err := runUse(t, api.environment(), strings.Fields(args)...)
		if err == nil || !strings.Contains(err.Error(), want) || len(api.asked) > 0 {
			t.Errorf("%s: %v, asked %v", args, err, api.asked)
		}
	}
}

func TestHelpIsShown(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"key": "rotate", "help key rotate": "--overlap", "help": "Processes:", "controlplane --help": "SLUICE_ADMIN_ADDR (127.0.0.1:9090)\n      where the admin API listens",
	} {
		if out, err := runUse(t, app.Environment{}, strings.Fields(args)...); err != nil || !strings.Contains(out, want) {
			t.Errorf("%s: %v\n%s", args, err, out)
		}
	}
}

func TestVersionIsShown(t *testing.T) {
	t.Parallel()
	for _, args := range []string{"version", "--version", "-v"} {
		if out, err := runUse(t, app.Environment{}, args); err != nil || !strings.HasPrefix(out, "sluice "+app.Version) {
			t.Errorf("%s: %v %s", args, err, out)
		}
	}
	out, err := runUse(t, app.Environment{}, "version", "-o", "json")
	var v struct{ Version, Go, Platform string }
	if err != nil || json.Unmarshal([]byte(out), &v) != nil || v.Version != app.Version || v.Go == "" || v.Platform == "" {
		t.Errorf("%v %s", err, out)
	}
}

// No two commands beside each other have one name, and each says what it is.
func TestNamesOfCommands(t *testing.T) {
	t.Parallel()
	var look func(c *cobra.Command)
	look = func(c *cobra.Command) {
		names := map[string]bool{}
		for _, below := range c.Commands() {
			for _, n := range append([]string{below.Name()}, below.Aliases...) {
				if names[n] {
					t.Errorf("%s: two are called %s", c.CommandPath(), n)
				}
				names[n] = true
			}
			if below.Short == "" {
				t.Errorf("%s says nothing of itself", below.CommandPath())
			}
			look(below)
		}
	}
	look(commands(app.Environment{}))
}

func TestContextsAreUsed(t *testing.T) {
	t.Parallel()
	api, other := newAdminAPI(t, http.StatusOK, `{"data":[]}`), newAdminAPI(t, http.StatusOK, `{"data":[]}`)
	name := filepath.Join(t.TempDir(), "contexts.yaml")
	env := func(set map[string]string) app.Environment {
		set["SLUICE_CONTEXTS"], set["SLUICE_STATE_DIR"] = name, t.TempDir()
		return app.Environment{Lookup: func(name string) (string, bool) { v, ok := set[name]; return v, ok }}
	}
	plain := env(map[string]string{})
	login := func(name, url, key string) error {
		root := commands(plain)
		root.SetIn(strings.NewReader(key + "\n"))
		_, err := executeApply(t, root, "login", name, "--admin-url", url)
		return err
	}
	if err := login("prod", api.URL, adminKey); err != nil || len(api.asked) != 1 {
		t.Fatal(err, api.asked)
	}
	if err := login("empty", api.URL, ""); err == nil {
		t.Error("no key was taken")
	}
	refusing := newConfigServer(t, http.StatusUnauthorized, `{"error":{"code":"invalid_api_key","message":"No."}}`)
	if err := login("refused", refusing, "slk_wrong"); err == nil || strings.Contains(err.Error(), "slk_wrong") {
		t.Error(err)
	}
	asked := func(a *adminAPI, env app.Environment, args ...string) {
		t.Helper()
		n := len(a.asked)
		if out, err := runUse(t, env, args...); err != nil || len(a.asked) != n+1 {
			t.Errorf("%v: %v %s, asked %v", args, err, out, a.asked)
		}
	}
	set := map[string]string{"SLUICE_ADMIN_URL": other.URL, "SLUICE_ADMIN_KEY": adminKey}
	asked(api, plain, "account", "list")                            // the current one
	asked(other, env(set), "account", "list")                       // variables go before it
	asked(api, env(set), "account", "list", "--context", "prod")    // and this before them
	asked(other, env(set), "account", "list", "--context", "local") // the environment
	if out, err := runUse(t, plain, "context", "list"); err != nil || !strings.Contains(out, "prod   true     "+api.URL) || strings.Contains(out, adminKey) {
		t.Errorf("%v\n%s", err, out)
	}
	if _, err := runUse(t, plain, "account", "list", "--context", "nope"); err == nil || !strings.Contains(err.Error(), "sluice login nope") {
		t.Error(err)
	}
	for _, args := range []string{"context use local", "context remove prod"} {
		if _, err := runUse(t, plain, strings.Fields(args)...); err != nil {
			t.Error(args, err)
		}
		if _, err := runUse(t, plain, "account", "list"); err == nil || !strings.Contains(err.Error(), "sluice login") {
			t.Error(args, err)
		}
	}
	if text, err := os.ReadFile(name); err != nil || strings.Contains(string(text), adminKey) {
		t.Errorf("%v: a key is left: %s", err, text)
	}
}

// newConfigServer answers everything with one status and text.
func newConfigServer(t *testing.T, status int, answer string) string {
	t.Helper()
	a := &configAPI{status: status, answer: answer}
	url, _ := a.env(t).Lookup("SLUICE_ADMIN_URL")
	return url
}
