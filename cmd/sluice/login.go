package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
	"sluice.dev/sluice/cmd/sluice/contexts"
	"sluice.dev/sluice/cmd/sluice/output"
	"sluice.dev/sluice/internal/app"
)

// chosen is what the context in use says of the variables of commands. It stands before
// the environment if --context names it, else behind.
type chosen struct {
	first bool
	set   map[string]string
}

// over is env with what was chosen. It may be called before anything was.
func (s *chosen) over(env app.Environment) app.Environment {
	lookup := env.Lookup
	env.Lookup = func(name string) (string, bool) {
		v, ok := s.set[name]
		if ok && s.first {
			return v, true
		}
		if own, set := lookup(name); set && own != "" || !ok {
			return own, set
		}
		return v, true
	}
	return env
}

// choose reads the context that c is to use.
func (s *chosen) choose(c *cobra.Command, env app.Environment) error {
	name, err := c.Flags().GetString("context")
	if err != nil || env.Lookup == nil {
		return nil
	}
	path, err := env.ContextsFile()
	if err != nil {
		if name == "" || name == contexts.Local {
			return nil // nowhere to have contexts
		}
		return err
	}
	f, err := contexts.Read(path)
	if err != nil {
		return err
	}
	used, err := f.Get(cmp.Or(name, f.Current))
	if err != nil {
		return err
	}
	s.first, s.set = name != "", map[string]string{}
	for variable, v := range map[string]string{
		toAdmin.url: used.AdminURL, toAdmin.key: used.AdminKey, toGateway.url: used.GatewayURL, toGateway.key: used.APIKey,
	} {
		if v != "" {
			s.set[variable] = v
		}
	}
	return nil
}

// loginCommand is `sluice login`.
func loginCommand(env app.Environment) *cobra.Command {
	var given contexts.Context
	c := &cobra.Command{
		Use: "login NAME", Short: "keep the addresses and keys of a platform as a context, and use it", Args: cobra.ExactArgs(1),
		Long: "Asks for a key of each address, tries it, and keeps both under NAME in a file that only you can read (SLUICE_CONTEXTS).\n" +
			"Keys are read from the terminal, or from standard input one a line: the admin key first, if there is an --admin-url.\n" +
			"Variables such as SLUICE_ADMIN_KEY go before the current context; --context goes before them.",
		Example: "  sluice login prod --admin-url https://admin.example.com --gateway-url https://api.example.com\n  sluice key list --context prod",
		RunE: func(c *cobra.Command, args []string) error {
			if given.AdminURL == "" && given.GatewayURL == "" {
				return usageError{c, "give --admin-url, --gateway-url or both"}
			}
			path, err := env.ContextsFile()
			if err != nil {
				return err
			}
			keys := secretReader{in: c.InOrStdin(), out: c.ErrOrStderr()}
			if given.AdminURL != "" {
				if given.AdminKey, err = keys.tried(c.Context(), toAdmin, given.AdminURL, "/admin/v1/self"); err != nil {
					return err
				}
			}
			if given.GatewayURL != "" {
				if given.APIKey, err = keys.tried(c.Context(), toGateway, given.GatewayURL, "/v1/auth/validate"); err != nil {
					return err
				}
			}
			f, err := contexts.Read(path)
			if err != nil {
				return err
			}
			if err := errors.Join(f.Set(args[0], given), f.Write(path)); err != nil {
				return err
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), "%s is the current context, kept in %s\n", args[0], path)
			return err
		},
	}
	c.Flags().StringVar(&given.AdminURL, "admin-url", "", "address of the admin API")
	c.Flags().StringVar(&given.GatewayURL, "gateway-url", "", "address of the gateway")
	return c
}

// secretReader reads secrets that nobody else is to see.
type secretReader struct {
	in    io.Reader
	out   io.Writer
	lines *bufio.Reader
}

