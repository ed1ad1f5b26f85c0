package main

import (
	"context"

	"github.com/spf13/cobra"
	"sluice.dev/sluice/migrations"
)

func migrateCommand(env environment) *cobra.Command {
	var down bool
	c := process(env, "migrate", "bring the database to this version's schema", func(ctx context.Context, env environment) error {
		url, err := env.require("SLUICE_DATABASE_URL")
		if err != nil {
			return err
		}
		if down {
			return migrations.Down(ctx, url)
		}
		return migrations.Up(ctx, url)
	})
	c.Flags().BoolVar(&down, "down", false, "remove the schema and all data")
	return c
}
