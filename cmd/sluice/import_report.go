package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/controlplane/gateway/openapi/changes"
	"sluice.dev/sluice/controlplane/gateway/openapi/document"
	"sluice.dev/sluice/controlplane/gateway/openapi/importer"
	"sluice.dev/sluice/internal/app"
)

// compareTimeout bounds the comparison of two versions.
const compareTimeout = 2 * time.Minute

// shown bounds how many places of a note are named.
const shown = 5

// compare reports what an import makes of a document, what of it cannot be
// expressed, and, where there was a version before, what the new one is for callers.
// known is the description of before; nil: there is none. stop is whether that was
// all that is to happen.
func (i *apiImport) compare(r importer.Result, before, after config.Document, known []byte) (stop bool, err error) {
	fmt.Fprintf(i.report, "%s: %d operations of OpenAPI %s are %d routes\n", r.Product.Name, r.Operations, r.Version, len(r.Routes))
	if r.Validated+r.Unvalidated > 0 {
		fmt.Fprintf(i.report, "  the edge validates requests of %d routes; of %d it does not, and the others ask for nothing\n", r.Validated, r.Unvalidated)
	}
	reportNotes(i.report, r.Notes)
	list := changes.Demands(before.Routes, after.Routes, r.Product.Name)
	if len(known) > 0 && r.Description != nil {
		more, err := changes.Between(known, r.Description, compareTimeout)
		if err != nil && i.failOn != "" { // what is not known to be harmless is not
			return true, err
		} else if err != nil {
			fmt.Fprintf(i.report, "what the new version breaks is not known: %v\n", err)
		}
		list = append(list, more...)
	}
	broken := 0
	for _, c := range list {
		if c.Kind == changes.Breaks {
			broken++
		}
		fmt.Fprintf(i.out, "%s: %s: %s\n", c.Kind, c.Operation, c.Text)
	}
	if len(list) > 0 {
		fmt.Fprintf(i.out, "%d changes for callers, of which %d break\n", len(list), broken)
	}
	differs := config.Diff(before, after)
	if i.dry {
		if err := showDifference(i.out, differs); err != nil {
			return true, err
		}
		fmt.Fprintf(i.out, "%d changes of the configuration; nothing was changed\n", len(differs))
	}
	switch {
	case i.failOn != "" && broken > 0:
		fmt.Fprintln(i.report, "nothing was changed: the new version breaks callers")
		return true, exitBreaks
	case i.dry && (len(differs) > 0 || len(list) > 0):
		return true, exitWouldChange
	}
	return i.dry, nil
}

// reportNotes names what a document has that was not taken as it is.
func reportNotes(w io.Writer, notes []document.Note) {
	for _, n := range notes {
		where := strings.Join(n.Where[:min(shown, len(n.Where))], ", ")
		if more := n.Count - min(shown, len(n.Where)); more > 0 && where != "" {
			where += fmt.Sprintf(" and %d more", more)
		}
		if where != "" {
			where = ": " + where
		}
		fmt.Fprintf(w, "  %d × %s%s\n", n.Count, n.What, where)
	}
}

// intoForce puts the import into the configuration in force.
func (i *apiImport) intoForce(ctx context.Context, env app.Environment, d *document.Document) error {
	api, err := newClient(env)
	if err != nil {
		return err
	}
	answer, err := api.do(ctx, http.MethodGet, "/admin/v1/config", nil)
	if err != nil {
		return err
	}
	var now struct {
		Version  int64           `json:"version"`
		Document config.Document `json:"document"`
	}
	if err := json.Unmarshal(answer, &now); err != nil {
		return fmt.Errorf("the answer is not what was expected: %w", err)
	}
	o, err := i.beside(d, now.Document)
	if err != nil {
		return err
	}
	r, err := importer.Import(d, o)
	if err != nil {
		return err
	}
	after, _ := importer.Merge(now.Document, r).Expand(config.ProfileGateway)
	known, err := api.optional(ctx, descriptionPath(r.Product.Name))
	if err != nil {
		return err
	}
	if stop, err := i.compare(r, now.Document, after, known); stop || err != nil {
		return err
	}
	query := url.Values{"note": {"import of an OpenAPI document into " + r.Product.Name}}
	answer, err = api.doIf(ctx, http.MethodPut, "/admin/v1/config?"+query.Encode(), after, now.Version)
	if err != nil {
		return err
	}
	if err := showChanges(i.out, answer); err != nil {
		return err
	}
	return api.putDescription(ctx, i.out, r.Product.Name, r.Description)
}

func descriptionPath(product string) string {
	return "/admin/v1/products/" + url.PathEscape(product) + "/description"
}

// putDescription sends the description of a product; nil takes it away.
func (c client) putDescription(ctx context.Context, w io.Writer, product string, text []byte) error {
	if text == nil {
		_, err := c.do(ctx, http.MethodDelete, descriptionPath(product), nil)
		return err
	}
	answer, err := c.do(ctx, http.MethodPut, descriptionPath(product), json.RawMessage(text))
	if err != nil {
		return fmt.Errorf("the configuration is in force, the description of %s is not: %w", product, err)
	}
	var r struct {
		Operations int  `json:"operations"`
		Changed    bool `json:"changed"`
	}
	if err := json.Unmarshal(answer, &r); err != nil {
		return fmt.Errorf("the answer is not what was expected: %w", err)
	}
	if r.Changed {
		_, err = fmt.Fprintf(w, "%s is described: %d operations in /openapi.json, in the reference at /docs/reference and as tools of agents\n", product, r.Operations)
	}
	return err
}

// sendDescriptions sends those that imports have left beside the files of a configuration.
func (c client) sendDescriptions(ctx context.Context, w io.Writer, files []string, d config.Document) error {
	for _, p := range d.Products {
		text, err := descriptionBeside(files, p.Name)
		if err != nil {
			return err
		}
		if text == nil {
			continue
		}
		if err := c.putDescription(ctx, w, p.Name, text); err != nil {
			return err
		}
	}
	return nil
}

// descriptionBeside is the description of a product that stands beside one of files;
// nil: there is none.
func descriptionBeside(files []string, product string) ([]byte, error) {
	for _, file := range files {
		if file == "-" {
			continue
		}
		if info, err := os.Stat(file); err == nil && info.IsDir() {
			file = filepath.Join(file, "sluice.yaml")
		}
		f, err := os.Open(descriptionFile(file, product))
		if err != nil {
			continue // it has none
		}
		text, err := io.ReadAll(io.LimitReader(f, importer.MaxDescription+1))
		if _ = f.Close(); err != nil {
			return nil, err
		}
		if !json.Valid(text) {
			return nil, fmt.Errorf("%s is not JSON: import the OpenAPI document again, or take the file away", f.Name())
		}
		return text, nil
	}
	return nil, nil
}
