package main

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"github.com/spf13/cobra"
)

// shownObject is one kind of object of the configuration as commands show it.
type shownObject struct {
	use, plural, path string
	listed            []string // fields in lists
	more              []string // further ones of a single object
}

func routeCommand(env environment) *cobra.Command {
	return shownObject{"route", "routes", "/admin/v1/routes",
		[]string{"name", "listener", "methods", "path", "product", "auth", "scope", "class"},
		[]string{"forward_credentials", "streaming", "timeout", "body_limit"}}.command(env)
}

func productCommand(env environment) *cobra.Command {
	return shownObject{"product", "products", "/admin/v1/products",
		[]string{"name", "upstreams", "health_path"},
		[]string{"connect_timeout", "idle_timeout", "max_connections", "max_requests", "retries"}}.command(env)
}

func planCommand(env environment) *cobra.Command {
	return shownObject{"plan", "plans", "/admin/v1/plans", []string{"name", "self_serve"}, []string{"limits", "products", "tokens"}}.command(env)
}

func classCommand(env environment) *cobra.Command {
	return shownObject{"class", "rate classes", "/admin/v1/classes", []string{"name", "per_minute", "burst"}, nil}.command(env)
}

// command has `list` and `get NAME`.
func (o shownObject) command(env environment) *cobra.Command {
	c := &cobra.Command{Use: o.use, Short: "show the current " + o.plural}
	c.AddCommand(listCommand(env, "list", "list the "+o.plural, o.path, o.listed...), o.get(env))
	return c
}

func (o shownObject) get(env environment) *cobra.Command {
	var out printer
	c := &cobra.Command{
		Use: "get NAME", Short: "show one " + o.use, Args: cobra.ExactArgs(1), ValidArgsFunction: o.names(env),
		RunE: func(c *cobra.Command, args []string) error {
			answer, err := env.call(c.Context(), http.MethodGet, o.path+"/"+url.PathEscape(args[0]), nil)
			if err != nil {
				return err
			}
			return out.one(c.OutOrStdout(), answer, append(append([]string{}, o.listed...), o.more...)...)
		},
	}
	out.flag(c)
	return c
}

// names completes the names of objects in a shell. A platform that does not
// answer has none.
func (o shownObject) names(env environment) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		var list struct{ Data []struct{ Name string } }
		answer, err := env.call(c.Context(), http.MethodGet, o.path, nil)
		if err != nil || len(args) > 0 || json.Unmarshal(answer, &list) != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var names []cobra.Completion
		for _, object := range list.Data {
			if strings.HasPrefix(object.Name, begun) {
				names = append(names, object.Name)
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}

// listCommand shows what one address of the admin API lists.
func listCommand(env environment, use, short, path string, fields ...string) *cobra.Command {
	var out printer
	c := &cobra.Command{Use: use, Short: short, Args: cobra.NoArgs, RunE: func(c *cobra.Command, _ []string) error {
		answer, err := env.call(c.Context(), http.MethodGet, path, nil)
		if err != nil {
			return err
		}
		return out.list(c.OutOrStdout(), answer, fields...)
	}}
	out.flag(c)
	return c
}
