package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"sluice.dev/sluice/internal/app"
)

// Fields that are shown, in order.
var (
	accountFields = []string{"id", "name", "plan", "created_at"}
	appFields     = []string{"client_id", "name", "account", "public", "redirect_uris", "scopes", "created_at", "revoked_at"}
	keyFields     = []string{"id", "name", "scopes", "rate_limit_per_minute", "expires_at", "created_at"}
	newKeyFields  = append([]string{"key"}, keyFields...)
	limitFields   = []string{"class", "per_minute"}
	balanceFields = []string{"address", "balance", "held", "received"}
)

func accountCommand(env app.Environment) *cobra.Command {
	const path = "/admin/v1/accounts/{0}"
	return group("account", "create, list, change and suspend accounts",
		call{
			use: "create", short: "create an account", method: http.MethodPost, path: "/admin/v1/accounts", one: accountFields,
			flags: []option{
				{name: "name", fallback: "", help: "name of the account", field: "name", required: true},
				{name: "plan", fallback: "free", help: "plan of the account", field: "plan", from: planNames},
			},
		}.command(env),
		call{use: "list", short: "list accounts, newest first", path: "/admin/v1/accounts", paged: true, list: accountFields, wide: []string{"operator", "suspended_at"}}.command(env),
		call{
			use: "get ID", short: "show an account", args: cobra.ExactArgs(1), path: path, complete: accountIDs.first(env, false),
			one: slices.Concat(accountFields, []string{"operator", "suspended_at", "suspended_reason"}),
		}.command(env),
		call{
			use: "update ID", short: "change the name or plan of an account", args: cobra.ExactArgs(1), method: http.MethodPatch, path: path, one: accountFields, complete: accountIDs.first(env, false),
			flags: []option{
				{name: "name", fallback: "", help: "new name", field: "name", given: true},
				{name: "plan", fallback: "", help: "new plan", field: "plan", given: true, from: planNames},
			},
			edit: somethingGiven,
		}.command(env),
		call{
			use: "suspend ID", short: "keep an account out: its keys, sessions and tokens are refused, its schedules and deliveries wait", args: cobra.ExactArgs(1),
			example: "  sluice account suspend acct_… --reason 'Payments are disputed: write to support@example.com.'",
			method:  http.MethodPost, path: path + "/suspend", one: slices.Concat(accountFields, []string{"suspended_at", "suspended_reason"}), complete: accountIDs.first(env, false),
			flags: []option{{name: "reason", fallback: "", help: "what the account's people read when they sign in", field: "reason", required: true}},
		}.command(env),
		call{
			use: "resume ID", short: "let a suspended account in again", args: cobra.ExactArgs(1),
			method: http.MethodPost, path: path + "/resume", one: accountFields, complete: accountIDs.first(env, false),
		}.command(env),
	)
}

func allowlistCommand(env app.Environment) *cobra.Command {
	return group("allowlist", "show and set the addresses an account may call from",
		call{
			use: "get", short: "show the addresses an account may call from", path: "/admin/v1/accounts/{account}/allowlist",
			one: []string{"addresses"},
		}.command(env),
		call{
			use: "set [address or CIDR]...", short: "set the addresses an account may call from; none: from anywhere", args: cobra.ArbitraryArgs,
			example: "  sluice allowlist set --account acct_… 192.0.2.0/24 2001:db8::/32",
			method:  http.MethodPut, path: "/admin/v1/accounts/{account}/allowlist", one: []string{"addresses"},
			edit: func(_ *cobra.Command, args []string, r *request) error {
				r.body["addresses"] = append([]string{}, args...)
				return nil
			},
		}.command(env),
	)
}

