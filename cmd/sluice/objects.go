package main

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/spf13/cobra"
	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/internal/app"
)

// object is one kind of object of the configuration.
type object struct {
	use, plural, path string
	listed, wide      []string // shown of each in a list; a default after = is the one in force
	more              []string // shown of one, besides those
	extra             []*cobra.Command
}

// objectCommands show and change the objects of the configuration in force.
func objectCommands(env app.Environment) []*cobra.Command {
	offer := func(use, short string, offered bool) *cobra.Command {
		return call{
			use: use + " NAME", short: short, args: cobra.ExactArgs(1), method: http.MethodPatch, path: "/admin/v1/plans/{0}", fixed: map[string]any{"self_serve": offered},
			one: []string{"name", "self_serve"}, complete: planNames.first(env, false),
		}.command(env)
	}
	route := []string{"name", "listener=" + config.Gateway, "methods=all", "path", "product=-", "auth", "scope=-", "class=" + config.DefaultClass}
	var list []*cobra.Command
	for _, o := range []object{
		{use: "route", plural: "routes", path: "/admin/v1/routes", listed: route, wide: []string{"timeout=" + config.DefaultTimeout.String(), "hosts=all"},
			more: []string{"split", "sticky", "mirror", "retries", "redirect", "request_headers", "response_headers", "compress", "forward_credentials", "streaming",
				"timeout=" + config.DefaultTimeout.String(), "body_limit"}},
		{use: "product", plural: "products", path: "/admin/v1/products", listed: []string{"name", "upstreams", "health_path"}, wide: []string{"host"},
			more: []string{"connect_timeout", "idle_timeout", "max_connections", "max_requests", "retries"}},
		{use: "plan", plural: "plans", path: "/admin/v1/plans", listed: []string{"name", "self_serve"}, more: []string{"limits", "products", "tokens"},
			extra: []*cobra.Command{offer("offer", "let customers choose a plan themselves", true), offer("withdraw", "let customers no longer choose a plan themselves", false)}},
		{use: "class", plural: "rate classes", path: "/admin/v1/classes", listed: []string{"name", "per_minute", "burst", "when_cut_off"}},
	} {
		list = append(list, o.command(env))
	}
	return list
}

// command is `list`, `get`, `apply` and `delete` of one kind of object.
func (o object) command(env app.Environment) *cobra.Command {
	names := listed{o.path, "name"}.first(env, false)
	one := append(append([]string{}, o.listed...), o.more...)
	if o.use == "plan" {
		one = append([]string{"name"}, o.more...) // whether it is offered is in the list: it is not of the document
	}
	c := group(o.use, "show and change the "+o.plural+" in force",
		call{use: "list", short: "list the " + o.plural, path: o.path, list: o.listed, wide: o.wide}.command(env),
		call{use: "get NAME", short: "show one " + o.use, path: o.path + "/{0}", args: cobra.ExactArgs(1), complete: names, one: one}.command(env),
		o.change(env, call{
			use: "apply [NAME]", short: "create or replace one " + o.use + " from a file", args: cobra.MaximumNArgs(1), method: http.MethodPut, file: true,
			example: "  sluice " + o.use + " get NAME -o yaml > one.yaml\n  sluice " + o.use + " apply -f one.yaml --dry-run\n  sluice " + o.use + " apply -f one.yaml",
		}),
		o.change(env, call{use: "delete NAME", short: "delete one " + o.use, args: cobra.ExactArgs(1), method: http.MethodDelete, complete: names}),
	)
	c.AddCommand(o.extra...)
	return c
}

// change is a call that makes a new version of the configuration, or with --dry-run shows
// what that would change.
func (o object) change(env app.Environment, k call) *cobra.Command {
	k.flags = []option{
		{name: "dry-run", fallback: false, help: "only show what would change; exit status 2 if anything would, 0 if nothing"},
		{name: "note", fallback: "", help: "reason for the change, stored with the version"},
	}
	k.path = o.path + "/{0}"
	c := k.command(env)
	c.RunE = func(c *cobra.Command, args []string) error {
		body := map[string]any{}
		if k.file {
			if err := readObject(c, &body); err != nil {
				return err
			}
			if len(body) == 0 {
				return usageError{c, "--file is missing"}
			}
			if len(args) == 0 {
				name, _ := body["name"].(string)
				if name == "" {
					return errors.New("the file has no name: give NAME")
				}
				args = []string{name}
			}
		}
		query := url.Values{}
		dry, _ := c.Flags().GetBool("dry-run")
		if dry {
			query.Set("dry_run", "true")
		}
		if note, _ := c.Flags().GetString("note"); note != "" {
			query.Set("note", note)
		}
		answer, err := k.do(c, env, request{path: o.path + "/" + url.PathEscape(args[0]), query: query.Encode(), body: body})
		if err != nil {
			return about(err, args)
		}
		return o.showChange(c, k, args[0], dry, answer)
	}
	return c
}

// showChange shows what became of an object, or what would.
func (o object) showChange(c *cobra.Command, k call, name string, dry bool, answer []byte) error {
	out := printing(c)
	switch {
	case !out.Text() && len(answer) > 0:
		if err := out.Document(answer); err != nil || !dry {
			return err
		}
	case dry:
		if err := showChanges(out.Out, answer); err != nil {
			return err
		}
	default:
		did := "is applied"
		if k.method == http.MethodDelete {
			did = "is deleted"
		}
		_, err := fmt.Fprintf(out.Out, "%s %s %s; `sluice config diff` shows the change\n", o.use, name, did)
		return err
	}
	return wouldChange(answer)
}
