package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/internal/app"
	"sluice.dev/sluice/platform/apierror"
)

func applyCommand(env app.Environment) *cobra.Command {
	var files []string
	var note string
	var dry, wait, bare bool
	var timeout, rehearse time.Duration
	c := &cobra.Command{
		Use: "apply", Short: "apply a configuration, or show what it would change", Args: cobra.NoArgs,
		Example: "  sluice apply -f sluice.yaml --dry-run\n  sluice apply -f sluice.yaml --wait --timeout 10s\n  sluice apply -f sluice.yaml --rehearse\n  sluice apply -f sluice.yaml -f production.yaml",
		RunE: func(c *cobra.Command, _ []string) error {
			out := printing(c)
			d, src, err := readDocument(c.InOrStdin(), files)
			if err != nil {
				return err
			}
			_, faults := checked(env.WithLocalProfile(), d, src)
			if d.text != nil {
				return faults
			}
			api, err := newClient(env)
			if err != nil {
				return err
			}
			if rehearse > 0 {
				return api.rehearse(c.Context(), d.Document, rehearse, out)
			}
			if !dry && !bare {
				if err := keepsBuiltin(c.Context(), api, d.Document); err != nil {
					return cmp.Or(faults, err)
				}
			}
			query := url.Values{"note": {note}}
			if dry {
				query.Set("dry_run", "true")
			}
			answer, err := api.do(c.Context(), http.MethodPut, "/admin/v1/config?"+query.Encode(), d.Document)
			if err != nil { // faults that were there before are not held against it: only the server knows
				return cmp.Or(faults, err)
			}
			if out.Text() {
				err = showChanges(c.OutOrStdout(), answer)
			} else {
				err = out.Document(answer)
			}
			if err == nil && !dry {
				err = api.sendDescriptions(c.Context(), c.ErrOrStderr(), files, d.Document)
			}
			if err != nil {
				return err
			}
			if dry {
				return wouldChange(answer)
			}
			if !wait {
				return nil
			}
			var r config.PutResult
			if err := json.Unmarshal(answer, &r); err != nil {
				return err
			}
			return waitForEdges(c.Context(), api, r.Version, timeout, c.ErrOrStderr())
		},
	}
	filesFlag(c, &files)
	c.Flags().BoolVar(&dry, "dry-run", false, "only show what would change; exit status 2 if anything would, 0 if nothing")
	c.Flags().DurationVar(&rehearse, "rehearse", 0, "only show what would become of the requests of the last hour, or of the time given; exit status 2 if any would be refused that is not now")
	c.Flags().Lookup("rehearse").NoOptDefVal = "1h"
	c.Flags().BoolVar(&bare, "without-builtin", false, "apply the document though it removes the platform's own routes")
	c.Flags().BoolVar(&wait, "wait", false, "wait until every live edge has the version; otherwise list those that do not and exit with status 3")
	c.Flags().DurationVar(&timeout, "timeout", 30*time.Second, "how long --wait waits")
	c.Flags().StringVar(&note, "note", "", "reason for the change, stored with the version")
	return c
}

// ownAPI is the address of the platform's own API in a document.
const ownAPI = "${api}"

// keepsBuiltin refuses a document that would take the platform's own routes away
// because nobody thought of them: the current one has them, and this one neither has
// nor includes them.
func keepsBuiltin(ctx context.Context, api client, d config.Document) error {
	if len(d.Include) > 0 || slices.ContainsFunc(d.Products, func(p config.Product) bool {
		return slices.ContainsFunc(p.Upstreams, func(u config.Upstream) bool { return u.Address == ownAPI })
	}) {
		return nil
	}
	answer, err := api.do(ctx, http.MethodPut, "/admin/v1/config?dry_run=true", d)
	if err != nil {
		return err
	}
	var r config.PutResult
	if err := json.Unmarshal(answer, &r); err != nil {
		return err
	}
	if slices.ContainsFunc(r.Changes, func(c config.Change) bool {
		return c.Kind == "removed" && strings.HasPrefix(c.Path, "products.") && bytes.Contains(c.From, []byte(`"`+ownAPI+`"`))
	}) {
		return errors.New("this removes the platform's own routes (keys, sessions, health, docs): add `include: [builtin]` to keep them, or give --without-builtin")
	}
	return nil
}

// located puts the file and line before each fault in err.
func located(err error, src config.Source, file string) error {
	e, ok := errors.AsType[*apierror.Error](err)
	if !ok {
		return err
	}
	if len(e.Details) == 0 {
		return fmt.Errorf("%s: %s", file, e.Message)
	}
	list := make([]error, len(e.Details))
	for i, d := range e.Details {
		text := fmt.Sprintf("%s: %s %s", file, d.Field, d.Issue)
		if line := src.Line(d.Field); line > 0 {
			text = fmt.Sprintf("%s:%d: %s %s", file, line, d.Field, d.Issue)
		}
		if d.Expected != "" {
			text += " (expected " + d.Expected + ")"
		}
		list[i] = errors.New(text)
	}
	return errors.Join(list...)
}

// signs of the kinds of change.
var signs = map[string]string{"added": "+", "removed": "-", "changed": "~"}

// showChanges writes one line for each change, then the version.
func showChanges(w io.Writer, answer []byte) error {
	var r config.PutResult
	if err := json.Unmarshal(answer, &r); err != nil {
		return fmt.Errorf("the answer is not what was expected: %w", err)
	}
	if err := showDifference(w, r.Changes); err != nil {
		return err
	}
	for _, f := range r.Warnings {
		if _, err := fmt.Fprintf(w, "warning: %s %s: it is left out or closed until it is mended\n", f.Field, f.Issue); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintln(w, outcome(r))
	return err
}

// wouldChange is exitWouldChange if a dry run found changes.
func wouldChange(answer []byte) error {
	var r config.PutResult
	if err := json.Unmarshal(answer, &r); err != nil {
		return fmt.Errorf("the answer is not what was expected: %w", err)
	}
	if len(r.Changes) > 0 {
		return exitWouldChange
	}
	return nil
}

// showDifference writes one line for each change.
func showDifference(w io.Writer, changes []config.Change) error {
	for _, c := range changes {
		line := signs[c.Kind] + " " + c.Path
		switch {
		case c.From != nil && c.To != nil:
			line += fmt.Sprintf(": %s -> %s", c.From, c.To)
		case c.From != nil:
			line += ": " + string(c.From)
		case c.To != nil:
			line += ": " + string(c.To)
		}
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	return nil
}

func outcome(r config.PutResult) string {
	switch {
	case len(r.Changes) == 0:
		return fmt.Sprintf("nothing to change: version %d is in force", r.Version)
	case r.DryRun:
		return fmt.Sprintf("%d changes to version %d; nothing was changed", len(r.Changes), r.Version)
	default:
		return fmt.Sprintf("version %d is in force, with %d changes", r.Version, len(r.Changes))
	}
}
