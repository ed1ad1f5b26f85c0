package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"sluice.dev/sluice/internal/app"
)

// call is a command that makes one call of the admin API and shows the answer.
type call struct {
	use, short, example string
	args                cobra.PositionalArgs // nil: none
	method              string               // "": GET
	// path may have {account}, for which there is a flag --account, {0} and {1} for
	// arguments, and {FLAG}.
	path  string
	paged bool // with --limit and --offset
	flags []flag
	// edit completes the body; nil: it is the flags.
	edit func(c *cobra.Command, args []string, body map[string]any) error
	// What is shown: fields of one object, or of each in a list; by show; or that the
	// first argument is done.
	one, list []string
	show      func(w io.Writer, answer []byte) error
	done      string
	complete  cobra.CompletionFunc
}

// flag is one of a call. Its field is that of the body, or of the query of a GET; "":
// it is in neither.
type flag struct {
	name     string
	fallback any // of the flag's type
	help     string
	field    string
	required bool
}

// repeated are texts that are not split at commas.
type repeated []string

// add adds the flag to s and returns what reads it.
func (f flag) add(s *pflag.FlagSet) (value func() any) {
	switch v := f.fallback.(type) {
	case bool:
		p := s.Bool(f.name, v, f.help)
		return func() any { return *p }
	case int:
		p := s.Int(f.name, v, f.help)
		return func() any { return *p }
	case time.Duration:
		p := s.Duration(f.name, v, f.help)
		return func() any { return *p }
	case []string:
		p := s.StringSlice(f.name, v, f.help)
		return func() any { return *p }
	case repeated:
		p := s.StringArray(f.name, v, f.help)
		return func() any { return *p }
	}
	p := s.String(f.name, f.fallback.(string), f.help)
	return func() any { return *p }
}

// command is the call as a command.
func (k call) command(env app.Environment) *cobra.Command {
	c := &cobra.Command{Use: k.use, Short: k.short, Example: k.example, Args: k.args, ValidArgsFunction: k.complete}
	if k.args == nil {
		c.Args = cobra.NoArgs
	}
	var out printer
	if k.done == "" {
		out.flag(c)
	}
	flags := k.flags
	if k.paged {
		flags = append([]flag{
			{name: "limit", fallback: 50, help: "how many to list, at most 100", field: "limit"},
			{name: "offset", fallback: 0, help: "how many to pass over", field: "offset"},
		}, flags...)
	}
	values := map[string]func() any{}
	for _, f := range flags {
		values[f.name] = f.add(c.Flags())
		if f.required {
			cobra.CheckErr(c.MarkFlagRequired(f.name))
		}
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		path := k.path
		for i, arg := range args {
			path = strings.ReplaceAll(path, "{"+strconv.Itoa(i)+"}", url.PathEscape(arg))
		}
		body, query := map[string]any{}, ""
		for _, f := range flags {
			value := values[f.name]()
			if text := fmt.Sprint(value); f.name != "account" {
				path = strings.ReplaceAll(path, "{"+f.name+"}", url.PathEscape(text))
			}
			switch {
			case f.field == "":
			case k.method == "":
				query += "&" + f.field + "=" + url.QueryEscape(fmt.Sprint(value))
			default:
				body[f.field] = value
			}
		}
		if query != "" {
			path += "?" + query[1:]
		}
		if k.edit != nil {
			if err := k.edit(c, args, body); err != nil {
				return err
			}
		}
		answer, err := k.do(c, env, path, body)
		switch {
		case err != nil:
			return err
		case k.done != "":
			_, err := fmt.Fprintln(c.OutOrStdout(), args[0]+" "+k.done)
			return err
		case k.one != nil:
			return out.one(c.OutOrStdout(), answer, k.one...)
		case k.list != nil:
			return out.list(c.OutOrStdout(), answer, k.list...)
		case out.format == "json":
			return indent(c.OutOrStdout(), answer)
		}
		return k.show(c.OutOrStdout(), answer)
	}
	return c
}

// do makes the call, for the account of the key when no other is given.
func (k call) do(c *cobra.Command, env app.Environment, path string, body map[string]any) ([]byte, error) {
	api, err := newClient(env)
	if err != nil {
		return nil, err
	}
	if strings.Contains(path, "{account}") {
		account, err := api.account(c.Context(), c.Flag("account").Value.String())
		if err != nil {
			return nil, err
		}
		path = strings.ReplaceAll(path, "{account}", account)
	}
	if k.method == "" {
		return api.do(c.Context(), http.MethodGet, path, nil)
	}
	if len(body) == 0 {
		return api.do(c.Context(), k.method, path, nil)
	}
	return api.do(c.Context(), k.method, path, body)
}

// group is a command with those below it.
func group(use, short string, below ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short}
	c.AddCommand(below...)
	return c
}

// object is one kind of object of the configuration: `list` shows the fields listed,
// `get NAME` the others too.
func object(env app.Environment, use, plural, path string, listed []string, more ...string) *cobra.Command {
	return group(use, "show the "+plural+" in force",
		call{use: "list", short: "list the " + plural, path: path, list: listed}.command(env),
		call{
			use: "get NAME", short: "show one " + use, path: path + "/{0}", args: cobra.ExactArgs(1), complete: completeNames(env, path),
			one: append(append([]string{}, listed...), more...),
		}.command(env),
	)
}

// completeNames completes the names of objects in a shell. A platform that does not
// answer has none.
func completeNames(env app.Environment, path string) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
		var list struct{ Data []struct{ Name string } }
		answer, err := get(c.Context(), env, path)
		if err != nil || len(args) > 0 || json.Unmarshal(answer, &list) != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var names []cobra.Completion
		for _, object := range list.Data {
			if strings.HasPrefix(object.Name, prefix) {
				names = append(names, object.Name)
			}
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
}
