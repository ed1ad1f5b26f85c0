package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"github.com/spf13/cobra"
	"sluice.dev/sluice/cmd/sluice/output"
	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/internal/app"
)

func configCommand(env app.Environment) *cobra.Command {
	return group("config", "show, compare and roll back versions of the configuration", configShow(env), configHistory(env), configDiff(env), configRollback(env), configSchema())
}

func configShow(env app.Environment) *cobra.Command {
	return &cobra.Command{
		Use: "show [VERSION]", Short: "print the current configuration, or a version of it, for apply: as JSON, or with -o yaml as YAML", Args: cobra.MaximumNArgs(1),
		Example: "  sluice config show -o yaml > sluice.yaml",
		RunE: func(c *cobra.Command, args []string) error {
			path := "/admin/v1/config"
			if len(args) > 0 {
				path += "/versions/" + url.PathEscape(args[0])
			}
			answer, err := get(c.Context(), env, path)
			if err != nil {
				return err
			}
			var v struct {
				Version  int64           `json:"version"`
				Document json.RawMessage `json:"document"`
			}
			if err := json.Unmarshal(answer, &v); err != nil {
				return fmt.Errorf("the answer is not what was expected: %w", err)
			}
			out := printing(c)
			if out.Format != "yaml" {
				return out.Document(v.Document)
			}
			return showYAML(c.OutOrStdout(), v.Version, v.Document)
		},
	}
}

// showYAML writes a document in the order of its fields. A version keeps no comments:
// it is what the files said together, with what is built in.
func showYAML(w io.Writer, version int64, document []byte) error {
	if _, err := fmt.Fprintf(w, "# yaml-language-server: $schema=%s\n# Version %d, all of it.\n", schemaFile, version); err != nil {
		return err
	}
	return output.YAML(w, document)
}

func configHistory(env app.Environment) *cobra.Command {
	return call{
		use: "history", short: "list the versions, newest first", path: "/admin/v1/config/versions",
		flags: []option{
			{name: "limit", fallback: 20, help: "number to list, at most 100", field: "limit"},
			{name: "before", fallback: 0, help: "only versions older than this one"},
		},
		edit: func(c *cobra.Command, _ []string, r *request) error {
			before, err := c.Flags().GetInt("before")
			if before > 0 {
				r.query = "before=" + strconv.Itoa(before) + r.query
			}
			return err
		},
		list: []string{"version", "created_at", "author", "changes", "note"},
	}.command(env)
}

func configDiff(env app.Environment) *cobra.Command {
	return call{
		use: "diff [FROM] [TO]", short: "show what a version changed, or the difference between two", args: cobra.MaximumNArgs(2), path: "/admin/v1/config/versions/{0}", complete: versions.complete(env, false),
		example: "  sluice config diff        # what the current version changed\n" +
			"  sluice config diff 7      # what version 7 changed\n" +
			"  sluice config diff 3 7    # from version 3 to version 7",
		edit: func(c *cobra.Command, args []string, r *request) (err error) {
			r.path, err = diffPath(c, env, args)
			return err
		},
		show: func(w io.Writer, answer []byte) error {
			var v config.Described
			if err := json.Unmarshal(answer, &v); err != nil {
				return fmt.Errorf("the answer is not what was expected: %w", err)
			}
			if err := showDifference(w, v.Changes); err != nil {
				return err
			}
			_, err := fmt.Fprintf(w, "%d changes from version %d to version %d, by %s\n", len(v.Changes), v.Against, v.Number, v.Author)
			return err
		},
	}.command(env)
}

// diffPath is the address of the difference that args ask for.
func diffPath(c *cobra.Command, env app.Environment, args []string) (string, error) {
	switch len(args) {
	case 2:
		return "/admin/v1/config/versions/" + url.PathEscape(args[1]) + "?against=" + url.QueryEscape(args[0]), nil
	case 1:
		return "/admin/v1/config/versions/" + url.PathEscape(args[0]), nil
	}
	answer, err := get(c.Context(), env, "/admin/v1/config/versions?limit=1")
	if err != nil {
		return "", err
	}
	var page struct{ Data []config.Entry }
	if err := json.Unmarshal(answer, &page); err != nil || len(page.Data) == 0 {
		return "", fmt.Errorf("there is no version yet: put a document in force with `sluice apply -f FILE`")
	}
	return "/admin/v1/config/versions/" + strconv.FormatInt(page.Data[0].Number, 10), nil
}

func configRollback(env app.Environment) *cobra.Command {
	return call{
		use: "rollback VERSION", short: "publish an earlier version again, as a new version", args: cobra.ExactArgs(1), complete: versions.first(env, false),
		method: http.MethodPost, path: "/admin/v1/config/versions/{0}/rollback", show: showChanges,
		flags: []option{
			{name: "dry-run", fallback: false, help: "only show what would change; exit status 2 if anything would, 0 if nothing"},
			{name: "note", fallback: "", help: "reason for the change (default: rollback to version VERSION)"},
		},
		edit: func(c *cobra.Command, _ []string, r *request) error {
			query := url.Values{}
			if c.Flag("dry-run").Value.String() == "true" {
				query.Set("dry_run", "true")
			}
			if note := c.Flag("note").Value.String(); note != "" {
				query.Set("note", note)
			}
			r.query = query.Encode()
			return nil
		},
		end: func(c *cobra.Command, answer []byte) error {
			if c.Flag("dry-run").Value.String() != "true" {
				return nil
			}
			return wouldChange(answer)
		},
	}.command(env)
}

func configSchema() *cobra.Command {
	return &cobra.Command{
		Use: "schema", Short: "print the JSON Schema of the configuration, for editors", Args: cobra.NoArgs,
		Example: "  sluice config schema > sluice.schema.json\n  # then, as the first line of the document: # yaml-language-server: $schema=sluice.schema.json",
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := c.OutOrStdout().Write(config.Schema)
			return err
		},
	}
}
