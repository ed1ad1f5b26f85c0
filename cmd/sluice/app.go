package main

import (
	"fmt"
	"net/http"
	"net/url"

	"github.com/spf13/cobra"
)

// appFields are what is shown of an OAuth application, in order.
var appFields = []string{"client_id", "name", "account", "public", "redirect_uris", "scopes", "created_at", "revoked_at"}

func appCommand(env environment) *cobra.Command {
	c := &cobra.Command{Use: "app", Short: "register, list and revoke OAuth applications"}
	c.AddCommand(appCreate(env), appList(env), appRevoke(env))
	return c
}

func appCreate(env environment) *cobra.Command {
	var account, name string
	var redirects, scopes []string
	var public bool
	var out printer
	c := &cobra.Command{
		Use: "create", Short: "register an application and show its secret once", Args: cobra.NoArgs,
		Example: "  sluice app create --name Studio --redirect-uri https://studio.example/callback --scope streams:read\n" +
			"  sluice app create --name CLI --public --redirect-uri http://127.0.0.1/callback --scope streams:read",
		RunE: func(c *cobra.Command, _ []string) error {
			body := map[string]any{"account": account, "name": name, "public": public, "redirect_uris": redirects, "scopes": scopes}
			answer, err := env.call(c.Context(), http.MethodPost, "/admin/v1/apps", body)
			if err != nil {
				return err
			}
			return out.one(c.OutOrStdout(), answer, append([]string{"client_secret"}, appFields...)...)
		},
	}
	out.flag(c)
	c.Flags().StringVar(&account, "account", "", "account id (default: the account of the admin key)")
	c.Flags().StringVar(&name, "name", "", "name shown to users")
	c.Flags().StringArrayVar(&redirects, "redirect-uri", nil, "redirect URI; may be repeated")
	c.Flags().StringArrayVar(&scopes, "scope", nil, "scope that it may request; may be repeated")
	c.Flags().BoolVar(&public, "public", false, "public client: cannot keep a secret, such as a mobile or browser app")
	for _, f := range []string{"name", "redirect-uri", "scope"} {
		cobra.CheckErr(c.MarkFlagRequired(f))
	}
	return c
}

func appList(env environment) *cobra.Command {
	var account string
	var limit, offset int
	var out printer
	c := &cobra.Command{
		Use: "list", Short: "list applications, newest first", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			path := fmt.Sprintf("/admin/v1/apps?limit=%d&offset=%d&account=%s", limit, offset, url.QueryEscape(account))
			answer, err := env.call(c.Context(), http.MethodGet, path, nil)
			if err != nil {
				return err
			}
			return out.list(c.OutOrStdout(), answer, appFields...)
		},
	}
	out.flag(c)
	pageFlags(c, &limit, &offset)
	c.Flags().StringVar(&account, "account", "", "account id (default: all accounts)")
	return c
}

func appRevoke(env environment) *cobra.Command {
	return &cobra.Command{
		Use: "revoke CLIENT_ID", Short: "revoke an application and all its tokens", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if _, err := env.call(c.Context(), http.MethodDelete, "/admin/v1/apps/"+url.PathEscape(args[0]), nil); err != nil {
				return err
			}
			_, err := fmt.Fprintln(c.OutOrStdout(), args[0]+" is revoked")
			return err
		},
	}
}
