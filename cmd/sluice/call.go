package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"sluice.dev/sluice/cmd/sluice/output"
	"sluice.dev/sluice/internal/app"
)

// call is a command that makes one call of an API and shows the answer.
type call struct {
	use, short, example string
	args                cobra.PositionalArgs // nil: none
	gateway             bool                 // the public API, with the API key; false: the admin API
	method              string               // "": GET
	// path may have {account}, which is --account, {0} and {1} for arguments, and {FLAG}.
	path  string
	paged bool // with --limit and --offset
	flags []option
	// file says that the body may come from a file by -f, over which flags go.
	file bool
	// fixed are fields of the body that are always so.
	fixed map[string]any
	// edit completes the request; nil: it is the flags.
	edit func(c *cobra.Command, args []string, r *request) error
	// What is shown: fields of one object, or of each in a list, with those that --output
	// wide shows too; by show; or that the first argument is done. A field may have a
	// default: see output.Fields.
	one, list, wide []string
	show            func(w io.Writer, answer []byte) error
	// end returns what the command ends with once its answer has been shown; nil: well.
	end      func(c *cobra.Command, answer []byte) error
	done     string
	complete cobra.CompletionFunc
}

// callNote is the annotation of a command that says which operation it calls.
const callNote = "call"

// request is what a call asks for.
type request struct {
	path, query string
	body        map[string]any // empty: none
}

// option is a flag of a call. Its field is that of the body, which may be in an object of it
// (schedule.cron), or of the query of a GET; "": it is in neither.
type option struct {
	name     string
	fallback any // of the flag's type
	help     string
	field    string
	required bool
	// given says that the field is there only if the flag was.
	given bool
	// values are what it may be, for completion; from is where they are listed.
	values []string
	from   listed
}

// repeated are texts that are not split at commas.
type repeated []string

// add adds the flag to s and returns what reads it.
func (f option) add(s *pflag.FlagSet) (value func() any) {
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

// allFlags are the flags of the call, with those of a page.
func (k call) allFlags() []option {
	if !k.paged {
		return k.flags
	}
	return append([]option{
		{name: "limit", fallback: 50, help: "number to list, at most 100", field: "limit"},
		{name: "offset", fallback: 0, help: "number to skip", field: "offset"},
	}, k.flags...)
}

// command is the call as a command.
func (k call) command(env app.Environment) *cobra.Command {
	c := &cobra.Command{Use: k.use, Short: k.short, Example: k.example, Args: k.args, ValidArgsFunction: k.complete}
	if k.args == nil {
		c.Args, c.ValidArgsFunction = cobra.NoArgs, cobra.NoFileCompletions
	}
	c.Annotations = map[string]string{callNote: cmp.Or(k.method, http.MethodGet) + " " + k.path}
	flags, values := k.allFlags(), map[string]func() any{}
	for _, f := range flags {
		values[f.name] = f.add(c.Flags())
		if f.required {
			cobra.CheckErr(c.MarkFlagRequired(f.name))
		}
		if complete := f.completion(env, k.gateway); complete != nil {
			cobra.CheckErr(c.RegisterFlagCompletionFunc(f.name, complete))
		}
	}
	if k.file {
		c.Flags().StringP("file", "f", "", "YAML or JSON file of the object, or - for standard input; flags go over it")
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		r, err := k.request(c, args, flags, values)
		if err != nil {
			return err
		}
		answer, err := k.do(c, env, r)
		if err != nil {
			return about(err, named(c, args))
		}
		return k.showAnswer(c, args, answer)
	}
	return c
}

// request is what arguments and flags ask for.
func (k call) request(c *cobra.Command, args []string, flags []option, values map[string]func() any) (request, error) {
	r := request{path: k.path, body: map[string]any{}}
	if k.file {
		if err := readObject(c, &r.body); err != nil {
			return r, err
		}
	}
	for field, v := range k.fixed {
		setField(r.body, field, v)
	}
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
		case f.given && !c.Flags().Changed(f.name):
		case k.method == "":
			if value != "" {
				r.query += "&" + f.field + "=" + url.QueryEscape(fmt.Sprint(value))
			}
		default:
			setField(r.body, f.field, value)
		}
	}
	if k.edit == nil {
		return r, nil
	}
	return r, k.edit(c, args, &r)
}

// setField sets a field of a body, which may be in an object of it.
func setField(body map[string]any, field string, v any) {
	for {
		outer, inner, nested := strings.Cut(field, ".")
		if !nested {
			body[field] = v
			return
		}
		object, _ := body[outer].(map[string]any)
		if object == nil {
			object = map[string]any{}
			body[outer] = object
		}
		body, field = object, inner
	}
}

// readObject reads the file that -f names into body, if it does. It reads at most
// maxDocument bytes.
func readObject(c *cobra.Command, body *map[string]any) error {
	name, _ := c.Flags().GetString("file")
	if name == "" {
		return nil
	}
	text, err := (&reader{stdin: c.InOrStdin()}).text(name)
	if err != nil {
		return err
	}
	if err := yaml.Unmarshal(text, body); err != nil || *body == nil {
		return fmt.Errorf("%s: is not an object in YAML or JSON", name)
	}
	return nil
}

// showAnswer shows what came of the call.
func (k call) showAnswer(c *cobra.Command, args []string, answer []byte) (err error) {
	out := printing(c)
	switch {
	case k.done != "":
		text := args[0] + " " + k.done
		if out.Quiet {
			text = args[0]
		}
		_, err = fmt.Fprintln(out.Out, text)
	case k.one != nil:
		err = out.Object(answer, output.Fields(k.one...))
	case k.list != nil:
		err = out.List(answer, output.Fields(k.list...), output.Fields(k.wide...))
	case out.Text():
		err = k.show(out.Out, answer)
	default:
		err = out.Document(answer)
	}
	if err == nil && k.end != nil {
		err = k.end(c, answer)
	}
	return err
}

// named is what a command was told to be about: its arguments, or else the account.
func named(c *cobra.Command, args []string) []string {
	if f := c.Flag("account"); len(args) == 0 && f != nil && f.Value.String() != "" {
		return []string{"account " + f.Value.String()}
	}
	return args
}

// about says of what is not found which it was.
func about(err error, args []string) error {
	if r, ok := errors.AsType[refused](err); ok && r.status == http.StatusNotFound && len(args) > 0 {
		return fmt.Errorf("%s: %w", args[0], err)
	}
	return err
}

// do makes the call, for the account of the key when no other is given.
func (k call) do(c *cobra.Command, env app.Environment, r request) ([]byte, error) {
	account := ""
	if f := c.Flag("account"); f != nil {
		account = f.Value.String()
	}
	api, err := k.client(env, account)
	if err != nil {
		return nil, err
	}
	if strings.Contains(r.path, "{account}") {
		account, err := api.account(c.Context(), account)
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

// client calls the API of k. What the gateway serves is of the account of the API key.
func (k call) client(env app.Environment, account string) (client, error) {
	if !k.gateway {
		return newClient(env)
	}
	if account != "" {
		return client{}, errors.New("--account does not go with this: it acts for the account of SLUICE_API_KEY; use a key of the other account, or its --context")
	}
	return toGateway.client(env)
}

// group is a command with those below it.
func group(use, short string, below ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short}
	c.AddCommand(below...)
	return c
}
