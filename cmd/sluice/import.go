package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/controlplane/gateway/openapi/document"
	"sluice.dev/sluice/controlplane/gateway/openapi/importer"
	"sluice.dev/sluice/internal/app"
)

// Exit statuses of an import that was asked about and changed nothing.
const (
	exitWouldChange exitStatus = 2
	exitBreaks      exitStatus = 3
)

func importCommand(env app.Environment) *cobra.Command {
	return group("import", "make products and routes of an OpenAPI document, or of another gateway's configuration", importOpenAPICommand(env), importKongCommand())
}

func importOpenAPICommand(env app.Environment) *cobra.Command {
	var i apiImport
	c := &cobra.Command{
		Use: "openapi FILE|URL", Short: "make a product and its routes of an OpenAPI document, or bring them to a new version of it", Args: cobra.ExactArgs(1),
		Long: "Reads OpenAPI 3.0, 3.1 and Swagger 2, in JSON or YAML, and writes a product and a route for each operation into a configuration file, and the\n" +
			"description beside it as PRODUCT.openapi.json, which `sluice apply` sends along. What cannot be expressed is named. Called again with a new version\n" +
			"it says what that adds, removes and breaks for callers.",
		Example: "  sluice import openapi openapi.yaml --upstream http://127.0.0.1:3000\n" +
			"  sluice import openapi openapi.yaml --dry-run --fail-on breaking   # in CI, before a deployment\n" +
			"  sluice import openapi https://api.internal/openapi.json --product orders --apply",
		RunE: func(c *cobra.Command, args []string) error {
			i.source, i.out, i.report = args[0], c.OutOrStdout(), c.ErrOrStderr()
			return i.run(c.Context(), env)
		},
	}
	i.flags(c)
	f := c.Flags()
	f.StringVar(&i.options.Product, "product", "", "name of the product (default: from the document's title)")
	f.StringVarP(&i.file, "file", "f", "sluice.yaml", "configuration file to write into; a new one is made where there is none")
	f.StringVar(&i.options.Upstream, "upstream", "", "where the product is: http://HOST:PORT or https://NAME, with a path if it goes before those of the document; needed for a new product")
	f.BoolVar(&i.dry, "dry-run", false, "only show what would change; exits with status 2 if something would")
	f.StringVar(&i.failOn, "fail-on", "", "breaking: change nothing and exit with status 3 if the new version breaks callers")
	f.BoolVar(&i.apply, "apply", false, "put it into the configuration in force, instead of into a file")
	return c
}

// apiImport is one import of an OpenAPI document.
type apiImport struct {
	source, file, failOn string
	dry, apply           bool
	validate             bool
	said                 func(flag string) bool
	options              importer.Options
	out, report          io.Writer
}

// flags are those that `sluice init --openapi` has too.
func (i *apiImport) flags(c *cobra.Command) {
	c.Flags().StringVar(&i.options.Prefix, "prefix", "", "path that goes before all paths on the gateway, such as /petstore")
	c.Flags().BoolVar(&i.options.Open, "allow-open", false, "leave operations open to anybody that the document says are; otherwise they need a key")
	c.Flags().BoolVar(&i.validate, "validate", false, "have the edge check parameters and JSON bodies against the document; a later import goes on with what the file has")
	i.said = c.Flags().Changed
}

