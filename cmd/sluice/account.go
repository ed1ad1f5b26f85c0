package main

import (
	"fmt"
	"net/http"

	"github.com/spf13/cobra"
)

var accountFields = []string{"id", "name", "plan", "created_at"}

// accountCommand is `sluice account`.
func accountCommand(env environment) *cobra.Command {
	c := &cobra.Command{Use: "account", Short: "create and list accounts"}
	c.AddCommand(accountCreate(env), accountList(env))
	return c
}

// accountCreate is `sluice account create`: it shows the new account.
func accountCreate(env environment) *cobra.Command {
	var name, plan string
	var out printer
	c := &cobra.Command{
		Use: "create", Short: "create an account", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			answer, err := env.call(c.Context(), http.MethodPost, "/admin/v1/accounts", map[string]any{"name": name, "plan": plan})
			if err != nil {
				return err
			}
			return out.one(c.OutOrStdout(), answer, accountFields...)
		},
	}
	out.flag(c)
	c.Flags().StringVar(&name, "name", "", "name of the account")
	c.Flags().StringVar(&plan, "plan", "free", "plan of the account")
	cobra.CheckErr(c.MarkFlagRequired("name"))
	return c
}

// accountList is `sluice account list`.
func accountList(env environment) *cobra.Command {
	var limit, offset int
	var out printer
	c := &cobra.Command{
		Use: "list", Short: "list accounts, newest first", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			answer, err := env.call(c.Context(), http.MethodGet, fmt.Sprintf("/admin/v1/accounts?limit=%d&offset=%d", limit, offset), nil)
			if err != nil {
				return err
			}
			return out.list(c.OutOrStdout(), answer, accountFields...)
		},
	}
	out.flag(c)
	pageFlags(c, &limit, &offset)
	return c
}
