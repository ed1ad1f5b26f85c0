package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sluice.dev/sluice/migrations"
)

func migrateCommand(env environment) *cobra.Command {
	var down, roles bool
	c := process(env, "migrate", "bring the database to this version's schema", func(ctx context.Context, env environment) error {
		if roles {
			_, err := io.WriteString(os.Stdout, migrations.RolesSQL())
			return err
		}
		url, err := env.require("SLUICE_DATABASE_URL")
		if err != nil {
			return err
		}
		if down {
			return migrations.Down(ctx, url)
		}
		return env.migrateUp(ctx)
	})
	c.Long = "Brings the database to this version's schema, and makes the roles sluice_controlplane, sluice_worker, sluice_runtime, sluice_media and sluice_backup, which may\n" +
		"do what those processes do. Users by which processes sign in are members of them; those in SLUICE_DATABASE_LOGINS are made as well."
	c.Flags().BoolVar(&roles, "roles", false, "show the SQL that makes the roles, for a server on which this user may not")
	c.Flags().BoolVar(&down, "down", false, "remove the schema and all data")
	return c
}

// migrateUp brings the database to this version's schema, and makes the users of
// SLUICE_DATABASE_LOGINS.
func (e environment) migrateUp(ctx context.Context) error {
	logins, err := e.databaseLogins()
	if err != nil {
		return err
	}
	url := e.get("SLUICE_DATABASE_URL")
	if err := migrations.Up(ctx, url); err != nil || len(logins) == 0 {
		return err
	}
	if err := migrations.EnsureLogins(ctx, url, logins); err != nil {
		return fmt.Errorf("SLUICE_DATABASE_LOGINS: %w", err)
	}
	return nil
}

// databaseLogins reads the users. The error does not show a password.
func (e environment) databaseLogins() (list []migrations.Login, err error) {
	for i, text := range e.list("SLUICE_DATABASE_LOGINS") {
		parts := strings.SplitN(text, ":", 3)
		role := migrations.Role("sluice_" + parts[0])
		if len(parts) != 3 || parts[1] == "" || parts[2] == "" || !slices.Contains(migrations.Roles, role) {
			return nil, fmt.Errorf("SLUICE_DATABASE_LOGINS: number %d is not PROCESS:USER:PASSWORD with controlplane, worker, runtime, media or backup as the process", i+1)
		}
		list = append(list, migrations.Login{Role: role, User: parts[1], Password: parts[2]})
	}
	return list, nil
}
