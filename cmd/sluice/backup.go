package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"
	"sluice.dev/sluice/internal/app"
	"sluice.dev/sluice/platform/storage/backup"
)

func backupCommand(env app.Environment) *cobra.Command {
	return &cobra.Command{
		Use: "backup FILE", Short: "back up the database into a new file while everything runs; - is standard output", Args: cobra.ExactArgs(1),
		Example: "  sluice backup sluice-$(date -I).backup",
		RunE: func(c *cobra.Command, args []string) error {
			if args[0] == "-" {
				_, err := writeBackup(c.Context(), env, c.OutOrStdout())
				return err
			}
			rows, err := backupTo(c.Context(), env, args[0])
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), "%s has %d rows. Without SLUICE_SECRETS_KEY, which is not in it, it is of little use: keep that elsewhere.\n", args[0], rows)
			return err
		},
	}
}

// backupTo writes a backup into a new file that only its owner may read: whole,
// and on the disk, or not at all.
func backupTo(ctx context.Context, env app.Environment, name string) (rows int64, err error) {
	if _, err := os.Lstat(name); err == nil {
		return 0, fmt.Errorf("%s is there already", name)
	}
	f, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".part-") // 0600
	if err != nil {
		return 0, err
	}
	defer func() { _ = os.Remove(f.Name()) }() // gone already when all went well
	if rows, err = writeBackup(ctx, env, f); err != nil {
		return 0, errors.Join(err, f.Close())
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return 0, err
	}
	if err := os.Link(f.Name(), name); err != nil { // unlike a rename, it replaces nothing
		return 0, err
	}
	return rows, nil
}

func writeBackup(ctx context.Context, env app.Environment, w io.Writer) (rows int64, err error) {
	if env.Get("SLUICE_DATABASE_URL") == "" {
		// The private server of a local stack, while that runs.
		dev, err := app.ReadEnvFile(filepath.Join(env.Get("SLUICE_STATE_DIR"), "dev.env"))
		if err != nil {
			return 0, err
		}
		secrets, err := app.ReadEnvFile(filepath.Join(env.Get("SLUICE_STATE_DIR"), "secrets.env"))
		if err != nil {
			return 0, err
		}
		env = env.With(map[string]string{"SLUICE_DATABASE_URL": dev["SLUICE_DATABASE_URL"], "SLUICE_SECRETS_KEY": secrets["SLUICE_SECRETS_KEY"]})
	}
	if env.Get("SLUICE_DATABASE_URL") == "" {
		return 0, errors.New("SLUICE_DATABASE_URL is not set, and no local stack runs")
	}
	url, err := env.DirectURL()
	if err != nil {
		return 0, err
	}
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return 0, fmt.Errorf("connect to the database: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	return backup.Write(ctx, conn, w, backup.Header{Build: app.Version, SecretsKey: backup.Fingerprint(env.First("SLUICE_SECRETS_KEY"))})
}

func restoreCommand(env app.Environment) *cobra.Command {
	return &cobra.Command{
		Use: "restore FILE", Short: "restore a backup into the empty database at SLUICE_DATABASE_URL; - is standard input", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			url, err := env.DirectURL()
			if err != nil {
				return err
			}
			in := c.InOrStdin()
			if args[0] != "-" {
				f, err := os.Open(args[0])
				if err != nil {
					return err
				}
				defer f.Close()
				in = f
			}
			var o backup.Options
			for _, key := range env.List("SLUICE_SECRETS_KEY") {
				o.SecretsKeys = append(o.SecretsKeys, backup.Fingerprint(key))
			}
			r, err := backup.Restore(c.Context(), url, in, o)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), "%d rows of %s are back (schema %d, made by build %s)\n", r.Rows, r.Created.UTC().Format("2006-01-02T15:04:05Z"), r.Schema, r.Build)
			return err
		},
	}
}
