package main

import (
	"net/http"
	"net/url"

	"github.com/spf13/cobra"
)

// limitCommand is `sluice limit`.
func limitCommand(env environment) *cobra.Command {
	c := &cobra.Command{Use: "limit", Short: "set and list an account's rate limits that differ from its plan"}
	c.AddCommand(limitSet(env), limitList(env))
	return c
}

// limitSet is `sluice limit set`.
func limitSet(env environment) *cobra.Command {
	var account, class string
	var perMinute int
	var out printer
	c := &cobra.Command{
		Use: "set", Short: "set how many requests of a class an account may send in any 60 seconds", Args: cobra.NoArgs,
		Example: "  sluice limit set --account acct_… --class events --per-minute 20000",
		RunE: func(c *cobra.Command, _ []string) error {
			body := map[string]any{"per_minute": perMinute}
			answer, err := env.callAccount(c.Context(), account, http.MethodPut, "/limits/"+url.PathEscape(class), body)
			if err != nil {
				return err
			}
			return out.one(c.OutOrStdout(), answer, "class", "per_minute")
		},
	}
	out.flag(c)
	c.Flags().StringVar(&account, "account", "", "account id (default: the account of the admin key)")
	c.Flags().StringVar(&class, "class", "", "rate class")
	c.Flags().IntVar(&perMinute, "per-minute", 0, "requests in any 60 seconds")
	for _, f := range []string{"class", "per-minute"} {
		cobra.CheckErr(c.MarkFlagRequired(f))
	}
	return c
}

// limitList is `sluice limit list`.
func limitList(env environment) *cobra.Command {
	var account string
	var out printer
	c := &cobra.Command{
		Use: "list", Short: "list the limits of an account", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			answer, err := env.callAccount(c.Context(), account, http.MethodGet, "/limits", nil)
			if err != nil {
				return err
			}
			return out.list(c.OutOrStdout(), answer, "class", "per_minute")
		},
	}
	out.flag(c)
	c.Flags().StringVar(&account, "account", "", "account id (default: the account of the admin key)")
	return c
}
