// Command openapi-imports imports public OpenAPI documents of many authors as they
// are published, compiles what they become, and has a real Envoy read it. It fetches
// the packages that the documents are shipped in, and keeps them in a folder.
//
// Every document is imported into a file of its own, imported again on top of that,
// which must change nothing, and compared with itself, which must find nothing.
package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/controlplane/gateway/openapi/changes"
	"sluice.dev/sluice/controlplane/gateway/openapi/document"
	"sluice.dev/sluice/controlplane/gateway/openapi/importer"
	"sluice.dev/sluice/controlplane/gateway/xds/resources"
	"sluice.dev/sluice/filters/policy"
	"sluice.dev/sluice/web/mcp/toolset"
	"sluice.dev/sluice/web/openapi"
)

var (
	cache = flag.String("cache", ".sluice/openapi-documents", "folder that fetched packages are kept in")
	check = flag.Bool("validate", false, "have requests validated, count how many are, and do not ask Envoy")
	all   = flag.String("all", "", "import every document below this folder instead, and print failures and sums only")
)

func main() {
	flag.Parse()
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "bench/openapi-imports:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	if *all != "" {
		return runAll(*all)
	}
	if *check {
		return runChecks(ctx, *cache, flag.Args())
	}
	envoy, err := findEnvoy()
	if err != nil {
		return err
	}
	files, err := fetch(ctx, *cache)
	if err != nil {
		return err
	}
	fmt.Print(heading)
	failed := 0
	for _, f := range files {
		row, err := imported(f.path)
		if err == nil {
			err = row.read(ctx, envoy)
		}
		if err != nil {
			failed++
			fmt.Printf("| %s | **%s** |\n", f.name, strings.ReplaceAll(err.Error(), "\n", " "))
			continue
		}
		fmt.Println(row.line(f))
	}
	fmt.Printf("\n%d documents of %d packages, %d failed\n", len(files), len(packages), failed)
	if failed > 0 {
		return errors.New("not every document was imported")
	}
	return nil
}

// row is what became of one document.
type row struct {
	version            string
	bytes              int
	operations, routes int
	tools              int
	description        int
	policyBytes        int
	took               time.Duration // reading, importing and writing the file
	compare            time.Duration
	notes              []document.Note
	set                *resources.Set
	result             importer.Result
}

// imported takes one document through every step but Envoy.
func imported(path string) (r row, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return r, err
	}
	began := time.Now()
	d, err := document.Read(text, nil)
	if err != nil {
		return r, fmt.Errorf("read: %w", err)
	}
	o := importer.Options{Product: "api-of-others", Prefix: "/imported", Upstream: "https://api.example.com", Checks: importer.Checks{On: *check}}
	res, file, err := importer.Into(nil, d, o)
	if err != nil {
		return r, fmt.Errorf("import: %w", err)
	}
	r = row{version: d.Version, bytes: len(text), operations: res.Operations, routes: len(res.Routes), description: len(res.Description),
		took: time.Since(began), notes: res.Notes, result: res}
	again, err := importer.Update(file, res)
	if err != nil {
		return r, fmt.Errorf("the same import again: %w", err)
	}
	if !bytes.Equal(again, file) {
		return r, errors.New("the same import changes the file")
	}
	if err := r.compile(file); err != nil || *check {
		return r, err
	}
	return r, r.describe(res)
}

// compile checks the configuration and compiles it, with each profile.
func (r *row) compile(file []byte) error {
	for _, profile := range config.Profiles {
		c, _, err := config.ParseYAML(file)
		if err != nil {
			return fmt.Errorf("parse: %w", err)
		}
		if !slices.EqualFunc(c.Routes, r.result.Routes, config.Route.Equal) || !maps.Equal(c.Products[0].Schemas, r.result.Product.Schemas) {
			return errors.New("the file says something else")
		}
		c, faults := c.Expand(profile)
		if err := config.AllFaults(nil, faults, c); err != nil {
			return fmt.Errorf("expand: %w", err)
		}
		if err := c.Validate(); err != nil {
			return fmt.Errorf("validate: %w", err)
		}
		p, err := c.Policy(1, "http://gateway", config.ProvisionalNumbers(c))
		if err != nil {
			return fmt.Errorf("policy: %w", err)
		}
		encoded := p.Encode()
		if r.policyBytes = len(encoded); policy.Parse(encoded) == nil {
			return errors.New("edges do not read the policy")
		}
		own := []string{"127.0.0.1:1"}
		if r.set, err = resources.Build(c, p, resources.Options{Addresses: map[string][]string{"api": own, "runtime": own, "media": own}}); err != nil {
			return fmt.Errorf("compile: %w", err)
		}
	}
	return nil
}

// describe joins the description, makes tools of it and compares it with itself.
func (r *row) describe(res importer.Result) error {
	if len(res.Description) == 0 {
		return nil
	}
	base, err := openapi.Join()
	if err != nil {
		return err
	}
	base.Components["schemas"] = map[string]any{"Error": map[string]any{"type": "object"}}
	joined, err := base.With([]openapi.Imported{{Product: res.Product.Name, Text: res.Description}})
	if err != nil {
		return err
	}
	text, err := marshal(joined.Public(config.Document{Routes: res.Routes}, openapi.Info{Title: "t", Version: "v"}))
	if err != nil {
		return err
	}
	tools, err := toolset.From(text)
	if err != nil {
		return fmt.Errorf("tools: %w", err)
	}
	r.tools = len(tools)
	began := time.Now()
	list, err := changes.Between(res.Description, res.Description, time.Minute)
	if err != nil && !errors.Is(err, changes.ErrSlow) {
		return fmt.Errorf("compare: %w", err)
	}
	if r.compare = time.Since(began); len(list) > 0 {
		return fmt.Errorf("it differs from itself: %v", list[0])
	}
	return nil
}

const heading = "| document | OpenAPI | bytes | operations | routes | tools | import | compare | policy | description | named as not expressed |\n" +
	"| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |\n"

func (r row) line(f file) string {
	var notes []string
	for _, n := range r.notes {
		notes = append(notes, fmt.Sprintf("%d %s", n.Count, strings.SplitN(n.What, ":", 2)[0]))
	}
	described := "not kept"
	if r.description > 0 {
		described = fmt.Sprintf("%d kB", r.description/1000)
	}
	return fmt.Sprintf("| %s | %s | %d | %d | %d | %d | %s | %s | %d | %s | %s |", f.name, r.version, r.bytes, r.operations, r.routes, r.tools,
		r.took.Round(time.Millisecond), r.compare.Round(time.Millisecond), r.policyBytes, described, cmp.Or(strings.Join(notes, "; "), "nothing"))
}

// runAll imports every document below a folder, without Envoy.
func runAll(folder string) error {
	var paths []string
	err := filepath.WalkDir(folder, func(path string, _ os.DirEntry, err error) error {
		if slices.Contains([]string{".json", ".yaml", ".yml"}, filepath.Ext(path)) {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil {
		return err
	}
	good, operations, routes := 0, 0, 0
	for _, path := range paths {
		r, err := imported(path)
		if err != nil {
			fmt.Printf("%s: %v\n", path, err)
			continue
		}
		good, operations, routes = good+1, operations+r.operations, routes+r.routes
	}
	fmt.Printf("%d of %d documents: %d operations, %d routes\n", good, len(paths), operations, routes)
	return nil
}
