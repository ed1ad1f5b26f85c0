package main

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/template"

	"github.com/spf13/cobra"
	"sluice.dev/sluice/controlplane/gateway/config"
)

// schemaFile is where `sluice init` puts the schema that the document names, beside
// it: editors then complete and check the document without a network.
const schemaFile = "sluice.schema.json"

func initCommand() *cobra.Command {
	var upstream, name, out, api string
	var force bool
	var i apiImport
	c := &cobra.Command{
		Use: "init", Short: "write a first configuration for a service of your own", Args: cobra.NoArgs,
		Example: "  sluice init --upstream http://127.0.0.1:3000\n  sluice init --upstream https://orders.example.com --name orders -o -\n" +
			"  sluice init --upstream http://127.0.0.1:3000 --openapi openapi.yaml",
		RunE: func(c *cobra.Command, _ []string) error {
			if api != "" {
				i.source, i.file, i.out, i.report = api, out, c.OutOrStdout(), c.ErrOrStderr()
				i.options.Product, i.options.Upstream = name, upstream
				return i.first(c.Context(), force)
			}
			text, err := starter(upstream, name)
			if err != nil {
				return err
			}
			if out == "-" {
				_, err = c.OutOrStdout().Write(text)
				return err
			}
			if err := writeNew(out, text, 0o644, force); err != nil {
				return err
			}
			if err := os.WriteFile(filepath.Join(filepath.Dir(out), schemaFile), config.Schema, 0o644); err != nil {
				return err
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), "wrote %s, and %s for your editor; next:\n  sluice validate -f %[1]s\n  sluice apply -f %[1]s\n", out, schemaFile)
			return err
		},
	}
	c.Flags().StringVar(&upstream, "upstream", "", "where the service is: http://HOST:PORT or https://NAME, with a path if all its own begin with one")
	c.Flags().StringVar(&name, "name", "", "name of the service in routes, metrics and scopes (default: from the upstream)")
	c.Flags().StringVarP(&out, "output", "o", "sluice.yaml", "file to write; - writes to standard output") // in place of every command's --output
	c.Flags().StringVar(&out, "out", "sluice.yaml", "the same")
	c.Flags().BoolVar(&force, "force", false, "overwrite the file")
	c.Flags().StringVar(&api, "openapi", "", "file or address of the service's OpenAPI document: a route for each operation, in place of one for all")
	i.flags(c)
	cobra.CheckErr(c.MarkFlagRequired("upstream"))
	return c
}

// writeNew writes a file that is not there yet, or whatever is there with force.
func writeNew(name string, text []byte, mode fs.FileMode, force bool) error {
	flags := os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	if !force {
		flags |= os.O_EXCL
	}
	f, err := os.OpenFile(name, flags, mode)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s is there already: give --force to overwrite it, or choose another place", name)
	}
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(f.Chmod(mode), err, f.Close())
}

//go:embed init.yaml.tmpl
var starterText string

var starterTemplate = template.Must(template.New("init").Parse(starterText))

var nameForm = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,39}$`)

// starter is a first document for a service at an upstream, of a name; "": one of
// the upstream's.
func starter(upstream, name string) ([]byte, error) {
	u, err := url.Parse(upstream)
	if err != nil || u.User != nil {
		return nil, errors.New("--upstream is not an address: expected http://HOST:PORT or https://NAME, without a user")
	}
	prefix := strings.TrimRight(u.EscapedPath(), "/")
	u.Path, u.RawPath = "", ""
	if !config.ValidUpstream(u.String()) {
		return nil, fmt.Errorf("--upstream is %q: expected http://HOST:PORT or https://NAME", upstream)
	}
	if name == "" {
		name = nameOf(u.Hostname())
	}
	if !nameForm.MatchString(name) {
		return nil, fmt.Errorf("--name is %q: expected 1 to 40 of a-z, 0-9, dash and underscore", name)
	}
	var b bytes.Buffer
	if err := starterTemplate.Execute(&b, struct{ Schema, Name, Scope, Upstream, Prefix string }{schemaFile, name, strings.ReplaceAll(name, "-", "_"), u.String(), prefix}); err != nil {
		return nil, err
	}
	d, src, err := config.ParseYAML(b.Bytes())
	if err != nil {
		return nil, err
	}
	d, faults := d.Expand(config.ProfilePlatform)
	if err := config.AllFaults(nil, faults, d); err != nil {
		return nil, located(err, src, "--upstream or --name")
	}
	return b.Bytes(), located(d.Validate(), src, "--upstream or --name")
}

// nameOf makes a name of a host: of orders.example.com, orders. Names that say
// nothing, and those of the platform's own products, become app.
func nameOf(host string) string {
	said := []string{"api", "www", "localhost", "sluice", "media", "runtime", "placeholder"}
	for label := range strings.SplitSeq(strings.ToLower(host), ".") {
		if strings.ContainsFunc(label, func(c rune) bool { return c >= 'a' && c <= 'z' }) && nameForm.MatchString(label) && !slices.Contains(said, label) {
			return label
		}
	}
	return "app"
}
