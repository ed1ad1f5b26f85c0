package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
	"sluice.dev/sluice/internal/app"
	"sluice.dev/sluice/migrations"
)

func migrateCommand(env app.Environment) *cobra.Command {
	var down, yes, roles bool
	c := process(env, "migrate", "upgrade the database to this version's schema", func(ctx context.Context, env app.Environment) error {
		if roles {
			_, err := io.WriteString(os.Stdout, migrations.RolesSQL())
			return err
		}
		url, err := env.DirectURL()
		if err != nil {
			return err
		}
		if down {
			return migrateDown(ctx, url, yes, os.Stdin, os.Stderr)
		}
		return env.MigrateUp(ctx)
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