// run imports, and reports.
func (i *apiImport) run(ctx context.Context, env app.Environment) error {
	if i.failOn != "" && i.failOn != "breaking" {
		return errors.New("--fail-on takes breaking")
	}
	d, err := readOpenAPI(ctx, i.source)
	if err != nil {
		return err
	}
	if i.apply {
		return i.intoForce(ctx, env, d)
	}
	text, err := os.ReadFile(i.file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return i.intoFile(d, text)
}

// first writes a first configuration of a document: there must be none yet, unless it
// is forced.
func (i *apiImport) first(ctx context.Context, force bool) error {
	if i.file == "-" {
		return errors.New("--openapi writes a description beside the file: give -o FILE")
	}
	d, err := readOpenAPI(ctx, i.source)
	if err != nil {
		return err
	}
	if _, err := os.Stat(i.file); err == nil && !force {
		return fmt.Errorf("%s is there already: give --force to overwrite it, or -o FILE, or add to it by `sluice import openapi`", i.file)
	}
	return i.intoFile(d, nil)
}

// intoFile writes the import into the configuration file, whose text so far is given.
func (i *apiImport) intoFile(d *document.Document, text []byte) error {
	fresh := len(text) == 0
	before, src, err := config.ParseYAML(orHead(text))
	if err != nil {
		return located(err, src, i.file)
	}
	o, err := i.beside(d, before)
	if err != nil {
		return err
	}
	r, after, err := importer.Into(text, d, o)
	if err != nil {
		return located(err, src, i.file)
	}
	want, src, err := config.ParseYAML(after)
	if err != nil {
		return located(err, src, i.file)
	}
	if err := i.check(want, src); err != nil {
		return err
	}
	beside := descriptionFile(i.file, r.Product.Name)
	known, err := os.ReadFile(beside)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if fresh {
		before = config.Document{}
	}
	if stop, err := i.compare(r, before, importer.Merge(before, r), known); stop || err != nil {
		return err
	}
	if err := os.WriteFile(i.file, after, 0o644); err != nil {
		return err
	}
	if err := writeDescription(beside, r.Description); err != nil {
		return err
	}
	if fresh {
		if err := os.WriteFile(filepath.Join(filepath.Dir(i.file), schemaFile), config.Schema, 0o644); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(i.out, "wrote %s\nput it in force: sluice apply -f %[1]s\n", i.file)
	return err
}

// orHead is the text of a configuration file, or that with which a new one begins.
func orHead(text []byte) []byte {
	if len(text) == 0 {
		return []byte(importer.Head)
	}
	return text
}

// writeDescription writes a description beside the configuration; none takes the
// former one away.
func writeDescription(name string, text []byte) error {
	if text != nil {
		return os.WriteFile(name, text, 0o644)
	}
	if err := os.Remove(name); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// beside are the options of an import beside the rest of a configuration.
func (i *apiImport) beside(d *document.Document, before config.Document) (importer.Options, error) {
	o := i.options
	name := o.Named(d)
	whole, _ := before.Expand(config.ProfilePlatform)
	o.Taken, o.MaxScopes = importer.TakenScopes(whole, name), importer.Room(whole, name)
	o.Checks = importer.ChecksBeside(whole, name)
	if i.said("validate") {
		o.Checks.On = i.validate
	}
	there := slices.ContainsFunc(before.Products, func(p config.Product) bool { return p.Name == name })
	if !there && o.Upstream == "" {
		return o, fmt.Errorf("%s is a new product: say where it is by --upstream http://HOST:PORT, or name the one that it is by --product", name)
	}
	return o, nil
}

// check finds the faults of the configuration that an import has made.
func (i *apiImport) check(d config.Document, src config.Source) error {
	d, faults := d.Expand(config.ProfileGateway) // its routes are there with every profile
	err := config.AllFaults(nil, faults, d)
	if err == nil {
		err = d.Validate()
	}
	if err = located(err, src, i.file); err != nil {
		return fmt.Errorf("%w\nnothing was written; --prefix PATH keeps the paths of two products apart, --product NAME says which one this is", err)
	}
	return nil
}

// descriptionFile is where the description of a product stands beside a file.
func descriptionFile(file, product string) string {
	return filepath.Join(filepath.Dir(file), product+".openapi.json")
}

// readOpenAPI reads a document from a file, with those beside it, or from an address.
func readOpenAPI(ctx context.Context, source string) (*document.Document, error) {
	var text []byte
	var open document.Open
	var err error
	if strings.HasPrefix(source, "http://") || strings.HasPrefix(source, "https://") {
		text, err = fetchOpenAPI(ctx, source)
	} else {
		var root *os.Root
		if root, err = os.OpenRoot(filepath.Dir(source)); err != nil {
			return nil, err
		}
		defer func() { _ = root.Close() }()
		open = func(path string, limit int64) ([]byte, error) {
			f, err := root.Open(filepath.FromSlash(path))
			if err != nil {
				return nil, err
			}
			defer f.Close()
			return io.ReadAll(io.LimitReader(f, limit+1))
		}
		text, err = open(filepath.Base(source), document.MaxBytes)
	}
	if err != nil {
		return nil, err
	}
	d, err := document.Read(text, open)
	if err != nil {
		return nil, fmt.Errorf("%s %w", source, err)
	}
	return d, nil
}

// fetchTimeout bounds the reading of a document from an address.
const fetchTimeout = 60 * time.Second

func fetchOpenAPI(ctx context.Context, address string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, errors.New("the address of the document is none")
	}
	req.Header.Set("Accept", "application/json, application/yaml, */*")
	res, err := (&http.Client{Timeout: fetchTimeout}).Do(req)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", req.URL.Redacted(), errors.Unwrap(err))
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("read %s: it answered %d", req.URL.Redacted(), res.StatusCode)
	}
	return io.ReadAll(io.LimitReader(res.Body, document.MaxBytes+1))
}
