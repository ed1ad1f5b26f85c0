package pgserver

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// duplicateDatabase is the SQLSTATE of CREATE DATABASE for a name in use.
const duplicateDatabase = "42P04"

// ensureDatabase creates the database name unless it is there.
func ensureDatabase(ctx context.Context, url, name string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return fmt.Errorf("connect to the private PostgreSQL: %w; if its password file was removed, remove the data folder as well", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if name == "postgres" {
		return nil
	}
	var there bool // asked first: a failed attempt would stand in the log of every start
	if err := conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)`, name).Scan(&there); err != nil || there {
		return err
	}
	_, err = conn.Exec(ctx, "CREATE DATABASE "+pgx.Identifier{name}.Sanitize())
	if pgErr := new(pgconn.PgError); errors.As(err, &pgErr) && pgErr.Code == duplicateDatabase {
		return nil
	}
	if err != nil {
		return fmt.Errorf("create database %q: %w", name, err)
	}
	return nil
}