func appCommand(env app.Environment) *cobra.Command {
	return group("app", "register, list and revoke OAuth applications",
		call{
			use: "create", short: "register an application and show its secret once", method: http.MethodPost, path: "/admin/v1/apps",
			example: "  sluice app create --name Studio --redirect-uri https://studio.example/callback --scope streams:read\n" +
				"  sluice app create --name CLI --public --redirect-uri http://127.0.0.1/callback --scope streams:read",
			flags: []option{
				{name: "account", fallback: "", help: "account id (default: the account of the admin key)", field: "account"},
				{name: "name", fallback: "", help: "name shown to users", field: "name", required: true},
				{name: "redirect-uri", fallback: repeated(nil), help: "redirect URI; may be repeated", field: "redirect_uris", required: true},
				{name: "scope", fallback: repeated(nil), help: "scope that it may request; may be repeated", field: "scopes", required: true, from: scopeNames},
				{name: "public", fallback: false, help: "public client: cannot keep a secret, such as a mobile or browser app", field: "public"},
			},
			one: append([]string{"client_secret"}, appFields...),
		}.command(env),
		call{
			use: "list", short: "list applications, newest first", path: "/admin/v1/apps", paged: true, list: appFields,
			flags: []option{{name: "account", fallback: "", help: "account id (default: all accounts)", field: "account"}},
		}.command(env),
		call{
			use: "revoke CLIENT_ID", short: "revoke an application and all its tokens", args: cobra.ExactArgs(1),
			method: http.MethodDelete, path: "/admin/v1/apps/{0}", done: "is revoked", complete: appIDs.first(env, false),
		}.command(env),
	)
}

func keyCommand(env app.Environment) *cobra.Command {
	return group("key", "create, import, list, rotate and revoke API keys",
		keyImportCommand(env),
		call{
			use: "create", short: "create an API key and show it once", method: http.MethodPost, path: "/admin/v1/accounts/{account}/keys",
			example: "  sluice key create --name ci --scope streams:read --scope clips:write",
			flags: append([]option{
				{name: "name", fallback: "", help: "name of the key", field: "name", required: true},
				{name: "scope", fallback: []string(nil), help: "scope of the key; may be repeated, or separated by commas", field: "scopes", required: true, from: scopeNames},
			}, keyLimits(90, "days until the key expires")...),
			edit: keyBody, one: newKeyFields,
		}.command(env),
		call{
			use: "list", short: "list the API keys of an account, newest first", path: "/admin/v1/accounts/{account}/keys", paged: true, list: append(keyFields[:len(keyFields):len(keyFields)], "imported_from"),
		}.command(env),
		call{
			use: "revoke ID", short: "revoke an API key at once", args: cobra.ExactArgs(1),
			method: http.MethodDelete, path: "/admin/v1/keys/{0}", done: "is revoked", complete: keyIDs.first(env, false),
		}.command(env),
		call{
			use: "rotate ID", short: "replace an API key; both work until the old one expires", args: cobra.ExactArgs(1),
			method: http.MethodPost, path: "/admin/v1/keys/{0}/rotate", one: newKeyFields, complete: keyIDs.first(env, false),
			flags: []option{{name: "overlap", fallback: 24 * time.Hour, help: "how long the old key keeps working, at most 168h"}},
			edit: func(c *cobra.Command, _ []string, r *request) error {
				overlap, err := c.Flags().GetDuration("overlap")
				r.body["overlap_seconds"] = int(overlap / time.Second)
				return err
			},
		}.command(env),
	)
}

// keyLimits are the flags that keyBody reads.
func keyLimits(days int, help string) []option {
	return []option{
		{name: "per-minute", fallback: 0, help: "requests of the key in any 60 seconds, in addition to its account's limits (default: no limit of its own)"},
		{name: "expires-in-days", fallback: days, help: help},
		{name: "never-expires", fallback: false, help: "the key never expires"},
		{name: "expires-at", fallback: "", help: "time at which the key expires, RFC 3339"},
	}
}

// keyBody adds a limit and when the key expires; an error when the flags contradict
// each other.
func keyBody(c *cobra.Command, _ []string, r *request) error {
	flags := c.Flags()
	given := 0
	if flags.Changed("expires-in-days") {
		given++
		r.body["expires_in_days"], _ = flags.GetInt("expires-in-days")
	}
	if never, _ := flags.GetBool("never-expires"); never {
		given++
		r.body["expires_in_days"] = nil
	}
	if at, _ := flags.GetString("expires-at"); at != "" {
		given++
		if _, err := time.Parse(time.RFC3339, at); err != nil {
			return fmt.Errorf("--expires-at is %q: expected a time such as 2026-12-31T23:59:59Z", at)
		}
		r.body["expires_at"] = at
	}
	if given > 1 {
		return errors.New("give one of --expires-in-days, --never-expires and --expires-at")
	}
	if flags.Changed("per-minute") {
		r.body["rate_limit_per_minute"], _ = flags.GetInt("per-minute")
	}
	return nil
}