// tried reads a key and returns it if the API takes it.
func (s *secretReader) tried(ctx context.Context, e endpoint, base, path string) (string, error) {
	key, err := s.read("Key for " + e.name + " at " + base)
	if err != nil {
		return "", err
	}
	api, err := e.client(app.Environment{Lookup: func(name string) (string, bool) {
		v, ok := map[string]string{e.url: base, e.key: key}[name]
		return v, ok
	}})
	if err == nil {
		_, err = api.do(ctx, http.MethodGet, path, nil)
	}
	return key, err
}

// read reads a line; what is typed on a terminal is not shown.
func (s *secretReader) read(what string) (string, error) {
	if f, ok := s.in.(*os.File); ok && terminal(f) {
		fmt.Fprint(s.out, what+": ")
		was, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
		if err != nil {
			return "", err
		}
		silent := *was
		silent.Lflag &^= unix.ECHO
		if err := unix.IoctlSetTermios(int(f.Fd()), unix.TCSETS, &silent); err != nil {
			return "", err
		}
		defer func() {
			_ = unix.IoctlSetTermios(int(f.Fd()), unix.TCSETS, was)
			fmt.Fprintln(s.out)
		}()
	}
	if s.lines == nil {
		s.lines = bufio.NewReader(io.LimitReader(s.in, 64<<10))
	}
	line, err := s.lines.ReadString('\n')
	if line = strings.TrimSpace(line); line == "" {
		return "", errors.Join(fmt.Errorf("%s: no key was given", what), ignoreEOF(err))
	}
	return line, nil
}

func ignoreEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// contextCommand is `sluice context`.
func contextCommand(env app.Environment) *cobra.Command {
	change := func(use, short, done string, edit func(*contexts.File, string) error) *cobra.Command {
		return &cobra.Command{Use: use, Short: short, Args: cobra.ExactArgs(1), ValidArgsFunction: completeContexts(env), RunE: func(c *cobra.Command, args []string) error {
			path, err := env.ContextsFile()
			if err != nil {
				return err
			}
			f, err := contexts.Read(path)
			if err == nil {
				_, err = f.Get(args[0])
			}
			if err == nil {
				err = edit(&f, args[0])
			}
			if err == nil {
				err = f.Write(path)
			}
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(c.OutOrStdout(), args[0], done)
			return err
		}}
	}
	return group("context", "list, choose and remove the platforms that you work with",
		&cobra.Command{Use: "list", Short: "list the contexts, without their keys", Args: cobra.NoArgs, RunE: func(c *cobra.Command, _ []string) error {
			path, err := env.ContextsFile()
			if err != nil {
				return err
			}
			f, err := contexts.Read(path)
			if err != nil {
				return err
			}
			return showContexts(printing(c), f)
		}},
		change("use NAME", "make a context the current one; "+contexts.Local+": the environment and the local stack", "is the current context", func(f *contexts.File, name string) error {
			f.Current = name
			return nil
		}),
		change("remove NAME", "forget a context and its keys", "is removed", func(f *contexts.File, name string) error {
			if name == contexts.Local {
				return fmt.Errorf("%s cannot be removed", name)
			}
			if delete(f.Contexts, name); f.Current == name {
				f.Current = ""
			}
			return nil
		}),
	)
}

func showContexts(out output.Printer, f contexts.File) error {
	type row struct {
		Name       string `json:"name"`
		Current    bool   `json:"current"`
		AdminURL   string `json:"admin_url,omitempty"`
		GatewayURL string `json:"gateway_url,omitempty"`
	}
	list := []row{{Name: contexts.Local, Current: cmp.Or(f.Current, contexts.Local) == contexts.Local}}
	for _, name := range f.Names() {
		c := f.Contexts[name]
		list = append(list, row{name, name == f.Current, c.AdminURL, c.GatewayURL})
	}
	raw, err := json.Marshal(map[string]any{"data": list})
	if err != nil {
		return err
	}
	return out.List(raw, output.Fields("name", "current", "admin_url", "gateway_url"), nil)
}

// completeContexts completes names of contexts.
func completeContexts(env app.Environment) cobra.CompletionFunc {
	return func(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
		path, err := env.ContextsFile()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		f, err := contexts.Read(path)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return append(f.Names(), contexts.Local), cobra.ShellCompDirectiveNoFileComp
	}
}
