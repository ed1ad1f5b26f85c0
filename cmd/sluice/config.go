package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/spf13/cobra"
	"sluice.dev/sluice/controlplane/gateway/config"
	"sluice.dev/sluice/internal/app"
)

func configCommand(env app.Environment) *cobra.Command {
	return group("config", "the versions of the configuration", configShow(env), configHistory(env), configDiff(env), configRollback(env), configSchema())
}

func configShow(env app.Environment) *cobra.Command {
	return &cobra.Command{
		Use: "show [VERSION]", Short: "write the document in force, or of a version, as JSON that apply takes", Args: cobra.MaximumNArgs(1),
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
				Document json.RawMessage `json:"document"`
			}
			if err := json.Unmarshal(answer, &v); err != nil {
				return fmt.Errorf("the answer is not what was expected: %w", err)
			}
			return indent(c.OutOrStdout(), v.Document)
		},
	}
}

func configHistory(env app.Environment) *cobra.Command {
	var limit, before int64
	var out printer
	c := &cobra.Command{
		Use: "history", Short: "list the versions, newest first", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			query := url.Values{"limit": {strconv.FormatInt(limit, 10)}}
			if before > 0 {
				query.Set("before", strconv.FormatInt(before, 10))
			}
			answer, err := get(c.Context(), env, "/admin/v1/config/versions?"+query.Encode())
			if err != nil {
				return err
			}
			return out.list(c.OutOrStdout(), answer, "version", "created_at", "author", "changes", "note")
		},
	}
	out.flag(c)
	c.Flags().Int64Var(&limit, "limit", 20, "how many, at most 100")
	c.Flags().Int64Var(&before, "before", 0, "only versions older than this one")
	return c
}

func configDiff(env app.Environment) *cobra.Command {
	var out printer
	c := &cobra.Command{
		Use: "diff [FROM] [TO]", Short: "what a version changed, or the difference of two", Args: cobra.MaximumNArgs(2),
		Example: "  sluice config diff        # what the version in force changed\n" +
			"  sluice config diff 7      # what version 7 changed\n" +
			"  sluice config diff 3 7    # from version 3 to version 7",
		RunE: func(c *cobra.Command, args []string) error {
			path, err := diffPath(c, env, args)
			if err != nil {
				return err
			}
			answer, err := get(c.Context(), env, path)
			if err != nil {
				return err
			}
			if out.format == "json" {
				return indent(c.OutOrStdout(), answer)
			}
			var v config.Described
			if err := json.Unmarshal(answer, &v); err != nil {
				return fmt.Errorf("the answer is not what was expected: %w", err)
			}
			if err := showDifference(c.OutOrStdout(), v.Changes); err != nil {
				return err
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), "%d changes from version %d to version %d, by %s\n", len(v.Changes), v.Against, v.Number, v.Author)
			return err
		},
	}
	out.flag(c)
	return c
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
	var dry bool
	var note string
	var out printer
	c := &cobra.Command{
		Use: "rollback VERSION", Short: "put an earlier version in force again, as a new version", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			query := url.Values{}
			if dry {
				query.Set("dry_run", "true")
			}
			if note != "" {
				query.Set("note", note)
			}
			api, err := newClient(env)
			if err != nil {
				return err
			}
			answer, err := api.do(c.Context(), http.MethodPost, "/admin/v1/config/versions/"+url.PathEscape(args[0])+"/rollback?"+query.Encode(), nil)
			if err != nil {
				return err
			}
			if out.format == "json" {
				return indent(c.OutOrStdout(), answer)
			}
			return showChanges(c.OutOrStdout(), answer)
		},
	}
	out.flag(c)
	c.Flags().BoolVar(&dry, "dry-run", false, "only show what would change")
	c.Flags().StringVar(&note, "note", "", "a word on why (default: rollback to version VERSION)")
	return c
}

func configSchema() *cobra.Command {
	return &cobra.Command{
		Use: "schema", Short: "write the JSON Schema of a document, for editors", Args: cobra.NoArgs,
		Example: "  sluice config schema > sluice.schema.json\n  # then, on top of a document: # yaml-language-server: $schema=sluice.schema.json",
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := c.OutOrStdout().Write(config.Schema)
			return err
		},
	}
}
