package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
	"sluice.dev/sluice/migrations"
)

func migrateCommand(env environment) *cobra.Command {
	var down, yes, roles bool
	c := process(env, "migrate", "upgrade the database to this version's schema", func(ctx context.Context, env environment) error {
		if roles {
			_, err := io.WriteString(os.Stdout, migrations.RolesSQL())
			return err
		}
		url, err := env.require("SLUICE_DATABASE_URL")
		if err != nil {
			return err
		}
		if down {
			return migrateDown(ctx, url, yes, os.Stdin, os.Stderr)
		}
		return env.migrateUp(ctx)
	})
	c.Long = "Upgrades the database to this version's schema, and creates the roles sluice_controlplane, sluice_worker, sluice_runtime, sluice_media and sluice_backup, each with\n" +
		"the rights that its process needs. The users with which processes sign in are members of them; those in SLUICE_DATABASE_LOGINS are created as well."
	c.Flags().BoolVar(&roles, "roles", false, "print the SQL that creates the roles, for a server on which this user may not create them")
	c.Flags().BoolVar(&down, "down", false, "remove the schema and all data, after asking for the database's name")
	c.Flags().BoolVar(&yes, "yes", false, "with --down: do not ask")
	return c
}

// migrateDown empties the database if yes is true, or else if that is confirmed.
func migrateDown(ctx context.Context, url string, yes bool, in *os.File, out io.Writer) error {
	if !yes {
		if err := confirmDown(ctx, url, terminal(in), in, out); err != nil {
			return err
		}
	}
	return migrations.Down(ctx, url)
}

// confirmDown returns nil when whoever sits at the terminal has typed the name of
// the database that is about to be emptied.
func confirmDown(ctx context.Context, url string, terminal bool, in io.Reader, out io.Writer) error {
	c, err := pgx.ParseConfig(url)
	if err != nil {
		return errors.New("SLUICE_DATABASE_URL is no address of PostgreSQL")
	}
	if !terminal {
		return fmt.Errorf("--down removes the schema and all data of database %q: run it on a terminal, or add --yes", c.Database)
	}
	fmt.Fprintf(out, "This removes the schema and all data of database %q at %s. Type the database's name to go on: ", c.Database, c.Host)
	typed := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(in).ReadString('\n')
		typed <- strings.TrimSpace(line)
	}()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case name := <-typed:
		if name == "" || name != c.Database {
			return errors.New("that is not the name of the database: nothing was removed")
		}
		return nil
	}
}

// terminal reports whether somebody can type into f. /dev/null is a device, but no
// terminal.
func terminal(f *os.File) bool {
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
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
