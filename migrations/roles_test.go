package migrations_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"sluice.dev/sluice/migrations"
	"sluice.dev/sluice/platform/storage/postgres/pgtest"
)

// as is a connection that may do what the role may.
func as(t *testing.T, url string, r migrations.Role) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	if _, err := conn.Exec(t.Context(), `SET SESSION AUTHORIZATION `+string(r)); err != nil {
		t.Fatal(err)
	}
	return conn
}

// refused reports whether a statement fails for want of a privilege. Nothing that it
// does stays.
func refused(t *testing.T, conn *pgx.Conn, sql string) bool {
	t.Helper()
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.Background()) }()
	_, err = tx.Exec(t.Context(), sql)
	e, _ := errors.AsType[*pgconn.PgError](err)
	if err != nil && e == nil {
		t.Fatal(err)
	}
	return e != nil && e.Code == "42501"
}

// columns are those of each table that can be written.
func columns(t *testing.T, url string) map[string][]string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	rows, _ := conn.Query(t.Context(), `SELECT c.relname::text, array_agg(a.attname::text ORDER BY a.attnum) FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
		WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = '' GROUP BY 1`)
	all := map[string][]string{}
	var table string
	var names []string
	_, err = pgx.ForEachRow(rows, []any{&table, &names}, func() error { all[table] = slices.Clone(names); return nil })
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// statements are one for each way to touch a table, with the privilege that it asks
// for: of the table, or of one column.
func statements(table string, columns []string) map[string]string {
	m := map[string]string{
		"INSERT":                 "EXPLAIN INSERT INTO " + table + " DEFAULT VALUES",
		"DELETE":                 "EXPLAIN DELETE FROM " + table,
		"TRUNCATE":               "TRUNCATE " + table + " CASCADE",
		"DROP":                   "DROP TABLE " + table + " CASCADE",
		"ALTER":                  "ALTER TABLE " + table + " ADD COLUMN more int",
		"INDEX":                  "CREATE INDEX ON " + table + " (" + columns[0] + ")",
		"TRIGGER":                "CREATE TRIGGER t BEFORE INSERT ON " + table + " FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger()",
		"GRANT":                  "GRANT SELECT ON " + table + " TO sluice_runtime WITH GRANT OPTION",
		"SELECT (" + "tableoid)": "EXPLAIN SELECT tableoid FROM " + table,
	}
	for _, c := range columns {
		m["SELECT ("+c+")"] = "EXPLAIN SELECT " + c + " FROM " + table
		m["UPDATE ("+c+")"] = "EXPLAIN UPDATE " + table + " SET " + c + " = DEFAULT"
	}
	return m
}

// Each role can do what the list says, and nothing else: every table is tried in
// every way, column by column.
func TestRolesCanDoWhatIsGrantedAndNothingElse(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	tables := columns(t, url)
	for _, r := range migrations.Roles {
		conn := as(t, url, r)
		tried, allowed := 0, 0
		for table, cols := range tables {
			text := migrations.Grants(r)[table]
			for what, sql := range statements(table, cols) {
				if what == "GRANT" && text != "" {
					continue // only a warning
				}
				want := grantsCover(text, what)
				tried++
				if want {
					allowed++
				}
				if got := !refused(t, conn, sql); got != want {
					t.Errorf("%s: %s of %s is allowed: %v; granted is %q", r, what, table, got, text)
				}
			}
		}
		if tried < 500 || allowed < 20 {
			t.Errorf("%s: only %d ways were tried, and %d allowed", r, tried, allowed)
		}
		for _, sql := range []string{
			`CREATE TABLE mine (n int)`, `CREATE SCHEMA mine`, `CREATE ROLE mine`, `CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'`,
			`CREATE EXTENSION pgcrypto`, `SET ROLE sluice`, `ALTER ROLE ` + string(r) + ` SUPERUSER`, `SELECT rolpassword FROM pg_authid`, `COPY (SELECT 1) TO PROGRAM 'true'`,
			`SELECT pg_read_file('/etc/passwd')`, `COPY processes FROM '/etc/passwd'`, `ALTER SYSTEM SET fsync = off`, `SELECT setval('river_job_id_seq', 1)`,
		} {
			if sql[:12] != "ALTER SYSTEM" && !refused(t, conn, sql) {
				t.Errorf("%s may: %s", r, sql)
			}
		}
		conn.Close(t.Context())
	}
}

// grantsCover says whether a grant allows what a statement asks for.
func grantsCover(text, what string) bool {
	if text == "" {
		return false
	}
	name, column, _ := strings.Cut(strings.TrimSuffix(what, ")"), " (")
	for _, have := range privilegesOf(text) {
		if have == name || have == what && column != "" {
			return true
		}
	}
	return false
}

