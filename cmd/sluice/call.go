package main

import (
	"cmp"
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
	// edit completes the request; nil: it is the flags.
	edit func(c *cobra.Command, args []string, r *request) error
	// What is shown: fields of one object, or of each in a list; by show; or that the
	// first argument is done.
	one, list []string
	show      func(w io.Writer, answer []byte) error
	// end returns what the command ends with once its answer has been shown; nil: well.
	end      func(c *cobra.Command, answer []byte) error
	done     string
	complete cobra.CompletionFunc
}

// request is what a call asks for.
type request struct {
	path, query string
	body        map[string]any // empty: none
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
			{name: "limit", fallback: 50, help: "number to list, at most 100", field: "limit"},
			{name: "offset", fallback: 0, help: "number to skip", field: "offset"},
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
		r := request{path: k.path, body: map[string]any{}}
		for i, arg := range args {
			r.path = strings.ReplaceAll(r.path, "{"+strconv.Itoa(i)+"}", url.PathEscape(arg))
		}
		for _, f := range flags {
			value := values[f.name]()
			switch {
			case f.field == "":
				if f.name != "account" {
					r.path = strings.ReplaceAll(r.path, "{"+f.name+"}", url.PathEscape(fmt.Sprint(value)))
				}
			case k.method == "":
				r.query += "&" + f.field + "=" + url.QueryEscape(fmt.Sprint(value))
			default:
				r.body[f.field] = value
			}
		}
		if k.edit != nil {
			if err := k.edit(c, args, &r); err != nil {
				return err
			}
		}
		answer, err := k.do(c, env, r)
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
			err = indent(c.OutOrStdout(), answer)
		default:
			err = k.show(c.OutOrStdout(), answer)
		}
		if err == nil && k.end != nil {
			err = k.end(c, answer)
		}
		return err
	}
	return c
}

// do makes the call, for the account of the key when no other is given.
func (k call) do(c *cobra.Command, env app.Environment, r request) ([]byte, error) {
	api, err := newClient(env)
	if err != nil {
		return nil, err
	}
	if strings.Contains(r.path, "{account}") {
		account, err := api.account(c.Context(), c.Flag("account").Value.String())
		if err != nil {
			return nil, err
		}
		r.path = strings.ReplaceAll(r.path, "{account}", account)
	}
	if r.query != "" {
		r.path += "?" + strings.TrimPrefix(r.query, "&")
	}
	var body any
	if len(r.body) > 0 {
		body = r.body
	}
	return api.do(c.Context(), cmp.Or(k.method, http.MethodGet), r.path, body)
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
