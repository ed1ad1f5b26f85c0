package pgtest

import (
	"os"
	"testing"

	"golang.org/x/sync/errgroup"
	"sluice.dev/sluice/migrations"
)

// Whoever is first makes the template, and it is there whole for all.
func TestOneTemplateForAll(t *testing.T) {
	t.Parallel()
	pool := Pool(t)
	var names [4]string
	var g errgroup.Group
	for i := range names {
		g.Go(func() (err error) {
			names[i], err = makeTemplate(os.Getenv(Env))
			return err
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if name != names[0] {
			t.Errorf("templates %v", names)
		}
	}
	newest, err := migrations.Newest()
	if err != nil {
		t.Fatal(err)
	}
	var version uint
	if err := pool.QueryRow(t.Context(), `SELECT version FROM schema_migrations`).Scan(&version); err != nil || version != newest {
		t.Errorf("a copy is at %d of %d: %v", version, newest, err)
	}
}
