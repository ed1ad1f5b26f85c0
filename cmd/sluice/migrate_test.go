package main

import (
	"context"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/platform/storage/postgres/pgtest"
)

// On a terminal the database's name must be typed; without one there is nobody to ask.
func TestWhoMayRemoveAllData(t *testing.T) {
	t.Parallel()
	const url = "postgres://sluice:secret@db.test:5432/media"
	for _, c := range []struct {
		terminal bool
		typed    string
		want     string // of the error; empty: it goes on
	}{
		{true, "media\n", ""},
		{true, "media", ""},
		{true, "\n", "nothing was removed"},
		{true, "", "nothing was removed"},
		{true, "y\n", "nothing was removed"},
		{true, "MEDIA\n", "nothing was removed"},
		{false, "media\n", `database "media": run it on a terminal, or add --yes`},
	} {
		var asked strings.Builder
		err := confirmDown(t.Context(), url, c.terminal, strings.NewReader(c.typed), &asked)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c, err)
		}
		if c.terminal != strings.Contains(asked.String(), `"media" at db.test`) || strings.Contains(asked.String(), "secret") {
			t.Errorf("%+v: it asks %q", c, asked.String())
		}
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	never, _ := io.Pipe()
	if err := confirmDown(gone, url, true, never, io.Discard); err == nil {
		t.Error("it goes on though it was to end")
	}
}

// A script that calls it by mistake removes nothing: /dev/null is a device, but no
// terminal.
func TestMigrateDown(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	if err := migrateDown(t.Context(), url, false, null, io.Discard); err == nil || !strings.Contains(err.Error(), "--yes") || !there(t, url) {
		t.Errorf("without a terminal: %v", err)
	}
	if err := migrateDown(t.Context(), url, true, null, io.Discard); err != nil || there(t, url) {
		t.Errorf("with --yes: %v", err)
	}
}

func there(t *testing.T, url string) (is bool) {
	t.Helper()
	db, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close(t.Context())
	if err := db.QueryRow(t.Context(), `SELECT to_regclass('accounts') IS NOT NULL`).Scan(&is); err != nil {
		t.Fatal(err)
	}
	return is
}
