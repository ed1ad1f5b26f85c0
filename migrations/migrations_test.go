package migrations_test

import (
	"errors"
	"os"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/migrations"
	"sluice.dev/sluice/platform/storage/postgres/pgtest"
)

func tables(t *testing.T, url string) []string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	rows, _ := conn.Query(t.Context(), `SELECT relname::text FROM pg_class
		WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'S', 'v') AND relname <> 'schema_migrations' ORDER BY 1`)
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func TestUpDownUp(t *testing.T) {
	t.Parallel()
	url := pgtest.Empty(t)
	for range 2 {
		if err := migrations.Up(t.Context(), url); err != nil {
			t.Fatal(err)
		}
		if len(tables(t, url)) < 10 {
			t.Fatalf("after up: %v", tables(t, url))
		}
		if err := migrations.Up(t.Context(), url); err != nil {
			t.Fatalf("a second up: %v", err)
		}
		if err := migrations.Down(t.Context(), url); err != nil {
			t.Fatal(err)
		}
		if left := tables(t, url); len(left) > 0 {
			t.Fatalf("after down: %v", left)
		}
	}
}

func TestManyMigratorsAtOnce(t *testing.T) {
	t.Parallel()
	url := pgtest.Empty(t)
	done := make(chan error)
	for range 4 {
		go func() { done <- migrations.Up(t.Context(), url) }()
	}
	for range 4 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func TestDatabaseOfANewerVersionIsRefused(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), `UPDATE schema_migrations SET version = 9999`); err != nil {
		t.Fatal(err)
	}
	if err := migrations.Up(t.Context(), url); !errors.Is(err, migrations.ErrNewer) {
		t.Fatalf("%v, want ErrNewer", err)
	}
}

// Where there are accounts, processes that cannot read sealed headers may still run:
// 0047 then has all wait for a day. Where there are none nothing waits.
func TestHeadersWaitForProcessesOfBefore(t *testing.T) {
	t.Parallel()
	conn, err := pgx.Connect(t.Context(), pgtest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	waits := func() (wait bool) {
		t.Helper()
		if err := conn.QueryRow(t.Context(), `SELECT seal_after > now() + interval '23 hours' FROM schedule_sealing`).Scan(&wait); err != nil {
			t.Fatal(err)
		}
		return wait
	}
	if waits() {
		t.Error("a fresh database waits")
	}
	for _, step := range []string{"down", "", "up"} {
		sql := []byte(`INSERT INTO accounts (id, name, plan) VALUES ('acct_0000000000001', 'A', 'free')`)
		if step != "" {
			if sql, err = os.ReadFile("0047_seal_schedule_headers." + step + ".sql"); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := conn.Exec(t.Context(), string(sql)); err != nil {
			t.Fatal(err)
		}
	}
	if !waits() {
		t.Error("processes of before are not waited for")
	}
}

// Where keys lie open, replicas that cannot read sealed ones may still run: 0028
// then has all wait for a day. Where they are sealed already nothing waits.
func TestSigningKeysWaitForReplicasOfBefore(t *testing.T) {
	t.Parallel()
	conn, err := pgx.Connect(t.Context(), pgtest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	run := func(sql string) {
		t.Helper()
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	file := func(name string) string {
		t.Helper()
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	run(file("0028_add_signing_keys_seal_after.down.sql"))
	run(`INSERT INTO signing_keys (kid, private_der) VALUES ('sealed', '\x01ff'), ('open', '\x30ff')`)
	run(file("0028_add_signing_keys_seal_after.up.sql"))
	var waits []string
	err = conn.QueryRow(t.Context(), `SELECT array_agg(kid) FROM signing_keys WHERE seal_after > now() + interval '23 hours'`).Scan(&waits)
	if err != nil || !slices.Equal(waits, []string{"open"}) {
		t.Fatalf("%v wait, want the one that lies open: %v", waits, err)
	}
}

// What no statement reads is not written, also where a release before made it.
func TestIndexesThatNobodyReadsAreGone(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	url := pool.Config().ConnString()
	left := func() (n int) {
		if err := pool.QueryRow(t.Context(), `SELECT count(*) FROM pg_indexes WHERE tablename = 'river_job' AND indexdef LIKE '%USING gin%'`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := left(); n != 0 {
		t.Errorf("%d are made", n)
	}
	if _, err := pool.Exec(t.Context(), `CREATE INDEX river_job_args_index ON river_job USING gin (args)`); err != nil {
		t.Fatal(err)
	}
	if err := migrations.Up(t.Context(), url); err != nil || left() != 0 {
		t.Errorf("%d stay, %v", left(), err)
	}
}
