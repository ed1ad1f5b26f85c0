package backup

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"sluice.dev/sluice/migrations"
	"sluice.dev/sluice/platform/storage/postgres/pgtest"
)

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	return conn
}

// filled is a database with some rows, its backup, and how many rows that has.
func filled(t *testing.T, secretsKey string) (conn *pgx.Conn, file []byte, rows int64) {
	t.Helper()
	conn = connect(t, pgtest.URL(t))
	for _, sql := range []string{
		`INSERT INTO plans (name, number) VALUES ('pro', 77) ON CONFLICT DO NOTHING`,
		`INSERT INTO accounts (id, name, plan) VALUES ('acct_0000000000001', E'a\ttab, a "quote" and \\N', 'pro')`,
		`INSERT INTO account_events (account_id, id, type, occurred_at, created_at, body) SELECT 'acct_0000000000001', 'evt_' || n, 'stream.started', now(), now(), decode(repeat('00ff5c0a', 200), 'hex') FROM generate_series(1, 3000) n`,
		`INSERT INTO river_job (state, queue, kind, args, max_attempts) VALUES ('available', 'q', 'k', '{"a":1}', 1)`,
		`INSERT INTO processes (name, kind, build) VALUES ('not kept', 'k', 'b')`,
	} {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	if _, err := conn.Exec(t.Context(), `SET SESSION AUTHORIZATION `+string(migrations.Backup)); err != nil { // who may read, and no more
		t.Fatal(err)
	}
	rows, err := Write(t.Context(), conn, &out, Header{Build: "v1", SecretsKey: Fingerprint(secretsKey)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), `RESET SESSION AUTHORIZATION`); err != nil {
		t.Fatal(err)
	}
	return conn, out.Bytes(), rows
}

// contents are all tables with a sum of their rows.
func contents(t *testing.T, conn *pgx.Conn) (all []string) {
	t.Helper()
	err := pgx.BeginFunc(t.Context(), conn, func(tx pgx.Tx) error {
		list, err := tables(t.Context(), tx)
		for _, table := range list {
			var sum string
			if table.Name == "edge_feed" {
				continue // begins another history
			}
			name := pgx.Identifier{table.Name}.Sanitize()
			err = errors.Join(err, tx.QueryRow(t.Context(), `SELECT count(*) || ' ' || coalesce(md5(string_agg(r::text, E'\n' ORDER BY r::text)), '') FROM `+name+` r`).Scan(&sum))
			all = append(all, table.Name+" "+sum)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(all)
	return all
}

func TestThereAndBack(t *testing.T) {
	t.Parallel()
	from, file, rows := filled(t, "key")
	url := pgtest.Empty(t)
	got, err := Restore(t.Context(), url, bytes.NewReader(file), Options{SecretsKeys: []string{Fingerprint("key")}})
	if err != nil || got.Rows != rows || got.Build != "v1" || rows < 3000 {
		t.Fatal(got, rows, err)
	}
	to := connect(t, url)
	if a, b := contents(t, from), contents(t, to); !slices.Equal(a, b) {
		t.Errorf("%v\nbecame\n%v", a, b)
	}
	var next, epochs, processes int64
	for sql, v := range map[string]*int64{
		`INSERT INTO account_events (account_id, id, type, occurred_at, created_at, body) VALUES ('acct_0000000000001', 'evt_next', 'a', now(), now(), '') RETURNING seq`: &next,
		`SELECT epoch FROM edge_feed`:    &epochs,
		`SELECT count(*) FROM processes`: &processes,
	} {
		if err := to.QueryRow(t.Context(), sql).Scan(v); err != nil {
			t.Fatal(err)
		}
	}
	var before int64
	if err := from.QueryRow(t.Context(), `SELECT epoch FROM edge_feed`).Scan(&before); err != nil || epochs <= before || next != 3001 || processes != 0 {
		t.Errorf("feed epoch %d after %d, next event %d, %d processes, %v", epochs, before, next, processes, err)
	}
	if _, err := Restore(t.Context(), url, bytes.NewReader(file), Options{}); !errors.Is(err, ErrNotEmpty) {
		t.Error("a second restore:", err)
	}
}

func TestRestoreWantsTheWholeBackupAndTheRightKey(t *testing.T) {
	t.Parallel()
	_, file, _ := filled(t, "key")
	url := pgtest.Empty(t)
	if _, err := Restore(t.Context(), url, bytes.NewReader(file), Options{SecretsKeys: []string{Fingerprint("other")}}); err == nil || !strings.Contains(err.Error(), "SLUICE_SECRETS_KEY") {
		t.Error(err)
	}
	if err := mustBeEmpty(t.Context(), connect(t, url)); err != nil {
		t.Error("a refused restore has left something:", err)
	}
	if _, err := Restore(t.Context(), url, bytes.NewReader(file[:len(file)-200]), Options{}); !errors.Is(err, errBroken) && !strings.Contains(fmt.Sprint(err), "no whole backup") {
		t.Error("cut short:", err)
	}
	var n int
	if err := connect(t, url).QueryRow(t.Context(), `SELECT count(*) FROM account_events`).Scan(&n); err != nil || n != 0 {
		t.Errorf("half a backup is there: %d rows, %v", n, err)
	}
}

// made is an archive with these tables and rows.
func made(t testing.TB, h Header, rows map[string]string, e End) []byte {
	t.Helper()
	var out bytes.Buffer
	b, err := newWriter(&out, h)
	for _, table := range h.Tables {
		b.begin(table.Name)
		_, werr := io.WriteString(b, rows[table.Name])
		err = errors.Join(err, werr, b.flush())
	}
	if err = errors.Join(err, b.close(e)); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestBackupsThatAreRefused(t *testing.T) {
	t.Parallel()
	newest, err := migrations.Newest()
	if err != nil {
		t.Fatal(err)
	}
	plans := Table{"plans", []string{"name", "number"}}
	for want, file := range map[string][]byte{
		"no whole backup":        []byte("text"),
		"format 2":               made(t, Header{Format: 2}, nil, End{}),
		"newer version":          made(t, Header{Format: Format, Schema: newest + 1}, nil, End{}),
		`named "pg_class; DROP"`: made(t, Header{Format: Format, Schema: newest, Tables: []Table{{"pg_class; DROP", []string{"a"}}}}, nil, End{}),
		`no column "x"`:          made(t, Header{Format: Format, Schema: newest, Tables: []Table{{"plans", []string{"x"}}}}, nil, End{}),
		"plans has 1 rows of 2":  made(t, Header{Format: Format, Schema: newest, Tables: []Table{plans}}, map[string]string{"plans": "a\t7\n"}, End{Rows: map[string]int64{"plans": 2}}),
	} {
		if _, err := Restore(t.Context(), pgtest.Empty(t), bytes.NewReader(file), Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func TestOrdered(t *testing.T) {
	t.Parallel()
	got, err := ordered([]string{"c", "b", "a"}, map[string][]string{"a": {"b", "a"}, "b": {"c", "elsewhere"}})
	if err != nil || !slices.Equal(got, []string{"c", "b", "a"}) {
		t.Error(got, err)
	}
	if _, err := ordered([]string{"a", "b"}, map[string][]string{"a": {"b"}, "b": {"a"}}); err == nil {
		t.Error("a circle is accepted")
	}
}

func TestFingerprint(t *testing.T) {
	t.Parallel()
	if a, b := Fingerprint("a"), Fingerprint("b"); a == b || len(a) != 16 || Fingerprint("") != "" {
		t.Error(a, b)
	}
}

func FuzzReader(f *testing.F) {
	f.Add(made(f, Header{Format: Format, Tables: []Table{{Name: "a"}, {Name: "b"}}}, map[string]string{"a": "1\n", "b": "2\n"}, End{Rows: map[string]int64{"a": 1}}), true)
	f.Add([]byte("not gzip"), true)
	f.Add([]byte("not tar"), false)
	f.Fuzz(func(t *testing.T, text []byte, packed bool) {
		if !packed {
			var out bytes.Buffer
			gz := gzip.NewWriter(&out)
			if _, err := gz.Write(text); err != nil || gz.Close() != nil {
				t.Fatal(err)
			}
			text = out.Bytes()
		}
		b, err := newReader(bytes.NewReader(text))
		if err != nil {
			return
		}
		for _, table := range b.Header.Tables {
			if _, err := io.Copy(io.Discard, io.LimitReader(b.rows(table.Name), 1<<20)); err != nil {
				return
			}
		}
		_, _ = b.end()
	})
}

// Every table that survives a crash can be put in an order, so that a restore
// needs no rights beyond those of the tables' owner.
func TestTablesOfTheSchemaHaveAnOrder(t *testing.T) {
	t.Parallel()
	conn := connect(t, pgtest.URL(t))
	err := pgx.BeginFunc(t.Context(), conn, func(tx pgx.Tx) error {
		list, err := tables(t.Context(), tx)
		if len(list) < 30 || slices.ContainsFunc(list, func(t Table) bool { return slices.Contains(kept, t.Name) || t.Name == "processes" }) {
			t.Errorf("%v", list)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