func limitCommand(env app.Environment) *cobra.Command {
	return group("limit", "set, list and unset an account's rate limits that differ from its plan",
		call{
			use: "set", short: "set how many requests of a class an account may send in any 60 seconds",
			example: "  sluice limit set --account acct_… --class events --per-minute 20000",
			method:  http.MethodPut, path: "/admin/v1/accounts/{account}/limits/{class}", one: limitFields, edit: knownClass(env),
			flags: []option{
				{name: "class", fallback: "", help: "rate class", required: true, from: classNames},
				{name: "per-minute", fallback: 0, help: "requests in any 60 seconds", field: "per_minute", required: true},
			},
		}.command(env),
		call{use: "list", short: "list the limits of an account", path: "/admin/v1/accounts/{account}/limits", list: limitFields}.command(env),
		call{
			use: "unset CLASS", short: "remove a limit of an account, so that its plan's applies", args: cobra.ExactArgs(1), example: "  sluice limit unset events --account acct_…",
			method: http.MethodDelete, path: "/admin/v1/accounts/{account}/limits/{0}", done: "is limited by the plan again", complete: classNames.first(env, false),
		}.command(env),
	)
}

func sessionCommand(env app.Environment) *cobra.Command {
	return group("session", "create session tokens, and replace the key that signs them",
		call{
			use: "create", short: "create a session token for a user, without the password", method: http.MethodPost, path: "/admin/v1/sessions",
			flags: []option{{name: "email", fallback: "", help: "e-mail address of the user", field: "email", required: true}},
			one:   []string{"id", "token", "expires_at", "scopes"},
		}.command(env),
		// It works on the database, so that it needs no token that the leaked key may have signed.
		&cobra.Command{
			Use: "replace-key", Short: "replace a leaked signing key; every session and OAuth token expires within two minutes", Args: cobra.NoArgs,
			RunE: func(c *cobra.Command, _ []string) error {
				if err := env.ReplaceSigningKey(c.Context()); err != nil {
					return err
				}
				_, err := fmt.Fprintln(c.OutOrStdout(), "The new key signs from two minutes from now on. Sessions and tokens that others signed expire then: sign in again.")
				return err
			},
		},
	)
}

func x402Command(env app.Environment) *cobra.Command {
	const path = "/admin/v1/x402/accounts/{0}"
	only := func(name string) option {
		return option{name: name, fallback: "", help: "only payments with this " + name, field: name}
	}
	return group("x402", "fund test addresses and list payments",
		call{
			use: "fund ADDRESS AMOUNT_ATOMIC", short: "fund an address in the test ledger, in the token's smallest unit", args: cobra.ExactArgs(2),
			example: "  sluice x402 fund 0x… 1000000    # one USDC",
			method:  http.MethodPost, path: path + "/fund", one: balanceFields,
			edit: func(_ *cobra.Command, args []string, r *request) error {
				r.body["amount"] = args[1]
				return nil
			},
		}.command(env),
		call{use: "balance ADDRESS", short: "show the balance of an address in the test ledger", args: cobra.ExactArgs(1), path: path, one: balanceFields}.command(env),
		call{
			use: "payments", short: "list payments, newest first", path: "/admin/v1/payments", paged: true, flags: []option{only("route"), only("state"), only("payer")},
			list: []string{"id", "state", "reason", "route", "payer", "amount", "transaction", "created_at"},
		}.command(env),
	)
}

// somethingGiven refuses a change of nothing.
func somethingGiven(c *cobra.Command, _ []string, r *request) error {
	if len(r.body) == 0 {
		return usageError{c, "give what is to change"}
	}
	return nil
}

// knownClass refuses a class that the configuration does not have: a limit in it would
// count nothing.
func knownClass(env app.Environment) func(*cobra.Command, []string, *request) error {
	return func(c *cobra.Command, _ []string, _ *request) error {
		class, _ := c.Flags().GetString("class")
		var list struct{ Data []struct{ Name string } }
		answer, err := get(c.Context(), env, classNames.path)
		if err != nil || json.Unmarshal(answer, &list) != nil {
			return err
		}
		var names []string
		for _, k := range list.Data {
			names = append(names, k.Name)
		}
		if len(names) > 0 && !slices.Contains(names, class) {
			return fmt.Errorf("there is no class %q: the configuration has %s", class, strings.Join(names, ", "))
		}
		return nil
	}
}
