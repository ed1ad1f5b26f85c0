package main

import (
	"net/http"

	"github.com/spf13/cobra"
)

// allowlistCommand is `sluice allowlist`.
func allowlistCommand(env environment) *cobra.Command {
	c := &cobra.Command{Use: "allowlist", Short: "show and set the addresses an account may call from"}
	c.AddCommand(allowlistGet(env), allowlistSet(env))
	return c
}

// allowlistGet is `sluice allowlist get`.
func allowlistGet(env environment) *cobra.Command {
	c := &cobra.Command{Use: "get", Short: "show the addresses an account may call from", Args: cobra.NoArgs}
	return allowlistCall(env, c, http.MethodGet)
}

// allowlistSet is `sluice allowlist set`.
func allowlistSet(env environment) *cobra.Command {
	c := &cobra.Command{
		Use: "set [address or CIDR]...", Short: "set the addresses an account may call from; none: from anywhere",
		Example: "  sluice allowlist set --account acct_… 192.0.2.0/24 2001:db8::/32",
	}
	return allowlistCall(env, c, http.MethodPut)
}

// allowlistCall makes c call the admin API: with its arguments, where method changes the list.
func allowlistCall(env environment, c *cobra.Command, method string) *cobra.Command {
	var account string
	var out printer
	c.RunE = func(c *cobra.Command, args []string) error {
		var body any
		if method == http.MethodPut {
			body = map[string][]string{"addresses": append([]string{}, args...)}
		}
		answer, err := env.callAccount(c.Context(), account, method, "/allowlist", body)
		if err != nil {
			return err
		}
		return out.one(c.OutOrStdout(), answer, "addresses")
	}
	out.flag(c)
	c.Flags().StringVar(&account, "account", "", "account id (default: the account of the admin key)")
	return c
}