// privilegesOf takes "SELECT (a, b), INSERT" apart: SELECT (a), SELECT (b), INSERT.
func privilegesOf(text string) (list []string) {
	for text != "" {
		name, rest, _ := strings.Cut(text, ",")
		if before, after, some := strings.Cut(text, " ("); some && len(before) < len(name) {
			inner, more, _ := strings.Cut(after, ")")
			for c := range strings.SplitSeq(inner, ", ") {
				list = append(list, before+" ("+c+")")
			}
			text = strings.TrimPrefix(more, ", ")
			continue
		}
		list, text = append(list, name), strings.TrimSpace(rest)
	}
	return list
}

// Whoever adds a table says who uses it; whoever drops one takes it off the list.
func TestEveryTableIsSomebodys(t *testing.T) {
	t.Parallel()
	there := columns(t, pgtest.URL(t))
	named := map[string]bool{}
	for _, table := range migrations.Nobodys {
		named[table] = true
	}
	for _, r := range migrations.Roles[:len(migrations.Roles)-1] {
		for table := range migrations.Grants(r) {
			named[table] = true
		}
	}
	for table := range there {
		if !named[table] {
			t.Errorf("%s is granted to no role: name it in grants.go", table)
		}
	}
	for table := range named {
		if there[table] == nil {
			t.Errorf("%s is granted, and there is no such table", table)
		}
	}
	if backup := migrations.Grants(migrations.Backup); len(backup) != len(there) {
		t.Errorf("a backup reads %d tables of %d", len(backup), len(there))
	}
}

// What has been granted or taken by hand is put right by the next Up; and where all
// is right nothing is written.
func TestGrantsAreBroughtToTheList(t *testing.T) {
	t.Parallel()
	url := pgtest.URL(t)
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	state := func() (text string) {
		t.Helper()
		err := conn.QueryRow(t.Context(), `SELECT string_agg(concat_ws(' ', relname, xmin, relacl), ';' ORDER BY relname) FROM pg_class WHERE relname = ANY ($1)`,
			slices.Collect(maps.Keys(columns(t, url)))).Scan(&text)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	up := func() {
		t.Helper()
		if err := migrations.Up(t.Context(), url); err != nil {
			t.Fatal(err)
		}
	}
	before := state()
	if up(); state() != before {
		t.Error("a second Up writes what is there already")
	}
	if _, err := conn.Exec(t.Context(), `GRANT SELECT ON api_keys TO sluice_runtime; GRANT SELECT (email) ON users TO sluice_media; REVOKE SELECT ON plans FROM sluice_worker`); err != nil {
		t.Fatal(err)
	}
	up()
	for r, sql := range map[migrations.Role]string{migrations.Runtime: `SELECT 1 FROM api_keys`, migrations.Media: `SELECT email FROM users`} {
		if !refused(t, as(t, url, r), sql) {
			t.Errorf("%s keeps what was granted by hand", r)
		}
	}
	if refused(t, as(t, url, migrations.Worker), `SELECT 1 FROM plans`) {
		t.Error("the worker does not get back what was taken")
	}
}

// An owner who may not make roles migrates all the same, and grants to those that
// somebody else makes.
func TestAnOwnerWithoutTheRightToMakeRoles(t *testing.T) {
	t.Parallel()
	url := pgtest.Empty(t)
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	owner := "o_" + url[strings.LastIndex(url, "_")+1:strings.LastIndex(url, "?")]
	database := url[strings.LastIndex(url, "/")+1 : strings.LastIndex(url, "?")]
	for _, sql := range []string{`CREATE ROLE ` + owner + ` LOGIN PASSWORD 'test' NOCREATEROLE`, `ALTER DATABASE ` + database + ` OWNER TO ` + owner, migrations.RolesSQL(), migrations.RolesSQL()} {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		conn, err := pgx.Connect(context.Background(), url)
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close(context.Background())
		for _, sql := range []string{`REASSIGN OWNED BY ` + owner + ` TO CURRENT_USER`, `DROP OWNED BY ` + owner, `DROP ROLE ` + owner} {
			if _, err := conn.Exec(context.Background(), sql); err != nil {
				t.Error(err)
			}
		}
	})
	c := conn.Config()
	theirs := fmt.Sprintf("postgres://%s:test@%s:%d/%s?sslmode=disable", owner, c.Host, c.Port, database)
	if err := migrations.Up(t.Context(), theirs); err != nil {
		t.Fatal(err)
	}
	if refused(t, as(t, url, migrations.Runtime), `SELECT 1 FROM token_usage`) {
		t.Error("nothing was granted")
	}
}
