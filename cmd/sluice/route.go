package main

import (
	"net/http"
	"net/url"

	"github.com/spf13/cobra"
)

func routeCommand(env environment) *cobra.Command {
	c := &cobra.Command{Use: "route", Short: "show the routes in force"}
	c.AddCommand(routeList(env), routeGet(env))
	return c
}

func routeList(env environment) *cobra.Command {
	return listCommand(env, "list", "list the routes", "/admin/v1/routes", "name", "listener", "methods", "path", "product", "auth", "scope", "class")
}

func routeGet(env environment) *cobra.Command {
	var out printer
	c := &cobra.Command{
		Use: "get NAME", Short: "show one route", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			api, err := env.client()
			if err != nil {
				return err
			}
			answer, err := api.do(c.Context(), http.MethodGet, "/admin/v1/routes/"+url.PathEscape(args[0]), nil)
			if err != nil {
				return err
			}
			return out.one(c.OutOrStdout(), answer, "name", "listener", "methods", "path", "product", "auth", "scope", "class",
				"forward_credentials", "streaming", "timeout", "body_limit")
		},
	}
	out.flag(c)
	return c
}

// listCommand shows what one address of the admin API lists.
func listCommand(env environment, use, short, path string, fields ...string) *cobra.Command {
	var out printer
	c := &cobra.Command{Use: use, Short: short, Args: cobra.NoArgs, RunE: func(c *cobra.Command, _ []string) error {
		api, err := env.client()
		if err != nil {
			return err
		}
		answer, err := api.do(c.Context(), http.MethodGet, path, nil)
		if err != nil {
			return err
		}
		return out.list(c.OutOrStdout(), answer, fields...)
	}}
	out.flag(c)
	return c
}
