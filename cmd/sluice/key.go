package main

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/spf13/cobra"
)

// keyFields are what is shown of a key, in order.
var keyFields = []string{"id", "name", "scopes", "rate_limit_per_minute", "expires_at", "created_at"}

// keyCommand is `sluice key`.
func keyCommand(env environment) *cobra.Command {
	c := &cobra.Command{Use: "key", Short: "create, list, rotate and revoke API keys"}
	c.AddCommand(keyCreate(env), keyList(env), keyRevoke(env), keyRotate(env))
	return c
}

// lifetimeFlags say when a key ends.
type lifetimeFlags struct {
	days  int
	never bool
	at    string
}

// fields are those of the request; an error when they contradict each other.
func (l lifetimeFlags) fields(c *cobra.Command, body map[string]any) error {
	given := 0
	if c.Flags().Changed("expires-in-days") {
		given++
		body["expires_in_days"] = l.days
	}
	if l.never {
		given++
		body["expires_in_days"] = nil
	}
	if l.at != "" {
		given++
		if _, err := time.Parse(time.RFC3339, l.at); err != nil {
			return fmt.Errorf("--expires-at is %q: expected a time such as 2026-12-31T23:59:59Z", l.at)
		}
		body["expires_at"] = l.at
	}
	if given > 1 {
		return errors.New("give one of --expires-in-days, --never-expires and --expires-at")
	}
	return nil
}

// keyCreate is `sluice key create`: it shows the key's text, which cannot be
// shown again.
func keyCreate(env environment) *cobra.Command {
	var name, account string
	var scopes []string
	var perMinute int
	var life lifetimeFlags
	var out printer
	c := &cobra.Command{
		Use: "create", Short: "create an API key and show it once", Args: cobra.NoArgs,
		Example: "  sluice key create --name ci --scope streams:read --scope clips:write",
		RunE: func(c *cobra.Command, _ []string) error {
			body := map[string]any{"name": name, "scopes": scopes}
			if err := life.fields(c, body); err != nil {
				return err
			}
			if c.Flags().Changed("per-minute") {
				body["rate_limit_per_minute"] = perMinute
			}
			answer, err := env.callAccount(c.Context(), account, http.MethodPost, "/keys", body)
			if err != nil {
				return err
			}
			return out.one(c.OutOrStdout(), answer, append([]string{"key"}, keyFields...)...)
		},
	}
	out.flag(c)
	c.Flags().StringVar(&name, "name", "", "name of the key")
	c.Flags().StringSliceVar(&scopes, "scope", nil, "scope of the key; may be repeated, or separated by commas")
	c.Flags().StringVar(&account, "account", "", "account id (default: the account of the admin key)")
	c.Flags().IntVar(&perMinute, "per-minute", 0, "requests of the key in any 60 seconds, in addition to its account's limits (default: no limit of its own)")
	c.Flags().IntVar(&life.days, "expires-in-days", 90, "days until the key expires")
	c.Flags().BoolVar(&life.never, "never-expires", false, "the key never expires")
	c.Flags().StringVar(&life.at, "expires-at", "", "time at which the key expires, RFC 3339")
	for _, f := range []string{"name", "scope"} {
		cobra.CheckErr(c.MarkFlagRequired(f))
	}
	return c
}

// keyList is `sluice key list`.
func keyList(env environment) *cobra.Command {
	var account string
	var limit, offset int
	var out printer
	c := &cobra.Command{
		Use: "list", Short: "list the API keys of an account, newest first", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			answer, err := env.callAccount(c.Context(), account, http.MethodGet, fmt.Sprintf("/keys?limit=%d&offset=%d", limit, offset), nil)
			if err != nil {
				return err
			}
			return out.list(c.OutOrStdout(), answer, keyFields...)
		},
	}
	out.flag(c)
	c.Flags().StringVar(&account, "account", "", "account id (default: the account of the admin key)")
	pageFlags(c, &limit, &offset)
	return c
}

// pageFlags adds --limit and --offset, which the API bounds.
func pageFlags(c *cobra.Command, limit, offset *int) {
	c.Flags().IntVar(limit, "limit", 50, "number to list, at most 100")
	c.Flags().IntVar(offset, "offset", 0, "number to skip")
}

// keyRevoke is `sluice key revoke`.
func keyRevoke(env environment) *cobra.Command {
	return &cobra.Command{
		Use: "revoke ID", Short: "revoke an API key at once", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if _, err := env.call(c.Context(), http.MethodDelete, "/admin/v1/keys/"+url.PathEscape(args[0]), nil); err != nil {
				return err
			}
			_, err := fmt.Fprintln(c.OutOrStdout(), args[0]+" is revoked")
			return err
		},
	}
}

// keyRotate is `sluice key rotate`: it shows the new key's text.
func keyRotate(env environment) *cobra.Command {
	var overlap time.Duration
	var out printer
	c := &cobra.Command{
		Use: "rotate ID", Short: "replace an API key; both work until the old one expires", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			body := map[string]any{"overlap_seconds": int(overlap / time.Second)}
			answer, err := env.call(c.Context(), http.MethodPost, "/admin/v1/keys/"+url.PathEscape(args[0])+"/rotate", body)
			if err != nil {
				return err
			}
			return out.one(c.OutOrStdout(), answer, append([]string{"key"}, keyFields...)...)
		},
	}
	out.flag(c)
	c.Flags().DurationVar(&overlap, "overlap", 24*time.Hour, "how long the old key keeps working, at most 168h")
	return c
}
